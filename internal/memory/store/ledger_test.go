package store_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/memory/store"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/verdict"
)

// claimAndStore claims an event, and reports to the Claimant, in a call of Attempted, that
// SQS stored the event.
func (r *rig) claimAndStore(key string, w store.Waiter) *store.Claim {
	r.t.Helper()
	k := r.event(key)
	require.Equal(r.t, verdict.KindGo, r.ask(k).Kind)
	r.Attempted(k, &stored, w)
	return k
}

// SQS stored ten events, and the results are queued for the store. While the result of an
// event is queued, Ask and LookUp return KindKnown for the same event, without a call of
// the store.
func TestQueuedResults(t *testing.T) {
	with(t, nil, func(t *testing.T, r *rig) {
		for i := range 10 {
			r.claimAndStore(fmt.Sprint(i), new(waiter))
		}
		synctest.Wait()
		require.Zero(t, r.called("complete"))
		require.EqualValues(t, 10, r.Stats().Recording)
		for _, question := range []func(*store.Claim) verdict.Verdict{r.look, r.ask} {
			k := r.event("3")
			require.Equal(t, verdict.Verdict{Kind: verdict.KindKnown}, question(k))
			require.Equal(t, "id", k.Known().Result.MessageID)
		}
		require.Zero(t, r.called("lookup"))
		require.Equal(t, verdict.KindWait, r.ask(r.claim("3", "3", "other bytes")).Kind, "only the store knows which bytes count")
		r.waitForWrites()
		require.Equal(t, 10, r.called("complete"))
		require.Zero(t, r.Stats().Recording)
		require.Equal(t, verdict.KindKnown, r.look(r.event("3")).Kind)
		require.Equal(t, 1, r.called("lookup"))
		require.EqualValues(t, 3, r.Stats().Duplicates)
	})
}

// waiter is a store.Waiter that counts the calls of its method Recorded.
type waiter struct {
	marked    bool
	calls, ok atomic.Int32
}

func (w *waiter) MarkRecording() { w.marked = true }

func (w *waiter) Recorded(ok bool) {
	w.calls.Add(1)
	if ok {
		w.ok.Add(1)
	}
}

func (w *waiter) requireCalls(t *testing.T, calls, ok int) {
	t.Helper()
	require.True(t, w.marked)
	require.EqualValues(t, calls, w.calls.Load())
	require.EqualValues(t, ok, w.ok.Load())
}

