package store_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/memory/store"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/verdict"
)

// hookedStore is a store that calls the function `beforeFinish`, if set, before it ends a
// claim.
type hookedStore struct {
	*idempotency.Memory
	beforeFinish atomic.Pointer[func()]
}

func (s *hookedStore) Finish(ctx context.Context, ref idempotency.Ref, t idempotency.Ending) error {
	if f := s.beforeFinish.Load(); f != nil {
		(*f)()
	}
	return s.Memory.Finish(ctx, ref, t)
}

// hookedWriter is a hookedStore that implements idempotency.Writer.
type hookedWriter struct{ *hookedStore }

func (s hookedWriter) Write(ctx context.Context, endings []idempotency.ClaimEnding, claims []idempotency.Claim) (failures []error, out []idempotency.Outcome, err error) {
	failures = make([]error, len(endings))
	for i, e := range endings {
		failures[i] = s.Finish(ctx, e.Ref, e.Ending)
	}
	if len(claims) > 0 {
		out, err = s.ClaimBatch(ctx, claims)
	}
	return failures, out, err
}

// eachHooked runs a test twice: with a hookedStore, which does not implement
// idempotency.Writer, and with a hookedWriter.
func eachHooked(t *testing.T, test func(t *testing.T, r *rig, s *hookedStore)) {
	for name, writer := range map[string]bool{"Finish": false, "Write": true} {
		t.Run(name, func(t *testing.T) {
			s := &hookedStore{}
			with(t, func(o *store.Options, _ *idempotency.PolicyConfig) {
				s.Memory = new(idempotency.Memory)
				if o.Store = s; writer {
					o.Store = hookedWriter{s}
				}
			}, func(t *testing.T, r *rig) {
				r.memory = s.Memory
				test(t, r, s)
			})
		})
	}
}

// The store ends the goroutine that calls Finish or Write (runtime.Goexit), so the
// event's result stays queued. After the store timeout, the waiter's method Recorded is
// called with false. When the store works again, the result is written, and Recorded is
// not called again.
func TestStoreThatEndsTheGoroutine(t *testing.T) {
	eachHooked(t, func(t *testing.T, r *rig, s *hookedStore) {
		k := r.event("k")
		require.Equal(t, verdict.KindGo, r.ask(k).Kind)
		exit := runtime.Goexit
		s.beforeFinish.Store(&exit)
		w := new(waiter)
		r.Attempted(k, &stored, w)
		time.Sleep(storeTimeout + time.Second)
		w.requireCalls(t, 1, 0)
		s.beforeFinish.Store(nil)
		time.Sleep(time.Minute)
		require.Equal(t, idempotency.StatusSucceeded, r.record("k").Status)
		w.requireCalls(t, 1, 0)
	})
}

// The store ends the goroutine of the call that writes a result (runtime.Goexit). With a
// Writer, the same call also claims the next event. The result must not be lost: a later
// call writes it.
func TestClaimThatEndsTheGoroutine(t *testing.T) {
	eachHooked(t, func(t *testing.T, r *rig, s *hookedStore) {
		k, next := r.event("k"), r.event("next")
		require.Equal(t, verdict.KindGo, r.ask(k).Kind)
		exit := runtime.Goexit
		s.beforeFinish.Store(&exit)
		r.Attempted(k, &stored, new(waiter))
		go r.ask(next)
		time.Sleep(time.Second)
		s.beforeFinish.Store(nil)
		time.Sleep(time.Minute)
		require.Equal(t, idempotency.StatusSucceeded, r.record("k").Status)
		lost, err := r.Close(t.Context())
		require.NoError(t, err)
		require.Zero(t, lost)
	})
}

// Close returns, although the store ignores the context of a call and does not answer. Close
// counts a result as lost if the store has not answered its write.
func TestCloseOfASilentStore(t *testing.T) {
	eachHooked(t, func(t *testing.T, r *rig, s *hookedStore) {
		k := r.event("k")
		require.Equal(t, verdict.KindGo, r.ask(k).Kind)
		answer := make(chan struct{})
		hang := func() { <-answer }
		s.beforeFinish.Store(&hang)
		r.Attempted(k, &stored, new(waiter))
		began := time.Now()
		lost, err := r.Close(t.Context())
		require.Equal(t, 11*time.Second, time.Since(began))
		require.Error(t, err)
		require.EqualValues(t, 1, lost)
		close(answer)
		time.Sleep(time.Second)
	})
}
