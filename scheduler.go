package sqsfifo

import (
	"container/heap"
	"errors"
	"sync"
	"time"

	"github.com/google/uuid"
)

var (
	// ErrClosed is wrapped by the error of an event that was handed to a closed
	// producer. The event was never sent.
	ErrClosed = errors.New("producer is closed")

	// ErrGroupPaused is wrapped by the error of an event whose message group is
	// paused, because an earlier event of the group failed and this one would
	// overtake it. The event was not sent, unless the error is a [*SendError],
	// too. See [Producer.Resume].
	ErrGroupPaused = errors.New("an earlier event of the message group failed")

	// ErrBufferFull is wrapped by the error of [Producer.TrySend] when the
	// producer holds as many events, or bytes, as it may. The event was not
	// handed in.
	ErrBufferFull = errors.New("the producer's buffer is full")

	// ErrOvertaken is wrapped by the error of an event that failed in a request
	// that stored an event of its group behind it. It is not tried again, because
	// it would come out of order. It happens with the order [Runs] alone.
	ErrOvertaken = errors.New("overtaken by a later event of the message group")
)

// scheduler decides which events share a request and when it starts.
//
// Each message group has a lane: the events in the order in which they were
// handed in, and one bit that says that some of them are in a request. A lane with
// something to send is in the ready list, one that waits to try again in a heap. A
// batch takes the heads of as many ready lanes as fit into a request, one event of
// each with the order Strict, up to ten with Runs. It starts when it is full, when
// no other request is under way, when its first lane has waited for the linger, or
// when somebody flushes.
//
// Rates: with one event of a group in a request, G groups move at most G events in
// a round trip; with runs ten times that. Order costs nothing where there are as
// many groups with work as the requests under way hold events.
//
// Goroutines: there is none while there is nothing to do. A worker is started for
// each batch, by whoever makes it possible (a hand-in, an answer, a timer), makes
// the request, tells the outcomes, takes the next batch and ends when there is
// none. There are at most as many as requests are allowed, and one that tells
// outcomes which needed no request. The scheduler owns them: close waits for all.
//
// Locks: mu guards all that is below it. The lock of the memory is taken under it,
// never the other way round; no callback runs under it.
type scheduler struct {
	sender
	order    Order
	skip     bool // a failed event does not pause its group
	retryFor time.Duration
	linger   time.Duration
	inFlight int
	room     room

	mu      sync.Mutex
	lanes   map[string]*lane // those with events
	ready   laneList
	delayed laneHeap
	telling *batch            // outcomes that need no request
	paused  map[string]*pause // by group
	pacer   pacer
	calls   int // requests under way
	workers int
	events  int // without an outcome
	urgent  int // flushes under way: nothing lingers
	current *epoch
	epochs  []*epoch // those that a flush waits for
	closed  bool
	idle    chan struct{} // closed when closed and nothing is left
	timer   *time.Timer
	wakeAt  time.Time // zero: the timer is not set
}

// pause is why nothing of a group is sent: the event with the key failed.
type pause struct {
	key   string
	event uuid.UUID
	err   error
}

func newScheduler(s sender, d Delivery) *scheduler {
	return &scheduler{
		sender:   s,
		order:    d.Order,
		skip:     d.OnGroupFailure == SkipEvent,
		retryFor: d.RetryFor,
		linger:   d.Linger,
		inFlight: d.InFlight,
		room:     room{events: d.BufferEvents, bytes: d.BufferBytes, enough: min(d.BufferEvents/8, 64)},
		lanes:    map[string]*lane{},
		paused:   map[string]*pause{},
		current:  &epoch{done: make(chan struct{})},
		idle:     make(chan struct{}),
	}
}

// handIn puts the events behind those of their groups and reports whether the
// producer still takes any. They have their room already.
func (s *scheduler) handIn(ps ...*pending) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	now := time.Now()
	for _, p := range ps {
		s.events++
		s.current.events++
		p.epoch = s.current
		l := s.lanes[p.msg.Group]
		if l == nil {
			l = &lane{group: p.msg.Group}
			s.lanes[l.group] = l
			l.push(p)
			s.schedule(l, now)
			continue
		}
		l.push(p) // it is busy, ready or delayed
	}
	s.pump(now)
	return true
}

// schedule puts a lane that is neither busy, ready nor delayed where it belongs.
func (s *scheduler) schedule(l *lane, now time.Time) {
	switch {
	case l.notBefore.After(now):
		heap.Push(&s.delayed, l)
	case s.trim(l):
		l.readySince = now
		s.ready.push(l)
	default:
		s.drop(l)
	}
}

// drop forgets a lane that has nothing left.
func (s *scheduler) drop(l *lane) {
	if l.head == nil && !l.busy {
		delete(s.lanes, l.group)
	}
}

// trim ends what stands at the head of a lane and will not be sent. It reports
// whether the lane has something to send now: if it has outcomes to tell, that
// comes first.
func (s *scheduler) trim(l *lane) bool {
	for l.head != nil {
		p := l.head
		err := s.stop(p)
		if err == nil && !p.ended {
			break
		}
		l.pop()
		if p.ended {
			continue
		}
		p.ended = true
		if s.telling == nil {
			s.telling = &batch{}
		}
		s.telling.ended = append(s.telling.ended, ended{p: p, err: err, attempts: p.attempts, replay: p.isReplay()})
		if !l.busy {
			l.busy = true
			s.telling.lanes = append(s.telling.lanes, l)
		}
	}
	return l.head != nil && !l.busy
}

