package consumer

import (
	"slices"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/clock"
)

const (
	// singleReceives: from this receive count, a message may have crashed a consumer.
	singleReceives = 2

	// suspectReceives: from this receive count, a message is a suspect: it may have crashed
	// two consumers.
	suspectReceives = 3

	// mostSuspects is how many suspects run concurrently, and how many of them end a period
	// of caution.
	mostSuspects = 3
)

// caution is the behaviour after suspected crashes. If a handler crashes the process, SQS
// delivers again all messages that the process had received, with higher receive counts. So
// the consumer keeps few messages while it handles a suspect. engine.mu guards the fields.
//
// The receipt of a suspect begins a period of caution. The period ends when mostSuspects
// suspects have been handled without a crash, and at the latest after one visibility
// timeout.
type caution struct {
	// limit is the receive count above which Failure.Action or the redrive policy applies. It
	// is 0 without a limit. In a period of its own, each suspect above half of the limit is
	// handled alone. So a message that crashes the process takes no other message along to
	// the limit.
	limit int

	single   period // each receive asks for one message
	suspects period // mostSuspects suspects run concurrently, and nothing beside them
	last     period // each suspect above half of the limit runs alone
	cleared  int    // handled suspects in the period `suspects`

	suspectsInHand  int  // batches whose first message is a suspect without a call of the handler
	suspectsRunning int  // running handlers of suspects
	aloneRuns       bool // the only running handler is of a suspect near the limit

	givenUp map[string]int // own receives of messages that this process gave up, by message ID
}

// period is a limited time of caution.
type period struct {
	until        clock.Instant // end of the period
	trustedUntil clock.Instant // no new period begins before this time
}

// extend begins a period of one visibility timeout, unless the period runs. After a period no
// other one begins until no call of extend has come for two visibility timeouts. The result
// reports whether a period began. The caller holds e.mu.
func (p *period) extend(e *engine, now clock.Instant) (begins bool) {
	if begins = now >= p.trustedUntil; begins {
		p.until = now.Add(e.visibility)
		e.wakeAt(p.until, now)
	}
	p.trustedUntil = max(p.until, now.Add(2*e.visibility))
	return begins
}

func (p *period) runs(now clock.Instant) bool { return now < p.until }

// mostGivenUp limits the size of caution.givenUp.
const mostGivenUp = 10_000

// noteGivenUp records that this process gives up a message without a crash. The message's
// next receive is then no sign of a crash. The caller holds e.mu.
func (e *engine) noteGivenUp(it *item) {
	if e.givenUp == nil || len(e.givenUp) >= mostGivenUp {
		e.givenUp = map[string]int{}
	}
	e.givenUp[it.id()]++
}

// suspect looks for signs of a crash in the first message of a batch, and begins a period of
// caution if there are any. Messages that this process gave up are no sign. The caller holds
// e.mu.
func (e *engine) suspect(b *groupBatch, now clock.Instant) {
	it := b.items[0]
	it.suspicion = it.receives - e.givenUp[it.id()]
	if it.suspicion >= singleReceives {
		e.single.extend(e, now)
	}
	if it.suspicion < suspectReceives || e.isCondemned(it) {
		return
	}
	if e.suspects.extend(e, now) {
		e.cleared = 0
	}
	if e.nearLimit(it) {
		e.last.extend(e, now)
	}
	b.suspect = true
	e.suspectsInHand++
}

// isCondemned reports whether Failure.Action applies to a message without a handler call.
func (e *engine) isCondemned(it *item) bool {
	return it.first && e.rules.Deliveries > 0 && it.suspicion > e.rules.Deliveries
}

// nearLimit reports whether a few more crashes would bring a suspect to the limit.
func (e *engine) nearLimit(it *item) bool {
	return e.limit > 0 && it.suspicion > e.limit/2
}

// isCautious reports whether a period runs in which suspects and other messages do not run
// concurrently.
func (e *engine) isCautious(now clock.Instant) bool {
	return e.suspects.runs(now) && e.cleared < mostSuspects || e.last.runs(now)
}

// isSuspect reports whether the first message of a batch is a suspect in a running period.
// The caller holds e.mu.
func (e *engine) isSuspect(b *groupBatch, now clock.Instant) bool {
	return b.suspect && (e.suspects.runs(now) && e.cleared < mostSuspects || e.last.runs(now) && e.nearLimit(b.items[0]))
}

// grantSuspects lets suspects call the handler if no ordinary message is in hand, those with
// the lowest receive counts first. A sleeping or blocked group does not count: it may wait
// for long. The caller holds e.mu.
func (e *engine) grantSuspects(now clock.Instant) {
	for e.running < e.groups && !e.aloneRuns {
		others := len(e.batches) - e.count[stateBlocked] - e.count[stateSleeping] - e.suspectsRunning
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
		if next < 0 || others > 0 || e.suspectsRunning >= mostSuspects {
			return
		}
		t := e.waiting[next]
		alone := e.last.runs(now) && e.nearLimit(t.batch.items[0])
		if alone && e.suspectsRunning+e.polls > 0 {
			return
		}
		e.aloneRuns = alone
		e.suspectsRunning++
		t.batch.suspectRuns = true
		e.waiting = slices.Delete(e.waiting, next, next+1)
		e.begin(t)
	}
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
		e.suspectsRunning--
		e.aloneRuns = false
		if e.cleared++; e.cleared == mostSuspects {
			e.single.until = 0
		}
	}
}

// receiveLimits returns the largest number of messages per receive (perReceive) and of
// concurrent receives (polls). If no receive may start now, both are 0. The caller holds
// e.mu.
func (e *engine) receiveLimits(now clock.Instant) (perReceive, polls int) {
	switch cautious := e.isCautious(now); {
	case cautious && e.suspectsInHand > 0:
		return 0, 0
	case e.last.runs(now):
		return 1, 1
	case cautious || e.single.runs(now):
		return 1, 4
	default:
		return e.perReceive, mostPolls
	}
}
