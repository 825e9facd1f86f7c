package consumer

import (
	"slices"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/clock"
)

const (
	// singleReceives: from this receive count, a message may have crashed a consumer.
	singleReceives = 2

	// suspectReceives: from this receive count, a message may have crashed two consumers.
	suspectReceives = 3

	mostPolls = 16 // concurrent receives
)

// extend begins a period of one visibility timeout, unless the period runs. After a period no
// other one begins until no call of extend has come for two visibility timeouts. The
// caller holds e.mu.
func (p *period) extend(e *engine, now clock.Instant) {
	if now >= p.trustedUntil {
		p.until = now.Add(e.visibility)
		e.wakeAt(p.until, now)
	}
	p.trustedUntil = max(p.until, now.Add(2*e.visibility))
}

func (p *period) runs(now clock.Instant) bool { return now < p.until }

// suspect looks for signs of a crash in the first message of a batch, and begins a period of
// caution if there are any. Messages that this process gave up do not count. The caller holds
// e.mu.
func (e *engine) suspect(b *groupBatch, now clock.Instant) {
	it := b.items[0]
	it.suspicion = it.receives - e.givenUp[it.id()].receives
	if it.suspicion >= singleReceives {
		e.single.extend(e, now)
	}
	if !e.nearLimit(it) || e.isCondemned(it) {
		return
	}
	e.last.extend(e, now)
	b.suspect = true
	e.suspectsInHand++
}

// isCondemned reports whether Failure.Action applies to a message without a handler call.
func (e *engine) isCondemned(it *item) bool {
	return it.first && e.rules.Deliveries > 0 && it.suspicion > e.rules.Deliveries
}

// nearLimit reports whether a few more crashes would bring a suspect to the limit.
func (e *engine) nearLimit(it *item) bool {
	return e.limit > 0 && it.suspicion >= suspectReceives && it.suspicion > e.limit/2
}

// isSuspect reports whether the first message of a batch is a suspect in a running period.
// The caller holds e.mu.
func (e *engine) isSuspect(b *groupBatch, now clock.Instant) bool {
	return b.suspect && e.last.runs(now)
}

// grant lets waiting batches call the handler, up to Config.Groups at a time. In a period of
// caution a suspect waits for the ordinary messages in hand, and they wait while it runs. The
// caller holds e.mu.
func (e *engine) grant() {
	defer e.cond.Broadcast()
	now := e.clock.Now()
	if e.isClosing() || e.aloneRuns && e.last.runs(now) {
		return
	}
	for i := 0; i < len(e.waiting) && e.running < e.groups; {
		if t := e.waiting[i]; e.isSuspect(t.batch, now) {
			i++
		} else {
			e.waiting = slices.Delete(e.waiting, i, i+1)
			e.begin(t)
		}
	}
	e.grantSuspect(now)
}

func (e *engine) begin(t *waiter) {
	e.running++
	e.setState(t.batch, stateHandling)
	t.batch.calledAt = e.clock.Now()
	close(t.granted)
}

// wakeAt wakes the waiting receivers and batches at the end of a period.
func (e *engine) wakeAt(at, now clock.Instant) {
	time.AfterFunc(at.Sub(now), func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.grant()
	})
}

// grantSuspect lets the suspect with the lowest receive count call the handler if no other
// message is in hand. A sleeping or blocked group does not count: it may wait for long. The
// caller holds e.mu.
func (e *engine) grantSuspect(now clock.Instant) {
	others := len(e.batches) - e.count[stateBlocked] - e.count[stateSleeping] + e.polls
	next := -1
	for i, t := range e.waiting {
		if !e.isSuspect(t.batch, now) {
			continue
		}
		others--
		if next < 0 || t.batch.items[0].suspicion < e.waiting[next].batch.items[0].suspicion {
			next = i
		}
	}
	if next < 0 || others > 0 {
		return
	}
	t := e.waiting[next]
	e.aloneRuns, t.batch.suspectRuns = true, true
	e.waiting = slices.Delete(e.waiting, next, next+1)
	e.begin(t)
}

// endSuspicion is called after the first handler call for a batch, or when the batch ends.
// The caller holds e.mu.
func (e *engine) endSuspicion(b *groupBatch) {
	if !b.suspect {
		return
	}
	b.suspect = false
	e.suspectsInHand--
	if b.suspectRuns {
		e.aloneRuns = false
	}
}

// receiveLimits returns the largest number of messages per receive (perReceive) and of
// concurrent receives (polls). If no receive may start now, both are 0. The caller holds
// e.mu.
func (e *engine) receiveLimits(now clock.Instant) (perReceive, polls int) {
	switch {
	case e.last.runs(now) && e.suspectsInHand > 0:
		return 0, 0
	case e.last.runs(now):
		return 1, 1
	case e.single.runs(now):
		return 1, 4
	default:
		return e.perReceive, mostPolls
	}
}
