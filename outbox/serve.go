package outbox

import (
	"context"
	"errors"
	"sync"
	"time"
)

// gatherTime is how long a commit waits for more groups with confirmed rows, so that one
// commit removes the rows of several groups.
const gatherTime = 2 * time.Millisecond

// serve commits and sends until the relay must end, another relay leads, or the lease ends.
func (t *leadership) serve(ctx context.Context) {
	t.recordLeading(true, t.fence)
	var submitter sync.WaitGroup
	submitter.Go(func() {
		for u := range t.steps {
			t.sendNext(u)
		}
	})
	err := t.work(ctx)
	t.ending.Store(true)
	if errors.Is(err, errStopped) {
		err = t.finish()
	} else {
		t.withdraw(err)
		t.await(nil)
	}
	close(t.steps) // no run sends to steps any more, because all runs have ended
	submitter.Wait()
	t.expiry.Stop()
	if !errors.Is(err, errDeposed) {
		// Known outcomes are written to the database even after ctx has ended.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if len(t.confirmed)+len(t.shortened) > 0 {
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

// finish waits for all messages in flight until the context of Close ends. Then it
// cancels the sends still in flight, and waits for their outcomes.
func (t *leadership) finish() error {
	t.await(t.abort)
	t.withdraw(errStopped)
	t.await(nil)
	return errStopped
}

// await waits for the messages in flight and records their outcomes. It returns early if
// abort is closed.
func (t *leadership) await(abort <-chan struct{}) {
	for len(t.inFlight) > 0 {
		select {
		case u := <-t.ends:
			t.recordEnd(u)
		case <-abort:
			return
		}
	}
}

// work makes commits and returns the reason for the end of leadership.
func (t *leadership) work(ctx context.Context) error {
	poll := time.NewTicker(min(t.config.Poll, t.config.Lease/4))
	defer poll.Stop()
	look := true // new rows may be waiting
	for {
		if len(t.confirmed)+len(t.shortened) == 0 && !t.more && !look {
			select {
			case u := <-t.ends:
				t.recordEnd(u)
			case <-t.wake:
				look = true
			case <-poll.C:
				look = true
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
		select { // this pass serves a signal that is already waiting
		case <-t.wake:
			look = true
		default:
		}
		room := t.config.Groups - len(t.inFlight)
		due := len(t.confirmed)+len(t.shortened) > 0 || t.more && room > 0 || t.clock.Now().Sub(t.renewedAt) > t.config.Lease/3
		err := error(nil)
		if !due && look && room > 0 {
			due, err = t.anyWaiting(ctx)
		}
		look, t.more = false, t.more && room > 0 && due
		if due && err == nil {
			var runs []*run
			if runs, err = t.commit(ctx, room); err == nil {
				t.start(runs)
			}
		}
		switch {
		case errors.Is(err, errDeposed):
			return err
		case err != nil && ctx.Err() == nil:
			t.recordFailure("commit", err)
			look = true
			t.failures++
			if err := t.pause(ctx, min(time.Duration(t.failures)*20*time.Millisecond, time.Second)); err != nil {
				return err
			}
		}
	}
}

// gather records the outcomes of the runs that have ended. If confirmed rows wait for
// their removal, gather waits up to gatherTime for more outcomes.
func (t *leadership) gather() {
	var enough <-chan time.Time
	for {
		select {
		case u := <-t.ends:
			t.recordEnd(u)
			continue
		default:
		}
		if len(t.inFlight) == 0 || len(t.confirmed) == 0 {
			return
		}
		if enough == nil {
			enough = time.After(gatherTime)
		}
		select {
		case u := <-t.ends:
			t.recordEnd(u)
		case <-enough:
			return
		case <-t.sends.Done():
			return
		}
	}
}

func (t *leadership) start(runs []*run) {
	for _, u := range runs {
		t.inFlight[u.group] = u
		u.ctx, u.end = t.clock.WithDeadline(t.sends, u.deadline, errTooLate)
		t.steps <- u
	}
	t.mu.Lock()
	t.stats.InFlight = len(t.inFlight)
	t.mu.Unlock()
}

// mayBegin reports whether the next message of a run may be sent. A run whose rows were
// never tried before (fresh) sends no further row after a quarter of ResendFor. Its
// remaining rows then wait for another commit, which marks them again with a full
// ResendFor.
func (t *leadership) mayBegin(u *run, next int) bool {
	left := u.deadline.Sub(t.clock.Now())
	return !t.ending.Load() && !t.stopping() && t.sends.Err() == nil && !t.expiry.Over() && left > 0 &&
		(next == 0 || !u.fresh || left > t.outbox.config.ResendFor*3/4)
}

// recordEnd handles the end of a run. It records the confirmed rows. After a failure it
// stops the group, unless the relay has cancelled all sends.
func (t *leadership) recordEnd(u *run) {
	delete(t.inFlight, u.group)
	done := u.completions()
	t.confirmed = append(t.confirmed, done...)
	t.count(done, len(t.inFlight))
	if len(u.receipts) > 0 {
		t.resume(u.group)
	}
	if len(u.receipts) == len(u.rows) {
		return
	}
	if u.fresh {
		t.shortenMark(u.group, u.mayBeStored())
	}
	if u.err != nil && t.sends.Err() == nil {
		t.recordStop(u)
	}
}

// recordStop adds the group of a failed run to the stopped groups.
func (t *leadership) recordStop(u *run) {
	t.recordStopped(Stopped{
		Group: u.group, Position: u.rows[len(u.receipts)].position, DedupeKey: u.key,
		Fate: u.fate(), Err: u.err,
	})
}
