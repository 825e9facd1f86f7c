package model

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo"
)

// producersOf returns the producers of a process.
func (m *modelRun) producersOf(process int) []*sqsfifo.Producer[modelEvent] {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.producers[process]
}

// latest returns the index of the process that now runs in place of the given process.
// There may have been several restarts.
func (m *modelRun) latest(process int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	for m.successors[process] > 0 {
		process = m.successors[process]
	}
	return process
}

// restart closes a process while most of its events are unfinished, and starts another
// process in its place.
func (m *modelRun) restart(rng *rand.Rand) {
	old := m.latest(rng.IntN(m.processes))
	fresh := m.begin(len(m.producersOf(old)) > 1)
	m.mu.Lock()
	m.successors[old] = fresh
	m.mu.Unlock()
	ctx, cancel := context.WithTimeout(m.t.Context(), time.Duration(rng.IntN(3))*time.Second)
	defer cancel()
	m.checkClosed(old, ctx, m.producersOf(old)[0].Close(ctx))
}

// spawn runs f in a goroutine, unless the random program has ended.
func (m *modelRun) spawn(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.closing {
		m.actors.Go(f)
	}
}

// sleep waits for d. It returns false if the random program has ended.
func (m *modelRun) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-m.quit:
		return false
	}
}

// feed submits events of one group in sequential calls.
func (m *modelRun) feed(rng *rand.Rand, producer int, group string, steps int) {
	var sofar []modelEvent
	for range steps {
		var events []modelEvent
		for range 1 + rng.IntN(4) {
			e := modelEvent{Key: fmt.Sprintf("%s-%d", group, len(sofar)), Group: group}
			if producer > 0 && rng.IntN(2) == 0 {
				e.Key += "-other"
			}
			if len(sofar) > 0 {
				switch recent := sofar[max(0, len(sofar)-5):]; rng.IntN(12) {
				case 0, 1, 2:
					e = recent[rng.IntN(len(recent))] // a copy
				case 3:
					e = recent[rng.IntN(len(recent))]
					e.Value++ // a different event under a used key
				case 4:
					e.Route = "north"
				case 5:
					e = recent[rng.IntN(len(recent))]
					e.Route = "south" // an earlier event with the attribute "south"
				}
			}
			events = append(events, e)
			sofar = append(sofar, e)
		}
		m.submit(rng, producer, events)
		pause := time.Duration(0)
		switch rng.IntN(8) {
		case 0, 1, 2:
			pause = time.Duration(rng.IntN(20)) * 100 * time.Millisecond
		case 3, 4:
			pause = time.Duration(rng.IntN(60)) * time.Second
		}
		if !m.sleep(pause) {
			break
		}
	}
}

// crowd fills the buffer: many groups with one event each.
func (m *modelRun) crowd(rng *rand.Rand, producer int) {
	most, groups := 600, 100+rng.IntN(1500)
	if m.crowded {
		most, groups = 30, 100+rng.IntN(400)
	}
	if !m.sleep(time.Duration(rng.IntN(most)) * time.Second) {
		return
	}
	for n := range groups {
		e := modelEvent{Key: fmt.Sprintf("crowd-%d-%d", producer, n), Group: fmt.Sprintf("crowd-%d", n)}
		producer = m.latest(producer)
		s := m.newSub(producer, "SendAsync", e, 0)
		m.producersOf(producer)[0].SendAsync(m.t.Context(), s.e, m.done(s))
		m.callReturned(s)
	}
}

// callOtherMethods calls Flush, Resume and other methods at random times, while other
// goroutines submit events.
func (m *modelRun) callOtherMethods(rng *rand.Rand) {
	for m.sleep(time.Duration(rng.IntN(120)) * time.Second) {
		n := m.latest(rng.IntN(m.processes))
		p := m.producersOf(n)[0]
		chance := rng.IntN(6)
		if m.seed%2 == 0 {
			// In half of the programs, never resume a group: choose only between Flush
			// and the default case.
			chance %= 2
			chance *= 5
		}
		switch chance {
		case 0:
			ctx, cancel := context.WithTimeout(m.t.Context(), time.Duration(1+rng.IntN(60))*time.Second)
			m.flush(ctx, n)
			cancel()
		case 1:
			m.mu.Lock()
			m.resumed = true
			m.mu.Unlock()
			for group := range p.Paused() {
				if rng.IntN(2) == 0 {
					p.Resume(group)
				}
			}
		case 2:
			m.mu.Lock()
			m.resumed = true
			m.mu.Unlock()
			p.ResumeAll()
		default:
			_, _ = p.Paused(), p.Stats()
		}
	}
}

// maybeResend resends some events after their outcome, at a time when errors are likely,
// for example just before ResendBefore.
func (m *modelRun) maybeResend(s *modelSub) {
	rng := rand.New(rand.NewPCG(m.seed^uint64(s.id), 17))
	m.mu.Lock()
	m.events[s.body]++
	often := m.events[s.body] > 6
	m.mu.Unlock()
	if often || errors.Is(s.err, sqsfifo.ErrClosed) || len(s.e.Group) > 2 && rng.IntN(4) > 0 {
		return
	}
	seconds := func(from, to int) time.Duration {
		return time.Duration(10*from+rng.IntN(10*(to-from)+1)) * 100 * time.Millisecond
	}
	wait := time.Duration(0)
	var doubt *sqsfifo.InDoubtError
	switch {
	case errors.As(s.err, &doubt):
		switch rng.IntN(6) {
		case 0:
		case 1:
			wait = doubt.ResendBefore.Sub(m.on.wall()) - seconds(0, 2)
		case 2:
			wait = doubt.ResendBefore.Sub(m.on.wall()) - seconds(0, 30)
		case 3:
			wait = doubt.ResendBefore.Sub(m.on.wall()) + seconds(0, 30)
		case 4:
			wait = doubt.Since.Sub(m.on.wall()) + seconds(290, 330)
		case 5:
			wait = doubt.Since.Sub(m.on.wall()) + seconds(305, 325)
		}
	case s.err != nil:
		switch rng.IntN(4) {
		case 0:
		case 1:
			wait = seconds(0, 10)
		case 2:
			wait = seconds(0, 320)
		case 3:
			return
		}
	default:
		switch rng.IntN(6) {
		case 0:
			wait = seconds(0, 10)
		case 1:
			wait = seconds(250, 310)
		case 2:
			wait = seconds(285, 300)
		default:
			return
		}
	}
	m.spawn(func() {
		if m.sleep(wait) {
			m.submit(rng, s.producer, []modelEvent{s.e})
		}
	})
}

