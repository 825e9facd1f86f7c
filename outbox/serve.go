package outbox

import (
	"context"
	"errors"
	"sync"
	"time"
)

// gatherTime is the longest wait between the first confirmed row and the commit that deletes
// it. More rows may be confirmed meanwhile, which saves commits.
const gatherTime = 2 * time.Millisecond

// serve sends messages and records the results in the database until the relay must end,
// another relay leads, or the lease ends.
func (t *leadership) serve(ctx context.Context) {
	t.recordLeading(true, t.fence)
	var submitter sync.WaitGroup
	submitter.Go(func() {
		for b := range t.readyBatches {
			t.sendNext(b)
		}
	})
	err := t.commitLoop(ctx)
	t.ending.Store(true)
	if errors.Is(err, errStopped) {
		err = t.finish()
	} else {
		t.withdraw(err)
		t.await(nil)
	}
	close(t.readyBatches) // all batches have ended, so the channel gets no more of them
	submitter.Wait()
	t.expiry.Stop()
	if !errors.Is(err, errDeposed) {
		// record known outcomes even after ctx has ended
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if len(t.toRemove)+len(t.toUnmark) > 0 {
			if _, err := t.commit(ctx, 0); err != nil {
				t.recordFailure("last commit", err)
			}
		}
		t.resign(ctx, t.fence)
	}
	t.withdraw(nil)
	t.recordLeading(false, t.fence)
	t.config.Logger.Info("outbox: no longer leading", "holder", t.config.Holder, "fence", t.fence, "cause", err)
}

// finish waits for all messages in flight until the context of Close ends. It then
// cancels the remaining sends and waits for their outcomes.
func (t *leadership) finish() error {
	t.await(t.abort)
	t.withdraw(errStopped)
	t.await(nil)
	return errStopped
}

// await waits for all messages in flight and records their outcomes. It stops waiting
// when the channel `abort` is closed.
func (t *leadership) await(abort <-chan struct{}) {
	for len(t.inFlight) > 0 {
		select {
		case b := <-t.finishedBatches:
			t.recordEnd(b)
		case <-abort:
			return
		}
	}
}

// commitLoop calls the method `commit` repeatedly until the relay must not lead any more,
// and returns the reason.
func (t *leadership) commitLoop(ctx context.Context) error {
	poll := time.NewTicker(min(t.config.Poll, t.config.Lease/4))
	defer poll.Stop()
	lookForRows := true // check the database for new rows, because the outbox may have some
	for {
		if len(t.toRemove)+len(t.toUnmark) == 0 && !t.moreWaiting && !lookForRows {
			select {
			case b := <-t.finishedBatches:
				t.recordEnd(b)
			case <-t.wake:
				lookForRows = true
			case <-poll.C:
				lookForRows = true
			case <-t.stop:
				return errStopped
			case <-t.sends.Done():
				return context.Cause(t.sends)
			}
		}
		t.gather()
		if t.stopping() {
			return errStopped
		}
		if t.sends.Err() != nil {
			return context.Cause(t.sends)
		}
		select { // do not wait; if Wake was called, check for new rows now
		case <-t.wake:
			lookForRows = true
		default:
		}
		room := t.config.Groups - len(t.inFlight)
		due := len(t.toRemove)+len(t.toUnmark) > 0 || t.moreWaiting && room > 0 || t.clock.Now().Sub(t.renewedAt) > t.config.Lease/3
		err := error(nil)
		if !due && lookForRows && room > 0 {
			due, err = t.anyWaiting(ctx)
		}
		lookForRows, t.moreWaiting = false, t.moreWaiting && room > 0 && due
		if due && err == nil {
			var batches []*rowBatch
			if batches, err = t.commit(ctx, room); err == nil {
				t.start(batches)
			}
		}
		switch {
		case errors.Is(err, errDeposed):
			return err
		case err != nil && ctx.Err() == nil:
			t.recordFailure("commit", err)
			lookForRows = true
			t.failures++
			if err := t.pause(ctx, min(time.Duration(t.failures)*20*time.Millisecond, time.Second)); err != nil {
				return err
			}
		}
	}
}

// gather records the outcomes of ended batches. If the next commit has rows to remove,
// gather waits up to gatherTime for more outcomes, to save commits.
func (t *leadership) gather() {
	var enough <-chan time.Time
	for {
		select {
		case b := <-t.finishedBatches:
			t.recordEnd(b)
			continue
		default:
		}
		if len(t.inFlight) == 0 || len(t.toRemove) == 0 {
			return
		}
		if enough == nil {
			enough = time.After(gatherTime)
		}
		select {
		case b := <-t.finishedBatches:
			t.recordEnd(b)
		case <-enough:
			return
		case <-t.sends.Done():
			return
		}
	}
}

func (t *leadership) start(batches []*rowBatch) {
	for _, b := range batches {
		t.inFlight[b.group] = b
		b.ctx, b.end = t.clock.WithDeadline(t.sends, b.deadline, errTooLate)
		t.readyBatches <- b
	}
	t.mu.Lock()
	t.stats.InFlight = len(t.inFlight)
	t.mu.Unlock()
}

// mayBegin reports whether the batch may send its row with the index `next` now. After the
// first quarter of ResendFor, an untried batch may send only its first row: a later row would
// have too little time for resends, and waits for a batch with a new deadline. No row may be
// sent after the batch's deadline, after the end of the lease, or when the relay stops.
func (t *leadership) mayBegin(b *rowBatch, next int) bool {
	left := b.deadline.Sub(t.clock.Now())
	return !t.ending.Load() && !t.stopping() && t.sends.Err() == nil && !t.expiry.Over() && left > 0 &&
		(next == 0 || !b.untried || left > t.outbox.config.ResendFor*3/4)
}

// recordEnd records the confirmed rows of an ended batch. A failed row stops its group,
// unless the relay itself has cancelled all sends.
func (t *leadership) recordEnd(b *rowBatch) {
	delete(t.inFlight, b.group)
	done := b.completions()
	t.toRemove = append(t.toRemove, done...)
	t.count(done, len(t.inFlight))
	if len(b.receipts) > 0 {
		t.resume(b.group)
	}
	if len(b.receipts) == len(b.rows) {
		return
	}
	if b.untried {
		t.unmarkAfter(b.group, b.mayBeStored())
	}
	if b.err != nil && t.sends.Err() == nil {
		t.recordStop(b)
	}
}

func (t *leadership) recordStop(b *rowBatch) {
	t.recordStopped(StoppedGroup{
		Group: b.group, Position: b.rows[len(b.receipts)].position, DedupeKey: b.key,
		Fate: b.fate(), Err: b.err,
	})
}
