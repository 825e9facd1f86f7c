package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/memory/store"
)

// lostAnswer is a failure for rig.fail: the store makes the change, and its answer is
// lost.
func lostAnswer(string) (before, after error) { return nil, idempotency.ErrAmbiguous }

// The store grants a submission's claim, but the store's answer is lost, and the
// submission ends. The next submission of the event has the same token, so the store
// grants its claim immediately. A third submission waits for the second.
func TestClaimAfterALostAnswer(t *testing.T) {
	for name, first := range map[string]func(*rig, *store.Claim){
		"ask":     func(r *rig, k *store.Claim) { require.Equal(r.t, store.Wait, r.ask(k).Kind) },
		"prepare": func(r *rig, k *store.Claim) { r.prepare(k) },
	} {
		t.Run(name, func(t *testing.T) {
			with(t, nil, func(t *testing.T, r *rig) {
				r.fail(lostAnswer)
				k := r.event("k")
				first(r, k)
				r.Release(k)
				time.Sleep(storeTimeout) // until optional calls are made again (pauseAfterFailure)
				r.fail(nil)
				require.Equal(t, idempotency.Running, r.record("k").Status)

				second, third := r.event("k"), r.event("k")
				r.look(second)
				r.Release(second) // the claimant keeps the unused token
				second = r.event("k")
				require.Equal(t, store.Granted, r.ask(second).Kind)
				require.Equal(t, store.Clear, second.Known().State)
				require.Equal(t, store.Wait, r.ask(third).Kind)
				w := new(waiter)
				r.Attempted(second, &stored, w)
				r.waitForWrites()
				require.Equal(t, idempotency.Succeeded, r.record("k").Status)
				require.Equal(t, store.Duplicate, r.ask(third).Kind)
			})
		})
	}
}

// The store grants the claim of a submission, but the store's answer is lost, and the
// submission ends. Prepare renews this claim for the next submission of the event.
func TestPrepareAfterALostAnswer(t *testing.T) {
	with(t, nil, func(t *testing.T, r *rig) {
		r.fail(lostAnswer)
		k := r.event("k")
		require.Equal(t, store.Wait, r.ask(k).Kind)
		r.Release(k)
		time.Sleep(storeTimeout)
		r.fail(nil)
		second := r.event("k")
		r.prepare(second)
		calls := r.called("claim")
		require.Equal(t, store.Granted, r.ask(second).Kind)
		require.Equal(t, calls, r.called("claim"))
	})
}

// If an attempt of a submission is in doubt, Release does not keep the token of the
// claim. The next submission of the event must wait for the end of the lease.
func TestNoClaimAfterAnAttempt(t *testing.T) {
	for name, tc := range map[string]struct {
		answer   attempt.Answer
		failOpen bool
	}{
		"in doubt": {doubtful, false}, "in doubt without a claim": {doubtful, true},
	} {
		t.Run(name, func(t *testing.T) {
			with(t, func(o *store.Options, _ *idempotency.PolicyConfig) { o.FailOpen = tc.failOpen }, func(t *testing.T, r *rig) {
				k := r.event("k")
				if tc.failOpen {
					r.fail(lostAnswer)
					require.Equal(t, store.Unclaimed, r.ask(k).Kind)
				} else {
					require.Equal(t, store.Granted, r.ask(k).Kind)
				}
				r.Attempted(k, &tc.answer, new(waiter))
				r.fail(lostAnswer)
				time.Sleep(storeTimeout)
				r.ask(k)
				r.Release(k)
				time.Sleep(storeTimeout)
				r.fail(nil)
				require.Equal(t, store.Wait, r.ask(r.event("k")).Kind)
			})
		})
	}
}
