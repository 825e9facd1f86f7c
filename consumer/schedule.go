package consumer

import (
	"slices"
	"time"
)

const (
	mostPolls = 16 // concurrent receives

	// cautiousReceives: from this receive count, a message may have crashed a consumer.
	cautiousReceives = 2

	// aloneReceives: from this receive count, a message may have killed two consumers, so it
	// waits, at most two visibility timeouts, until no other handler runs.
	aloneReceives = 3
)

// acquire waits until a batch may call the handler. If it returns true, the caller calls
// the handler, and then the method `yield`. If it returns false, the batch or the consumer
// must end.
func (e *engine) acquire(b *groupBatch, it *item) bool {
	t := &waiter{batch: b, granted: make(chan struct{})}
	e.mu.Lock()
	if it.first && it.receives >= aloneReceives && it.attempts == 0 {
		e.setState(b, stateWaitingAlone)
		t.receives, t.until = it.receives, time.Now().Add(2*e.visibility)
		e.waitingAlone = append(e.waitingAlone, t)
		time.AfterFunc(2*e.visibility, func() {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.grant()
		})
	} else {
		e.setState(b, stateWaiting)
		e.waiting = append(e.waiting, t)
	}
	e.grant()
	e.mu.Unlock()
	select {
	case <-t.granted:
	case <-b.ctx.Done():
	case <-e.closing:
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	granted := false
	select {
	case <-t.granted:
		granted = true
	default:
		isThis := func(other *waiter) bool { return other == t }
		e.waiting, e.waitingAlone = slices.DeleteFunc(e.waiting, isThis), slices.DeleteFunc(e.waitingAlone, isThis)
	}
	if granted && b.ctx.Err() == nil && !e.isClosing() {
		return true
	}
	if granted {
		e.handlerEnded(b)
	}
	e.grant()
	return false
}

// yield sets the batch's new state s after its handler has returned, and lets other batches
// call their handlers.
func (e *engine) yield(b *groupBatch, s state) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.handlerEnded(b)
	e.setState(b, s)
	e.grant()
}

// handlerEnded updates the number of running handlers after the handler of b has
// returned. The caller holds e.mu.
func (e *engine) handlerEnded(b *groupBatch) {
	e.running--
	if e.alone == b {
		e.alone = nil
	}
}

// grant lets waiting batches call the handler, up to Config.Groups at a time. While a
// message is handled alone (see aloneReceives), grant lets no other batch begin. The caller
// holds e.mu.
func (e *engine) grant() {
	defer e.cond.Broadcast()
	if e.isClosing() {
		return
	}
	for e.alone == nil && len(e.waiting) > 0 && e.running < e.groups {
		e.begin(e.waiting[0])
		e.waiting = slices.Delete(e.waiting, 0, 1)
	}
	if e.alone != nil || len(e.waitingAlone) == 0 {
		return
	}
	others := len(e.batches) - e.count[stateBlocked] - e.count[stateWaitingAlone]
	next := 0
	for i, t := range e.waitingAlone {
		if t.receives < e.waitingAlone[next].receives {
			next = i
		}
	}
	if others == 0 && e.polls == 0 || !time.Now().Before(e.waitingAlone[next].until) {
		e.alone = e.waitingAlone[next].batch
		e.begin(e.waitingAlone[next])
		e.waitingAlone = slices.Delete(e.waitingAlone, next, next+1)
	}
}

func (e *engine) begin(t *waiter) {
	e.running++
	e.setState(t.batch, stateHandling)
	close(t.granted)
}

// limitReceives makes receives smaller for a while if a message has a high receive count.
// Such a message may kill the process, and then SQS delivers again all messages that the
// process had received. The caller holds e.mu.
func (e *engine) limitReceives(it *item, now time.Time) {
	switch {
	case it.receives >= aloneReceives:
		e.aloneUntil = now.Add(2 * e.visibility)
		e.singleUntil = e.aloneUntil
	case it.receives >= cautiousReceives:
		e.receiveSinglyUntil(now.Add(e.visibility))
	default:
		return
	}
	e.wakeReceiversAt(e.singleUntil, now)
}

func (e *engine) receiveSinglyUntil(until time.Time) {
	if until.After(e.singleUntil) {
		e.singleUntil = until
	}
}

// wakeReceiversAt wakes the waiting receivers at the end of a limit on receives.
func (e *engine) wakeReceiversAt(at, now time.Time) {
	time.AfterFunc(at.Sub(now), func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.cond.Broadcast()
	})
}

// receiveLimits returns the largest number of messages per receive (perReceive) and of
// concurrent receives (polls). If no receive may start now, both are 0. limitReceives
// lowers both for a while. The caller holds e.mu.
func (e *engine) receiveLimits(now time.Time) (perReceive, polls int) {
	switch {
	case len(e.waitingAlone) > 0 || e.alone != nil:
		return 0, 0
	case now.Before(e.aloneUntil):
		if len(e.batches) > e.count[stateBlocked] {
			return 0, 0
		}
		return 1, 1
	case now.Before(e.singleUntil):
		return 1, 4
	default:
		return e.perReceive, mostPolls
	}
}

// pauseBatch waits in state s for the duration d (negative: without limit) or for an
// operator. If goOn is false, the batch must end. If the result `park` is not nil, the
// operator called ParkHead.
func (e *engine) pauseBatch(b *groupBatch, d time.Duration, s state) (goOn bool, park *operatorRequest) {
	e.mu.Lock()
	e.setState(b, s)
	e.grant()
	e.mu.Unlock()
	var over <-chan time.Time
	if d >= 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-over:
	case o := <-b.requests:
		if o.park {
			return true, &o
		}
		o.done <- nil
	case <-b.ctx.Done():
		return false, nil
	case <-e.closing:
		return false, nil
	}
	return !e.isClosing() && b.ctx.Err() == nil, nil
}

// abandon gives up the first message of a batch that must end. It returns true if the message
// may be deleted: the handler has succeeded, but the store has not recorded the success. For
// any other message, abandon ends the message's claim in the store, if it has one, so that
// another consumer can handle the message, and returns false.
func (e *engine) abandon(it *item) bool {
	if it.claim.unrecorded {
		return true
	}
	e.events.abandon(e.base, it, it.batch.endCause().Error())
	return false
}
