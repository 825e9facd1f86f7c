package store_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/memory/store"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/verdict"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
)

// After Release, the status of the store's record depends on the attempts: Succeeded
// after a confirmed attempt, Running while an attempt is in doubt, Failed after a refusal
// by SQS. If nothing was sent, the store has no record.
func TestWhatIsProved(t *testing.T) {
	for _, tc := range []struct {
		name       string
		attempts   []attempt.Answer
		afterCrash bool // before this claim, another claimant got a claim and crashed
		status     idempotency.Status
		doubt      bool // the record says that an attempt may have stored the event
	}{
		{"nothing was tried", nil, false, idempotency.StatusAbsent, false},
		{"nothing left this machine", []attempt.Answer{unsent, unsent}, false, idempotency.StatusAbsent, false},
		{"refused", []attempt.Answer{refused}, false, idempotency.StatusFailed, false},
		{"throttled, then not sent", []attempt.Answer{throttled, unsent}, false, idempotency.StatusFailed, false},
		{"in doubt", []attempt.Answer{doubtful}, false, idempotency.StatusRunning, true},
		{"in doubt, then refused", []attempt.Answer{doubtful, refused}, false, idempotency.StatusRunning, true},
		{"refused, then in doubt", []attempt.Answer{refused, doubtful}, false, idempotency.StatusRunning, true},
		{"altered", []attempt.Answer{{Fate: attempt.FateAltered}}, false, idempotency.StatusRunning, true},
		{"stored", []attempt.Answer{stored}, false, idempotency.StatusSucceeded, false},
		{"in doubt, then stored", []attempt.Answer{doubtful, stored}, false, idempotency.StatusSucceeded, false},
		{"nothing was tried after a crash", nil, true, idempotency.StatusRunning, true},
		{"refused after a crash", []attempt.Answer{refused}, true, idempotency.StatusRunning, true},
		{"stored after a crash", []attempt.Answer{stored}, true, idempotency.StatusSucceeded, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			with(t, nil, func(t *testing.T, r *rig) {
				if tc.afterCrash {
					require.Equal(t, verdict.KindGo, r.ask(r.event("k")).Kind)
					time.Sleep(lease)
				}
				k := r.event("k")
				if len(tc.attempts) == 0 {
					require.Equal(t, verdict.KindGo, r.ask(k).Kind)
				}
				for _, a := range tc.attempts {
					require.Equal(t, verdict.KindGo, r.ask(k).Kind)
					r.Attempted(k, &a, new(waiter))
				}
				r.Release(k)
				r.waitForWrites()
				got := r.record("k")
				require.Equal(t, tc.status, got.Status)
				require.Equal(t, tc.doubt, !got.DoubtSince.IsZero())
				if tc.status == idempotency.StatusSucceeded {
					require.Equal(t, idempotency.Result{MessageID: "id", SequenceNumber: "7"}, got.Result)
				}
			})
		})
	}
}

// One call of the method Ask, for three claims, makes only one call of the store. The third
// claim is for the same event as the first, and must wait.
func TestAskIsOneCall(t *testing.T) {
	with(t, nil, func(t *testing.T, r *rig) {
		all := []*store.Claim{r.event("a"), r.event("b"), r.event("a")}
		v := make([]verdict.Verdict, 3)
		r.Ask(t.Context(), all, v)
		require.Equal(t, 1, r.called("claim"))
		require.Equal(t, []verdict.Kind{verdict.KindGo, verdict.KindGo, verdict.KindWait}, []verdict.Kind{v[0].Kind, v[1].Kind, v[2].Kind})
		r.LookUp(t.Context(), all, v)
		require.Equal(t, 1, r.called("lookup"))
	})
}