// A waiter's method Recorded is called with true when the store has recorded the event's
// result, or with false after the store timeout. Several submissions of the event can
// wait for this record.
func TestWaiters(t *testing.T) {
	with(t, nil, func(t *testing.T, r *rig) {
		var first, second, late waiter
		r.claimAndStore("k", &first)
		require.True(t, r.AwaitRecord(r.event("k"), &second))
		require.True(t, r.AwaitRecord(r.event("k"), nil))
		first.requireCalls(t, 0, 0)
		r.waitForWrites()
		first.requireCalls(t, 1, 1)
		second.requireCalls(t, 1, 1)
		require.False(t, r.AwaitRecord(r.event("k"), &second))

		r.sentWhileStoreFails("late", &late)
		time.Sleep(storeTimeout - time.Millisecond)
		synctest.Wait()
		late.requireCalls(t, 0, 0)
		time.Sleep(time.Millisecond)
		synctest.Wait()
		late.requireCalls(t, 1, 0)
		r.fail(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		late.requireCalls(t, 1, 0)
		require.Equal(t, idempotency.StatusSucceeded, r.record("late").Status)
	})
}

// storeWithWriter is a store that implements idempotency.Writer.
type storeWithWriter struct {
	*idempotency.Memory
	writes, withClaims atomic.Int32
}

func (s *storeWithWriter) Write(ctx context.Context, endings []idempotency.ClaimEnding, claims []idempotency.Claim) ([]error, []idempotency.Outcome, error) {
	s.writes.Add(1)
	if len(claims) > 0 {
		s.withClaims.Add(int32(len(endings)))
	}
	errs := make([]error, len(endings))
	for i, e := range endings {
		errs[i] = s.Finish(ctx, e.Ref, e.Ending)
	}
	outs, err := s.ClaimBatch(ctx, claims)
	return errs, outs, err
}

// If the store is a Writer, queued results of events are written in the same store call as
// the next claims. Without a next claim, they are written in a separate call.
func TestResultsAreWrittenWithClaims(t *testing.T) {
	with(t, nil, func(t *testing.T, r *rig) {
		s := &storeWithWriter{Memory: new(idempotency.Memory)}
		o := r.options
		o.Store = s
		r.Claimant = store.New(o)
		var first, second waiter
		r.claimAndStore("a", &first)
		r.claimAndStore("b", &second)
		first.requireCalls(t, 1, 1)
		require.EqualValues(t, 1, s.writes.Load())
		require.EqualValues(t, 1, s.withClaims.Load())
		r.waitForWrites()
		second.requireCalls(t, 1, 1)
		require.EqualValues(t, 2, s.writes.Load())
		require.EqualValues(t, 1, s.withClaims.Load())
	})
}

func (r *rig) sentWhileStoreFails(key string, w store.Waiter) {
	r.t.Helper()
	r.fail(nil)
	k := r.event(key)
	require.Equal(r.t, verdict.KindGo, r.ask(k).Kind)
	r.fail(failBefore)
	r.Attempted(k, &stored, w)
}

// While the store fails, the write of a result is repeated for an hour, at growing
// intervals.
func TestResultsAreTriedAgain(t *testing.T) {
	with(t, nil, func(t *testing.T, r *rig) {
		r.sentWhileStoreFails("k", new(waiter))
		time.Sleep(time.Minute)
		require.Less(t, r.called("complete"), 25)
		require.Greater(t, r.called("complete"), 10)
		require.Equal(t, verdict.KindKnown, r.look(r.event("k")).Kind, "this process knows it")
		r.fail(nil)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.Equal(t, idempotency.StatusSucceeded, r.record("k").Status)
		require.Zero(t, r.Stats().Lost)

		r.sentWhileStoreFails("other", new(waiter))
		time.Sleep(2 * time.Hour)
		require.EqualValues(t, 1, r.Stats().Lost)
		require.Zero(t, r.Stats().Recording)
	})
}

// The store writes a result, but the store's answer is lost (ErrAmbiguous). The result is
// written a second time, which changes nothing.
func TestAmbiguousResult(t *testing.T) {
	with(t, nil, func(t *testing.T, r *rig) {
		r.fail(func(call string) (before, after error) {
			if call == "complete" && r.calls[call] == 1 {
				return nil, idempotency.ErrAmbiguous
			}
			return nil, nil
		})
		r.claimAndStore("k", new(waiter))
		r.waitForWrites()
		require.Equal(t, 2, r.called("complete"))
		require.Zero(t, r.Stats().Stale+r.Stats().Lost+r.Stats().Recording)
	})
}

// The lease of the first claim ends, and the store grants a second claim of the event.
// The first submission then reports its result. The result does not change the store's
// record, and the waiter's method Recorded is called with false.
func TestStale(t *testing.T) {
	with(t, nil, func(t *testing.T, r *rig) {
		var overtaken waiter
		zombie := r.event("k")
		require.Equal(t, verdict.KindGo, r.ask(zombie).Kind)
		time.Sleep(lease)
		other := r.event("k")
		require.Equal(t, verdict.KindGo, r.ask(other).Kind)
		r.Attempted(zombie, &stored, &overtaken)
		r.waitForWrites()
		require.EqualValues(t, 1, r.Stats().Stale)
		overtaken.requireCalls(t, 1, 0)
		require.Zero(t, r.Stats().Lost+r.Stats().Errors)
		require.Equal(t, idempotency.StatusRunning, r.record("k").Status)
		r.Attempted(other, &stored, new(waiter))
		r.waitForWrites()
		require.Equal(t, idempotency.StatusSucceeded, r.record("k").Status)
	})
}

// At most 10,000 results wait to be written to the store. If one more result is queued,
// the oldest result is lost.
func TestFullQueue(t *testing.T) {
	with(t, nil, func(t *testing.T, r *rig) {
		const most = 10_000
		for i := range most + 5 {
			r.claimAndStore(fmt.Sprint(i), new(waiter))
			r.fail(func(call string) (before, after error) {
				if call == "complete" {
					return errDown, nil
				}
				return nil, nil
			})
		}
		require.EqualValues(t, most, r.Stats().Recording)
		require.EqualValues(t, 5, r.Stats().Lost)
		require.Equal(t, verdict.KindKnown, r.ask(r.event("9000")).Kind)
	})
}

// Close waits for the store for ten seconds, or until its context ends.
func TestClose(t *testing.T) {
	with(t, nil, func(t *testing.T, r *rig) {
		r.claimAndStore("k", new(waiter))
		began := time.Now()
		lost, err := r.Close(t.Context())
		require.NoError(t, err)
		require.Zero(t, lost)
		require.Less(t, time.Since(began), 50*time.Millisecond)
		require.Equal(t, idempotency.StatusSucceeded, r.record("k").Status)
		late := r.event("late")
		require.Equal(t, verdict.KindGo, r.ask(late).Kind)
		r.Attempted(late, &stored, new(waiter))
		lost, err = r.Close(t.Context())
		require.EqualValues(t, 1, lost)
		require.ErrorContains(t, err, "closed")
	})
	for _, limit := range []time.Duration{3 * time.Second, time.Hour} {
		with(t, nil, func(t *testing.T, r *rig) {
			r.sentWhileStoreFails("k", new(waiter))
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			lost, err := r.Close(ctx)
			require.EqualValues(t, 1, lost)
			require.ErrorIs(t, err, errDown)
			require.Equal(t, min(limit, 10*time.Second), time.Since(began))
			require.Equal(t, idempotency.StatusRunning, r.record("k").Status)
		})
	}
	with(t, nil, func(t *testing.T, r *rig) { // nothing is queued
		lost, err := r.Close(t.Context())
		require.NoError(t, err)
		require.Zero(t, lost)
	})
}