// submit submits events by a random method.
func (m *modelRun) submit(rng *rand.Rand, producer int, events []modelEvent) {
	ctx, limited := m.t.Context(), rng.IntN(4) == 0
	if limited {
		most := []int{1, 30, 300, 4000}[rng.IntN(4)]
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(rng.IntN(most))*100*time.Millisecond)
		m.mu.Lock()
		m.cancels = append(m.cancels, cancel)
		m.mu.Unlock()
	}
	producer = m.latest(producer)
	ps := m.producersOf(producer)
	p := ps[rng.IntN(len(ps))]
	how := []string{"SendAsync", "SendAsync", "TrySend", "SendBatch", "Send", "SendMessage"}[rng.IntN(6)]
	subs := make([]*modelSub, len(events))
	each := func(f func(s *modelSub)) {
		for i, e := range events {
			s := m.newSub(producer, how, e, i)
			f(s)
			m.callReturned(s)
		}
	}
	switch how {
	case "SendAsync":
		each(func(s *modelSub) { p.SendAsync(ctx, s.e, m.done(s)) })
		return
	case "TrySend":
		each(func(s *modelSub) {
			if err := p.TrySend(ctx, s.e, m.done(s)); err != nil {
				m.end(s, sqsfifo.Receipt{}, err)
			}
		})
		return
	}
	wait := func() {
		switch how {
		case "SendBatch":
			for i, e := range events {
				subs[i] = m.newSub(producer, how, e, i)
				events[i] = subs[i].e
			}
			m.setCall(subs)
			for i, r := range p.SendBatch(ctx, events) {
				m.end(subs[i], r.Receipt, r.Err)
			}
			for _, s := range subs {
				m.callReturned(s)
			}
		case "Send":
			each(func(s *modelSub) {
				r, err := p.Send(ctx, s.e)
				m.end(s, r, err)
			})
		case "SendMessage":
			each(func(s *modelSub) {
				msg, err := p.Build(s.e)
				if err != nil {
					m.end(s, sqsfifo.Receipt{}, err)
					return
				}
				r, err := p.SendMessage(ctx, msg)
				m.end(s, r, err)
			})
		}
	}
	if rng.IntN(3) == 0 {
		wait()
		return
	}
	events = slices.Clone(events)
	m.spawn(wait)
}

// newSub records a submission before the producer gets the event. The simulated network
// finds the submission by its number in modelEvent.Tag.
func (m *modelRun) newSub(producer int, how string, e modelEvent, place int) *modelSub {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clock++
	s := &modelSub{id: len(m.subs), producer: producer, place: place, how: how, e: e, madeAt: m.clock, made: m.on.now()}
	s.e.Tag = s.id
	if msg, err := m.producers[producer][0].Build(s.e); err == nil {
		s.body = msg.Body
	}
	m.subs = append(m.subs, s)
	m.note(s, nil, "submitted by "+how)
	return s
}

// setCall records that one call of SendBatch made the submissions.
func (m *modelRun) setCall(subs []*modelSub) {
	for _, s := range subs {
		s.call = subs[0].id + 1
	}
}

// callReturned records that the call of submission s has returned. A submission made
// after the return counts as later than s.
func (m *modelRun) callReturned(s *modelSub) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clock++
	s.returnedAt = m.clock
}

// precedes reports whether s was submitted before o.
func (s *modelSub) precedes(o *modelSub) bool {
	if s.call > 0 && s.call == o.call {
		return s.place < o.place
	}
	return s.returnedAt > 0 && s.returnedAt < o.madeAt
}

// done returns a submission's callback.
func (m *modelRun) done(s *modelSub) func(sqsfifo.Receipt, error) {
	return func(r sqsfifo.Receipt, err error) {
		m.end(s, r, err)
		if m.slow && s.id%7 == 0 {
			time.Sleep(time.Duration(s.id%30) * 100 * time.Millisecond)
		}
	}
}

// end records the outcome of a submission. Then maybeResend may send the event again.
func (m *modelRun) end(s *modelSub, r sqsfifo.Receipt, err error) {
	m.mu.Lock()
	m.clock++
	s.reported, s.reportedAt = m.on.now(), m.clock
	s.receipt, s.err = r, err
	if s.outcomes++; s.outcomes > 1 {
		m.fail(s, "%d outcomes", s.outcomes)
	}
	m.note(s, nil, s.outcome())
	m.mu.Unlock()
	m.maybeResend(s)
}

func (s *modelSub) outcome() string {
	switch {
	case s.outcomes == 0:
		return "no outcome"
	case s.err != nil:
		return s.err.Error()
	}
	return fmt.Sprintf("receipt: number %q, duplicate %v, overtaken %v, %d attempts",
		s.receipt.SequenceNumber, s.receipt.Duplicate, s.receipt.Overtaken, s.receipt.Attempts)
}