// A lease starts with the store call. If the call is so slow that the rest of the lease
// is too short for an attempt, Ask returns KindWait instead of KindGo.
func TestLease(t *testing.T) {
	with(t, nil, func(t *testing.T, r *rig) {
		k := r.event("k")
		require.Equal(t, verdict.KindGo, r.ask(k).Kind)
		time.Sleep(lease - window.Arrival)
		require.True(t, r.MayLeave(k))
		time.Sleep(time.Nanosecond)
		require.False(t, r.MayLeave(k))
		require.Equal(t, verdict.KindGo, r.ask(k).Kind, "it is renewed")
		require.True(t, r.MayLeave(k))
		require.EqualValues(t, 1, r.Stats().Renewed)

		// The store answers so late that the rest of the lease is one nanosecond too short.
		// The call takes longer than the store timeout, because the fake store ignores its
		// context.
		r.slow = lease - oneAttempt - window.Arrival + 1
		v := r.ask(r.event("other"))
		require.Equal(t, verdict.KindWait, v.Kind)
		require.ErrorContains(t, v.Err, "lease")
		r.slow--
		require.Equal(t, verdict.KindGo, r.ask(r.event("third")).Kind)
	})
}

// While another claimant has a lease for the event, Ask returns KindWait with growing
// delays, at most a second. The last delay ends when the lease ends.
func TestInProgress(t *testing.T) {
	with(t, nil, func(t *testing.T, r *rig) {
		began := time.Now()
		require.Equal(t, verdict.KindGo, r.ask(r.event("k")).Kind)
		k := r.event("k")
		asked := 0
		for {
			v := r.ask(k)
			if v.Kind == verdict.KindGo {
				break
			}
			asked++
			require.Equal(t, verdict.KindWait, v.Kind)
			var busy *idempotency.InProgressError
			require.ErrorAs(t, v.Err, &busy)
			require.LessOrEqual(t, v.Delay, time.Second)
			require.Positive(t, v.Delay)
			known := k.Known()
			require.Equal(t, verdict.StateInDoubt, known.State)
			require.Equal(t, began.Add(resendFor), known.ResendUntil.In(began.Location()))
			require.Equal(t, began.Add(lease+305*time.Second), known.ForgottenAt.In(began.Location()))
			time.Sleep(v.Delay)
		}
		require.Equal(t, lease, time.Since(began).Truncate(time.Second))
		require.Less(t, asked, 90)
		require.EqualValues(t, 1, r.Stats().Reclaimed)
		require.Equal(t, verdict.StateInDoubt, k.Known().State, "the other claimant may have sent the event")
	})
}

// After an attempt in doubt, Ask grants another attempt only while SQS recognises the
// event.
func TestTooLateForAnotherAttempt(t *testing.T) {
	with(t, nil, func(t *testing.T, r *rig) {
		mine := r.event("mine")
		require.Equal(t, verdict.KindGo, r.ask(mine).Kind)
		r.Attempted(mine, &doubtful, new(waiter))
		refuted := r.event("refuted")
		require.Equal(t, verdict.KindGo, r.ask(refuted).Kind)
		r.Attempted(refuted, &throttled, new(waiter))
		require.Equal(t, verdict.KindGo, r.ask(r.event("theirs")).Kind) // this claimant crashes and does not use its claim again

		time.Sleep(resendFor - 1)
		require.Equal(t, verdict.KindGo, r.ask(mine).Kind)
		theirs := r.event("theirs")
		require.Equal(t, verdict.KindGo, r.ask(theirs).Kind)
		time.Sleep(time.Nanosecond)
		require.Equal(t, verdict.KindLate, r.ask(mine).Kind)
		require.Equal(t, verdict.KindLate, r.ask(theirs).Kind)
		require.Equal(t, verdict.KindGo, r.ask(refuted).Kind, "nothing is in doubt")

		time.Sleep(time.Hour)
		v := r.ask(r.event("theirs"))
		require.Equal(t, verdict.KindRefuse, v.Kind)
		var held *idempotency.UnresolvedError
		require.ErrorAs(t, v.Err, &held)
		require.EqualValues(t, 1, r.Stats().Unresolved)
	})
	again := func(_ *store.Options, p *idempotency.PolicyConfig) { p.Resend = true }
	with(t, again, func(t *testing.T, r *rig) {
		require.Equal(t, verdict.KindGo, r.ask(r.event("theirs")).Kind) // this claimant crashes and does not use its claim again
		time.Sleep(time.Hour)
		require.Equal(t, verdict.KindGo, r.ask(r.event("theirs")).Kind)
	})
}

