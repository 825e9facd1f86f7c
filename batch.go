package sqsfifo

import (
	"errors"
	"fmt"
	"time"
)

// The limits of one SendMessageBatch (F-054, F-057).
const (
	maxBatchEntries = 10
	maxBatchBytes   = 1 << 20

	// maxMessageBytes is the most that a queue may take of one message (F-073).
	maxMessageBytes = 1 << 20
)

// batch is what one worker does at a time.
type batch struct {
	lanes    []*lane    // busy until it is through
	sends    []*pending // those of one lane side by side
	outcomes []outcome  // of sends
	size     int
	ended    []ended // what to tell
}

// ended is an outcome that is decided and not told yet.
type ended struct {
	p        *pending
	receipt  Receipt
	err      error
	attempts int  // the requests that it was in
	replay   bool // this producer had sent it before
}

// isFull reports whether the ready lanes fill a request.
func (s *scheduler) isFull() bool {
	entries, bytes := 0, 0
	for l := s.ready.head; l != nil; l = l.next {
		of := 0
		for p := l.head; p != nil && of < s.perLane(); p = p.next {
			if bytes += p.size; bytes > maxBatchBytes {
				return true
			}
			of++
			if entries++; entries == maxBatchEntries {
				return true
			}
		}
	}
	return false
}

// perLane is how many events of a group share a request.
func (s *scheduler) perLane() int {
	if s.order == Runs {
		return maxBatchEntries
	}
	return 1
}

// take makes a batch of the ready lanes, or returns nil where none had anything
// to send.
func (s *scheduler) take() *batch {
	b := &batch{}
	for s.ready.head != nil && len(b.sends) < maxBatchEntries {
		l := s.ready.pop()
		if !s.trim(l) {
			s.drop(l)
			continue
		}
		if !s.fill(b, l) {
			s.ready.pushFront(l)
			break
		}
		l.busy = true
		b.lanes = append(b.lanes, l)
	}
	if len(b.sends) == 0 {
		return nil
	}
	return b
}

// fill adds the head of a lane to the batch, with Runs as many events behind it
// as fit, and reports whether it did. Events that were in one request stay
// together: a lost answer may tell of any of them.
func (s *scheduler) fill(b *batch, l *lane) bool {
	whole := len(b.sends) > 0 // the batch may leave the lane to the next one
	first, size := len(b.sends), b.size
	for p := l.head; p != nil && len(b.sends)-first < s.perLane(); p = p.next {
		if p.ended {
			continue
		}
		fits := len(b.sends) < maxBatchEntries && (len(b.sends) == 0 || size+p.size <= maxBatchBytes)
		if !fits && p.attempts > 0 && whole || !fits && len(b.sends) == first {
			b.sends = b.sends[:first]
			return false
		}
		// The first alone may be the one that lifts a pause.
		if !fits || len(b.sends) > first && (p.refusal != nil || s.paused[l.group] != nil || p.series.stops(p) != nil) {
			break
		}
		b.sends = append(b.sends, p)
		size += p.size
	}
	b.size = size
	return true
}

