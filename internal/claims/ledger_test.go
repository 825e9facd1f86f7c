package claims_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/claims"
)

// sent claims an event and lets SQS store it.
func (r *rig) sent(key string, waiter *sync.WaitGroup) *claims.Claim {
	r.t.Helper()
	k := r.event(key)
	require.Equal(r.t, claims.Granted, r.ask(k).Kind)
	r.Attempted(k, &stored, waiter)
	return k
}

// Results gather for a few milliseconds, so that a store can write them together. An
// event whose result is on its way is known already.
func TestResultsAreTold(t *testing.T) {
	with(t, nil, func(t *testing.T, r *rig) {
		for i := range 10 {
			r.sent(fmt.Sprint(i), nil)
		}
		synctest.Wait()
		require.Zero(t, r.called("complete"))
		require.EqualValues(t, 10, r.Stats().Unsettled)
		for _, question := range []func(*claims.Claim) claims.Verdict{r.look, r.ask} {
			k := r.event("3")
			require.Equal(t, claims.Verdict{Kind: claims.Duplicate}, question(k))
			require.Equal(t, "id", k.Known().Result.MessageID)
		}
		require.Zero(t, r.called("lookup"))
		require.Equal(t, claims.Wait, r.ask(r.claim("3", "3", "other bytes")).Kind, "which bytes count, the store knows")
		r.told()
		require.Equal(t, 10, r.called("complete"))
		require.Zero(t, r.Stats().Unsettled)
		require.Equal(t, claims.Duplicate, r.look(r.event("3")).Kind)
		require.Equal(t, 1, r.called("lookup"))
		require.EqualValues(t, 3, r.Stats().Duplicates)
	})
}

// Many go at once, and what somebody waits for does, too.
func TestUrgentResults(t *testing.T) {
	with(t, nil, func(t *testing.T, r *rig) {
		began := time.Now()
		for i := range 64 {
			r.sent(fmt.Sprint(i), nil)
		}
		synctest.Wait()
		require.Equal(t, 64, r.called("complete"))
		var waiter sync.WaitGroup
		r.sent("first", &waiter)
		r.sent("second", &waiter)
		r.Await(&waiter)
		require.Equal(t, idempotency.Succeeded, r.record("first").Status)
		require.Equal(t, idempotency.Succeeded, r.record("second").Status)
		require.Zero(t, time.Since(began))

		r.fail(down)
		r.sent2("third", &waiter)
		r.Await(&waiter) // the store fails, and the receipt is given
		require.EqualValues(t, 1, r.Stats().Unsettled)
	})
}

// sent2 is sent with a store that is down for all but the claim.
func (r *rig) sent2(key string, waiter *sync.WaitGroup) {
	r.t.Helper()
	r.fail(nil)
	k := r.event(key)
	require.Equal(r.t, claims.Granted, r.ask(k).Kind)
	r.fail(down)
	r.Attempted(k, &stored, waiter)
}

// What the store does not take is told again, less and less often, for an hour.
func TestResultsAreTriedAgain(t *testing.T) {
	with(t, nil, func(t *testing.T, r *rig) {
		r.sent2("k", nil)
		time.Sleep(time.Minute)
		require.Less(t, r.called("complete"), 25)
		require.Greater(t, r.called("complete"), 10)
		require.Equal(t, claims.Duplicate, r.look(r.event("k")).Kind, "this process knows it")
		r.fail(nil)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.Equal(t, idempotency.Succeeded, r.record("k").Status)
		require.Zero(t, r.Stats().Lost)

		r.sent2("other", nil)
		time.Sleep(2 * time.Hour)
		require.EqualValues(t, 1, r.Stats().Lost)
		require.Zero(t, r.Stats().Unsettled)
	})
}

// A result whose answer was lost is told once more, and that is harmless.
func TestAmbiguousResult(t *testing.T) {
	with(t, nil, func(t *testing.T, r *rig) {
		r.fail(func(call string) (before, after error) {
			if call == "complete" && r.calls[call] == 1 {
				return nil, idempotency.ErrAmbiguous
			}
			return nil, nil
		})
		r.sent("k", nil)
		r.told()
		require.Equal(t, 2, r.called("complete"))
		require.Zero(t, r.Stats().Stale+r.Stats().Lost+r.Stats().Unsettled)
	})
}

// A claimant that was overtaken changes nothing, and goes on.
func TestStale(t *testing.T) {
	with(t, nil, func(t *testing.T, r *rig) {
		zombie := r.event("k")
		require.Equal(t, claims.Granted, r.ask(zombie).Kind)
		time.Sleep(lease)
		other := r.event("k")
		require.Equal(t, claims.Granted, r.ask(other).Kind)
		r.Attempted(zombie, &stored, nil)
		r.told()
		require.EqualValues(t, 1, r.Stats().Stale)
		require.Zero(t, r.Stats().Lost+r.Stats().Errors)
		require.Equal(t, idempotency.Running, r.record("k").Status)
		r.Attempted(other, &stored, nil)
		r.told()
		require.Equal(t, idempotency.Succeeded, r.record("k").Status)
	})
}

// There is a bound on what waits for a store.
func TestTooManyUnsettled(t *testing.T) {
	with(t, nil, func(t *testing.T, r *rig) {
		const most = 10_000
		for i := range most + 5 {
			r.sent(fmt.Sprint(i), nil)
			r.fail(func(call string) (before, after error) {
				if call == "complete" {
					return errDown, nil
				}
				return nil, nil
			})
		}
		require.EqualValues(t, most, r.Stats().Unsettled)
		require.EqualValues(t, 5, r.Stats().Lost)
		require.Equal(t, claims.Duplicate, r.ask(r.event("9000")).Kind)
	})
}

// Close waits for the store ten seconds, or until its context ends.
func TestClose(t *testing.T) {
	with(t, nil, func(t *testing.T, r *rig) {
		r.sent("k", nil)
		began := time.Now()
		lost, err := r.Close(t.Context())
		require.NoError(t, err)
		require.Zero(t, lost)
		require.Less(t, time.Since(began), 50*time.Millisecond)
		require.Equal(t, idempotency.Succeeded, r.record("k").Status)
		late := r.event("late")
		require.Equal(t, claims.Granted, r.ask(late).Kind)
		r.Attempted(late, &stored, nil)
		lost, err = r.Close(t.Context())
		require.EqualValues(t, 1, lost)
		require.ErrorContains(t, err, "closed")
	})
	for _, limit := range []time.Duration{3 * time.Second, time.Hour} {
		with(t, nil, func(t *testing.T, r *rig) {
			r.sent2("k", nil)
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			lost, err := r.Close(ctx)
			require.EqualValues(t, 1, lost)
			require.ErrorIs(t, err, errDown)
			require.Equal(t, min(limit, 10*time.Second), time.Since(began))
			require.Equal(t, idempotency.Running, r.record("k").Status)
		})
	}
	with(t, nil, func(t *testing.T, r *rig) { // nothing to tell
		lost, err := r.Close(t.Context())
		require.NoError(t, err)
		require.Zero(t, lost)
	})
}