// While the store does not answer, Ask returns KindWait, and the event's state (Known.State)
// is StateUnanswered. The state becomes StateClear when the store answers. With
// Options.FailOpen, Ask returns Unclaimed, so the event can be sent without a claim.
func TestStoreDown(t *testing.T) {
	with(t, nil, func(t *testing.T, r *rig) {
		r.fail(failBefore)
		k := r.event("k")
		require.Equal(t, verdict.StateUnknown, k.Known().State)
		require.Equal(t, verdict.KindNone, r.look(k).Kind)
		require.Equal(t, verdict.StateUnanswered, k.Known().State)
		require.ErrorIs(t, k.Known().Err, errDown)
		v := r.ask(k)
		require.Equal(t, verdict.KindWait, v.Kind)
		require.ErrorIs(t, v.Err, errDown)
		var of *idempotency.StoreError
		require.ErrorAs(t, v.Err, &of)
		r.look(r.event("other"))
		require.Equal(t, 1, r.called("lookup"), "LookUp makes no call in the pause after a failure")
		require.EqualValues(t, 2, r.Stats().Errors)

		r.fail(nil)
		time.Sleep(time.Second)
		r.look(r.event("other"))
		require.Equal(t, 2, r.called("lookup"))
		require.Equal(t, verdict.KindGo, r.ask(k).Kind)
		require.Equal(t, verdict.StateClear, k.Known().State)
		require.NoError(t, k.Known().Err)
	})
	open := func(o *store.Options, _ *idempotency.PolicyConfig) { o.FailOpen = true }
	with(t, open, func(t *testing.T, r *rig) {
		r.fail(failBefore)
		k := r.event("k")
		require.Equal(t, verdict.KindGo, r.ask(k).Kind)
		require.True(t, r.MayLeave(k))
		r.Attempted(k, &stored, new(waiter))
		require.Equal(t, verdict.KindGo, r.ask(r.event("other")).Kind)
		require.Equal(t, 1, r.called("claim"), "Ask makes no call in the pause after a failure")
		time.Sleep(time.Second)
		r.fail(nil)
		require.Equal(t, verdict.KindGo, r.ask(r.event("other")).Kind)
		r.waitForWrites()
		require.Zero(t, r.called("complete"), "there is no claim to complete")
	})
}

// The store timeout ends a hanging call.
func TestStoreHangs(t *testing.T) {
	hangs := func(o *store.Options, _ *idempotency.PolicyConfig) { o.Store = hanging{o.Store} }
	with(t, hangs, func(t *testing.T, r *rig) {
		began := time.Now()
		v := r.ask(r.event("k"))
		require.Equal(t, verdict.KindWait, v.Kind)
		require.ErrorIs(t, v.Err, context.DeadlineExceeded)
		require.Equal(t, storeTimeout, time.Since(began))
	})
}

type hanging struct{ idempotency.Store }

