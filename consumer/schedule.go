package consumer

import (
	"slices"
	"time"
)

// acquire waits until a batch may call the handler. If it returns true, the caller calls
// the handler, and then the method `yield`. If it returns false, the batch or the consumer
// must end.
func (e *engine) acquire(b *groupBatch) bool {
	t := &waiter{batch: b, granted: make(chan struct{})}
	e.mu.Lock()
	e.setState(b, stateWaiting)
	e.waiting = append(e.waiting, t)
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
		e.waiting = slices.DeleteFunc(e.waiting, func(other *waiter) bool { return other == t })
	}
	if b.calledFor >= e.maxHold {
		b.cancel(ErrHeldTooLong)
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
	e.endSuspicion(b)
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