// request sends a batch and decides what became of its events.
func (s *scheduler) request(b *batch) {
	b.outcomes = make([]outcome, len(b.sends))
	began := time.Now()
	flying := s.claimAll(b, began)
	s.inDoubtSince(flying)
	what := passedPace
	if len(flying) > 0 {
		var outcomes []outcome
		outcomes, what = s.attempt(flying)
		for i, at := 0, 0; i < len(b.sends); i++ {
			if !b.outcomes[i].unsent {
				b.outcomes[i] = outcomes[at]
				at++
			}
		}
	}
	now := time.Now()
	for i, p := range b.sends {
		if o := &b.outcomes[i]; o.err == nil {
			o.duplicate = s.memory.stored(now, p.first, p.sent, p.claim, o.messageID, o.sequence)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(flying) > 0 {
		s.pacer.answered(now, began, what)
	}
	first := 0
	for _, l := range b.lanes {
		n := 1
		for first+n < len(b.sends) && b.sends[first+n].msg.Group == l.group {
			n++
		}
		s.settle(b, l, b.sends[first:first+n], b.outcomes[first:first+n], now)
		first += n
	}
}

// inDoubtSince lets the interval of an event that was in doubt before begin with
// its first attempt then: SQS may have taken that one.
func (s *scheduler) inDoubtSince(flying []*pending) {
	for _, p := range flying {
		if p.claim.doubtful.IsZero() {
			continue
		}
		s.mu.Lock()
		p.first = p.claim.doubtful
		s.mu.Unlock()
	}
}

// claimAll opens a record in the memory for each event that was never tried and
// returns those that may be sent. What is behind a refused one of its group waits
// for the next request.
func (s *scheduler) claimAll(b *batch, now time.Time) []*pending {
	flying := make([]*pending, 0, len(b.sends))
	held := false
	for i, p := range b.sends {
		held = held && p.msg.Group == b.sends[i-1].msg.Group
		if !held && !p.claimed {
			c, err := s.memory.claim(now, p.msg, p.sent)
			if found := collision(err); found != nil {
				s.telemetry.collided(p.ctx)
				if s.enforce == Warn {
					s.warn(p, found...)
					c, err = s.memory.replace(now, p.sent, c)
				}
			}
			if err != nil {
				held = true
				b.outcomes[i] = outcome{err: err, unsent: true, refused: true}
				continue
			}
			p.claim, p.claimed = c, true
		}
		if held {
			b.outcomes[i] = outcome{err: errHeld, unsent: true}
			continue
		}
		flying = append(flying, p)
	}
	return flying
}

var errHeld = errors.New("not sent in this request")

// settle decides what became of the events of one lane that were in a request.
// From the first one on that is to be tried again, all stay where they are.
func (s *scheduler) settle(b *batch, l *lane, sends []*pending, outcomes []outcome, now time.Time) {
	last := markOvertaken(outcomes)
	stay := false
	for i, p := range sends {
		o := &outcomes[i]
		p.flying = false
		p.ambiguous = p.ambiguous || o.ambiguous
		if o.unsent {
			p.attempts--
		} else {
			p.last = o
		}
		if o.err != nil && i < last {
			o.err = fmt.Errorf("%w: %w", ErrOvertaken, o.err)
			o.retry = false
		}
		mayRetry := o.retry && !p.ended && age(p.first, now) < s.retryFor
		switch {
		case stay:
			continue
		case mayRetry:
			l.notBefore = now.Add(backoff(p.attempts))
			stay = true
			continue
		case o.unsent && !o.refused: // and so are those behind it
			continue
		}
		for l.pop() != p { // those before it have been withdrawn
		}
		s.end(b, p, o, now)
	}
}

// end decides the outcome of an event after its last request.
func (s *scheduler) end(b *batch, p *pending, o *outcome, now time.Time) {
	var e ended
	switch {
	case o.err == nil:
		if why := s.paused[p.msg.Group]; why != nil && why.key == p.msg.DedupeKey {
			delete(s.paused, p.msg.Group)
		}
		e = ended{p: p, receipt: p.receipt(o)}
	case o.refused:
		if !s.skip {
			p.series.refuse(p.msg)
		}
		e = ended{p: p, err: o.err}
	default:
		e = ended{p: p, err: s.unsent(p, *o)}
		s.forget(now, p)
		s.fail(p, e.err)
	}
	if !p.ended {
		p.ended = true
		e.attempts, e.replay = p.attempts, p.isReplay()
		b.ended = append(b.ended, e)
	}
}

// markOvertaken finds out of the outcomes of one group which events were
// overtaken by one behind them, and returns the index of the last stored one, or
// -1. Sequence numbers increase in a group, so that one that is above that of a
// later event was given after it: an earlier request, whose answer was lost, had
// stored the later event and not this one. A duplicate says nothing: its number is
// that of an earlier send.
func markOvertaken(outcomes []outcome) (last int) {
	last = -1
	var lowest sequence
	for i := len(outcomes) - 1; i >= 0; i-- {
		o := &outcomes[i]
		if o.err != nil || o.duplicate {
			continue
		}
		last = max(last, i)
		number := parseSequence(o.sequence)
		if lowest.known && number.known && number.isAfter(lowest) {
			o.overtaken = true
			continue
		}
		lowest = number
	}
	return last
}