func (hanging) ClaimBatch(ctx context.Context, _ []idempotency.Claim) ([]idempotency.Outcome, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// The store grants a claim, but the store's answer is lost (ErrAmbiguous). The claimant makes
// the same claim once more, with the same token. The store then renews the claim.
func TestAmbiguous(t *testing.T) {
	with(t, nil, func(t *testing.T, r *rig) {
		n := 0
		r.fail(func(string) (before, after error) {
			if n++; n == 1 {
				return nil, fmt.Errorf("%w: connection lost", idempotency.ErrAmbiguous)
			}
			return nil, nil
		})
		require.Equal(t, verdict.KindGo, r.ask(r.event("k")).Kind)
		require.EqualValues(t, 1, r.record("k").Fence)

		// The answers of both calls of this Ask are lost. No request was made, so the next
		// Ask releases the claim and begins it again.
		r.fail(func(string) (before, after error) { return nil, idempotency.ErrAmbiguous })
		k := r.event("other")
		require.Equal(t, verdict.KindWait, r.ask(k).Kind)
		r.fail(nil)
		require.Equal(t, verdict.KindGo, r.ask(k).Kind)
		require.EqualValues(t, 1, r.Stats().New)
		require.EqualValues(t, 1, r.Stats().Renewed)
		require.Equal(t, 1, r.called("release"))

		// The store does not release the claim, or the answer is lost. The claim is not used:
		// the release may still take effect.
		for _, fault := range []func(call string) (before, after error){
			func(call string) (before, after error) { return map[string]error{"release": errDown}[call], nil },
			func(call string) (before, after error) { return nil, idempotency.ErrAmbiguous },
		} {
			r.fail(func(string) (before, after error) { return nil, errDown })
			k = r.event(fmt.Sprint(r.called("claim")))
			require.Equal(t, verdict.KindWait, r.ask(k).Kind)
			r.fail(fault)
			require.Equal(t, verdict.KindWait, r.ask(k).Kind)
			r.fail(nil)
			require.Equal(t, verdict.KindGo, r.ask(k).Kind)
		}
	})
}

// A claim takes over from one in doubt, and its answer is lost. A look-up of the next submission
// has the kept token and would renew the claim. The event is still in doubt.
func TestLookUpWithAKeptToken(t *testing.T) {
	with(t, nil, func(t *testing.T, r *rig) {
		k := r.event("k")
		require.Equal(t, verdict.KindGo, r.ask(k).Kind)
		r.Attempted(k, &doubtful, nil)
		r.Release(k)
		time.Sleep(lease)
		k = r.event("k")
		r.fail(func(string) (before, after error) { return nil, idempotency.ErrAmbiguous })
		require.Equal(t, verdict.KindWait, r.ask(k).Kind)
		require.Equal(t, idempotency.StatusRunning, r.record("k").Prior.Status)
		r.Release(k)
		r.fail(nil)
		time.Sleep(2 * time.Second) // the pause after a failed call

		k = r.event("k")
		require.Equal(t, verdict.KindNone, r.look(k).Kind)
		require.Equal(t, verdict.StateInDoubt, k.Known().State)
	})
}

// The store has recorded an event with other bytes than the new claim has. Ask and LookUp
// return KindAdopt. Adopt copies the recorded bytes to the claim, and the next Ask grants
// the claim.
func TestOther(t *testing.T) {
	with(t, nil, func(t *testing.T, r *rig) {
		require.Equal(t, verdict.KindGo, r.ask(r.claim("k", "payload", "old bytes")).Kind)
		time.Sleep(lease)
		for _, look := range []bool{true, false} {
			k := r.claim("k", "payload", "new bytes")
			question := r.ask
			if look {
				question = r.look
			}
			v := question(k)
			require.Equal(t, verdict.KindAdopt, v.Kind)
			require.True(t, v.Drift)
			require.Equal(t, verdict.StateInDoubt, k.Known().State)
			m := k.Adopt()
			require.Equal(t, store.Message{Body: []byte("old bytes"), Group: "g"}, m)
			v = r.ask(k)
			require.Equal(t, verdict.KindGo, v.Kind)
			require.False(t, v.Drift)
			r.Release(k)
			r.waitForWrites()
		}
		require.EqualValues(t, 2, r.Stats().Drifts)

		k := r.claim("k", "payload", "old bytes")
		require.Equal(t, verdict.KindGo, r.ask(k).Kind)
		r.Attempted(k, &stored, new(waiter))
		r.waitForWrites()
		for _, question := range []func(*store.Claim) verdict.Verdict{r.look, r.ask} {
			k = r.claim("k", "payload", "new bytes")
			require.Equal(t, verdict.Verdict{Kind: verdict.KindKnown, Drift: true}, question(k))
			require.Equal(t, &store.Message{Body: []byte("old bytes"), Group: "g"}, k.Known().Message)
			require.Equal(t, "id", k.Known().Result.MessageID)

			v := question(r.claim("k", "another payload", "bytes"))
			require.Equal(t, verdict.KindRefuse, v.Kind)
			var conflict *idempotency.ConflictError
			require.ErrorAs(t, v.Err, &conflict)
		}
	})
}

// The fingerprints of a record and a claim were computed in different ways
// (Fingerprint.Spec). To find out whether both are for the same event, Ask and LookUp
// compute the fingerprint of the record's body in the claim's way.
func TestAnotherSpec(t *testing.T) {
	recompute := func(o *store.Options, _ *idempotency.PolicyConfig) {
		o.Recompute = func(body []byte) (idempotency.Fingerprint, bool) {
			return idempotency.FingerprintOf("test/1", body), string(body) != "unreadable"
		}
	}
	with(t, recompute, func(t *testing.T, r *rig) {
		old := func(key, body string) {
			k, err := r.Claim(keyOf(key), idempotency.FingerprintOf("test/0", []byte("?")), store.Message{Body: []byte(body), Group: "g"}, idempotency.Dataset{})
			require.NoError(t, err)
			require.Equal(t, verdict.KindGo, r.ask(k).Kind)
		}
		old("equal", "payload")
		old("equal, looked up", "payload")
		old("different", "another payload")
		old("unreadable", "unreadable")
		time.Sleep(lease)
		require.Equal(t, verdict.KindGo, r.ask(r.claim("equal", "payload", "payload")).Kind)
		k := r.claim("equal, looked up", "payload", "payload")
		require.Equal(t, verdict.KindNone, r.look(k).Kind)
		require.Equal(t, verdict.StateInDoubt, k.Known().State)
		require.Equal(t, verdict.KindGo, r.ask(k).Kind)
		require.Equal(t, verdict.KindRefuse, r.ask(r.claim("different", "payload", "payload")).Kind)
		require.Equal(t, verdict.KindRefuse, r.look(r.claim("different", "payload", "payload")).Kind)

		k = r.claim("unreadable", "payload", "payload")
		v := r.ask(k)
		require.Equal(t, verdict.KindRefuse, v.Kind, "not a conflict")
		var incomparable *idempotency.IncomparableError
		require.ErrorAs(t, v.Err, &incomparable)
		require.Equal(t, verdict.StateInDoubt, k.Known().State)
		require.Equal(t, verdict.KindNone, r.look(k).Kind)
	})
}

// If a store returns too few results for the claims or keys, the call counts as failed:
// Ask returns KindWait, and LookUp returns KindNone.
func TestAStoreThatMiscounts(t *testing.T) {
	short := func(o *store.Options, _ *idempotency.PolicyConfig) { o.Store = miscounting{o.Store} }
	with(t, short, func(t *testing.T, r *rig) {
		require.Equal(t, verdict.KindWait, r.ask(r.event("k")).Kind)
		require.Equal(t, verdict.KindNone, r.look(r.event("k")).Kind)
	})
}

type miscounting struct{ idempotency.Store }

func (miscounting) ClaimBatch(context.Context, []idempotency.Claim) ([]idempotency.Outcome, error) {
	return nil, nil
}

func (miscounting) Lookup(context.Context, ...idempotency.Key) ([]idempotency.Record, error) {
	return nil, nil
}

func TestRefusedByTheStore(t *testing.T) {
	with(t, nil, func(t *testing.T, r *rig) {
		r.memory.Capacity = 1
		require.Equal(t, verdict.KindGo, r.ask(r.event("k")).Kind)
		k := r.event("other")
		v := r.ask(k)
		require.Equal(t, verdict.KindRefuse, v.Kind)
		var full *idempotency.CapacityError
		require.ErrorAs(t, v.Err, &full)
		require.Equal(t, verdict.StateClear, k.Known().State)
		require.EqualValues(t, 1, r.Stats().Full)

		r.memory.Capacity, r.memory.Quota = 0, 1
		v = r.ask(k)
		require.Equal(t, verdict.KindWait, v.Kind, "an operation of the scope may end")
		var quota *idempotency.QuotaError
		require.ErrorAs(t, v.Err, &quota)
		require.Equal(t, verdict.StateClear, k.Known().State)
		require.EqualValues(t, 1, r.Stats().OverQuota)

		r.fail(func(string) (before, after error) { return &idempotency.InvalidError{Field: "f", Rule: "r"}, nil })
		require.Equal(t, verdict.KindRefuse, r.ask(k).Kind, "the store would refuse it again")

		_, err := r.Claim(keyOf(""), idempotency.FingerprintOf("s", nil), store.Message{}, idempotency.Dataset{})
		require.ErrorContains(t, err, "Key.Value")
	})
}