// stop returns the error with which an event ends in its turn without being
// sent, or nil.
func (s *scheduler) stop(p *pending) error {
	if p.ended {
		return nil
	}
	if p.refusal != nil {
		if !s.skip {
			p.series.refuse(p.msg)
		}
		return p.refusal
	}
	err := p.series.stops(p)
	if why, ok := s.paused[p.msg.Group]; ok && why.key != p.msg.DedupeKey {
		err = pausedError(p.msg, why.event, why.err)
	}
	if p.attempts == 0 {
		return err
	}
	now := time.Now()
	switch {
	case err != nil:
		err = s.unsent(p, outcome{err: err})
	case age(p.first, now) < resendHorizon:
		return nil
	default: // it waited for its turn until a retry would outlive the interval
		err = s.unsent(p, *p.last)
		s.fail(p, err)
	}
	s.forget(now, p)
	return err
}

// pump starts a worker for each batch that may go, and sets the timer for what
// has to wait.
func (s *scheduler) pump(now time.Time) {
	for {
		b := s.next(now)
		if b == nil {
			break
		}
		s.workers++
		go s.work(b)
	}
	s.arm(now)
}

// next returns the batch that may go now, or nil.
func (s *scheduler) next(now time.Time) *batch {
	for len(s.delayed) > 0 && !s.delayed[0].notBefore.After(now) {
		s.schedule(heap.Pop(&s.delayed).(*lane), now)
	}
	for {
		if b := s.telling; b != nil {
			s.telling = nil
			return b
		}
		if !s.mayCall(now) || s.pacer.wait(now) > 0 {
			return nil
		}
		if b := s.take(); b != nil {
			for _, p := range b.sends {
				if p.attempts == 0 {
					p.first = now
				}
				p.attempts++
				p.flying = true
			}
			s.calls++
			s.pacer.start()
			return b
		}
	}
}

// mayCall reports whether there is something to send and no reason to wait for
// more.
func (s *scheduler) mayCall(now time.Time) bool {
	if s.ready.head == nil || s.calls >= s.inFlight {
		return false
	}
	return s.calls == 0 || s.urgent > 0 || s.closed || !s.ready.head.readySince.Add(s.linger).After(now) || s.isFull()
}

// arm sets the timer for the next thing that time alone brings about.
func (s *scheduler) arm(now time.Time) {
	var at time.Time
	if len(s.delayed) > 0 {
		at = s.delayed[0].notBefore
	}
	if s.ready.head != nil && s.calls < s.inFlight {
		ready := s.ready.head.readySince.Add(s.linger)
		if d := s.pacer.wait(now); d > 0 {
			ready = now.Add(d)
		}
		if at.IsZero() || ready.Before(at) {
			at = ready
		}
	}
	if at.Equal(s.wakeAt) {
		return
	}
	s.wakeAt = at
	switch {
	case at.IsZero():
		s.timer.Stop()
	case s.timer == nil:
		s.timer = time.AfterFunc(at.Sub(now), s.wake)
	default:
		s.timer.Reset(at.Sub(now))
	}
}

func (s *scheduler) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wakeAt = time.Time{}
	s.pump(time.Now())
}

// work does batches until there is none.
func (s *scheduler) work(b *batch) {
	for b != nil {
		if len(b.sends) > 0 {
			s.request(b)
		}
		for _, e := range b.ended {
			s.tell(e)
		}
		b = s.through(b)
	}
}

// through frees the lanes of a batch whose outcomes are told and returns the next
// one for its worker.
func (s *scheduler) through(b *batch) *batch {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if len(b.sends) > 0 {
		s.calls--
	}
	for _, e := range b.ended {
		s.left(e.p)
	}
	for _, l := range b.lanes {
		l.busy = false
		s.schedule(l, now)
	}
	b = s.next(now)
	s.pump(now)
	if b == nil {
		s.workers--
		s.rest()
	}
	return b
}

// tell ends an event: its outcome goes to telemetry and to the caller.
func (s *scheduler) tell(e ended) {
	if e.p.unbind != nil {
		e.p.unbind()
	}
	s.room.leave(e.p.size)
	s.telemetry.finish(e)
	s.ledger.record(e)
	e.p.done(e.receipt, e.err)
}

// withdraw ends an event whose caller no longer waits for it. If it is in a
// request, the answer will only be remembered; otherwise it leaves its lane, which
// may not move for minutes.
func (s *scheduler) withdraw(p *pending, cause error) {
	s.mu.Lock()
	if p.ended {
		s.mu.Unlock()
		return
	}
	p.ended = true
	e := ended{p: p, err: p.refusal, attempts: p.attempts}
	if e.err == nil {
		e.err = s.unsent(p, p.lastWith(cause))
	}
	if !p.flying {
		e.replay = p.isReplay()
		s.lanes[p.msg.Group].remove(p)
		s.forget(time.Now(), p)
		s.fail(p, e.err)
	}
	s.mu.Unlock()

	s.tell(e)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left(p)
	s.rest()
}

// fail pauses the group of an event that was tried and failed.
func (s *scheduler) fail(p *pending, err error) {
	if s.skip || p.attempts == 0 {
		return // it never was on its way
	}
	s.paused[p.msg.Group] = &pause{key: p.msg.DedupeKey, event: p.msg.EventID, err: err}
}

// resume lets a group go on.
func (s *scheduler) resume(group string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.paused, group)
}

func (s *scheduler) pausedGroups() map[string]error {
	s.mu.Lock()
	defer s.mu.Unlock()
	groups := make(map[string]error, len(s.paused))
	for group, p := range s.paused {
		groups[group] = p.err
	}
	return groups
}
