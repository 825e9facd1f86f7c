package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/memory/store"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/verdict"
)

// lostAnswer, as the argument of rig.fail, makes the store lose all its answers: the
// store makes each change, but the call returns ErrAmbiguous.
func lostAnswer(string) (before, after error) { return nil, idempotency.ErrAmbiguous }

// The store grants the claim of a first submission, but the store's answer is lost, and
// the submission ends. The second submission of the event gets the token of the first, so
// the store grants its claim immediately. A third submission has another token and must
// wait.
func TestClaimAfterALostAnswer(t *testing.T) {
	for name, first := range map[string]func(*rig, *store.Claim){
		"ask":     func(r *rig, k *store.Claim) { require.Equal(r.t, verdict.KindWait, r.ask(k).Kind) },
		"prepare": func(r *rig, k *store.Claim) { r.prepare(k) },
	} {
		t.Run(name, func(t *testing.T) {
			with(t, nil, func(t *testing.T, r *rig) {
				r.fail(lostAnswer)
				k := r.event("k")
				first(r, k)
				r.Release(k)
				time.Sleep(storeTimeout) // longer than the pause after a failed call (pauseAfterFailure)
				r.fail(nil)
				require.Equal(t, idempotency.StatusRunning, r.record("k").Status)

				second, third := r.event("k"), r.event("k")
				// LookUp takes the kept token, and Release keeps it again for the next
				// claim.
				r.look(second)
				r.Release(second)
				second = r.event("k")
				require.Equal(t, verdict.KindGo, r.ask(second).Kind)
				require.Equal(t, verdict.StateClear, second.Known().State)
				require.Equal(t, verdict.KindWait, r.ask(third).Kind)
				w := new(waiter)
				r.Attempted(second, &stored, w)
				r.waitForWrites()
				require.Equal(t, idempotency.StatusSucceeded, r.record("k").Status)
				require.Equal(t, verdict.KindKnown, r.ask(third).Kind)
			})
		})
	}
}

// The store grants the claim of a submission, but the store's answer is lost, and the
// submission ends. Prepare leaves the claim to Ask, which begins it again.
func TestPrepareAfterALostAnswer(t *testing.T) {
	with(t, nil, func(t *testing.T, r *rig) {
		r.fail(lostAnswer)
		k := r.event("k")
		require.Equal(t, verdict.KindWait, r.ask(k).Kind)
		r.Release(k)
		time.Sleep(storeTimeout)
		r.fail(nil)
		second := r.event("k")
		r.prepare(second)
		calls := r.called("claim")
		require.Equal(t, verdict.KindGo, r.ask(second).Kind)
		require.Equal(t, calls+2, r.called("claim"))
	})
}

// An attempt is in doubt when its submission ends. Release must not keep the token of the
// claim for the next submission, because the attempt may still reach SQS. The next
// submission of the event must wait until the lease ends.
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
					require.Equal(t, verdict.KindGo, r.ask(k).Kind)
				} else {
					require.Equal(t, verdict.KindGo, r.ask(k).Kind)
				}
				r.Attempted(k, &tc.answer, new(waiter))
				r.fail(lostAnswer)
				time.Sleep(storeTimeout)
				r.ask(k)
				r.Release(k)
				time.Sleep(storeTimeout)
				r.fail(nil)
				require.Equal(t, verdict.KindWait, r.ask(r.event("k")).Kind)
			})
		})
	}
}
