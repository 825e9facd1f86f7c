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
)

// interrupted is a store that calls the function first before it takes endings. An ending
// is the last write for a claim: the result of the event, or the release of the claim.
type interrupted struct {
	*idempotency.Memory
	first atomic.Pointer[func()]
}

func (s *interrupted) Finish(ctx context.Context, ref idempotency.Ref, t idempotency.Ending) error {
	if f := s.first.Load(); f != nil {
		(*f)()
	}
	return s.Memory.Finish(ctx, ref, t)
}

// interruptedWriter is an interrupted store with a Writer.
type interruptedWriter struct{ *interrupted }

func (s interruptedWriter) Write(ctx context.Context, endings []idempotency.Finishing, claims []idempotency.Claim) (failures []error, out []idempotency.Outcome, err error) {
	failures = make([]error, len(endings))
	for i, e := range endings {
		failures[i] = s.Finish(ctx, e.Ref, e.Ending)
	}
	if len(claims) > 0 {
		out, err = s.ClaimBatch(ctx, claims)
	}
	return failures, out, err
}

// eachInterrupted runs a test twice: with an interrupted store that implements
// idempotency.Writer, and with one that does not.
func eachInterrupted(t *testing.T, test func(t *testing.T, r *rig, s *interrupted)) {
	for name, writer := range map[string]bool{"Finish": false, "Write": true} {
		t.Run(name, func(t *testing.T) {
			s := &interrupted{}
			with(t, func(o *store.Options, _ *idempotency.PolicyConfig) {
				s.Memory = new(idempotency.Memory)
				if o.Store = s; writer {
					o.Store = interruptedWriter{s}
				}
			}, func(t *testing.T, r *rig) {
				r.memory = s.Memory
				test(t, r, s)
			})
		})
	}
}

// The store ends the goroutine that calls Finish or Write. After the store timeout, the
// waiter's Recorded is called with false. When the store answers again, the event is
// recorded.
func TestStoreThatEndsTheGoroutine(t *testing.T) {
	eachInterrupted(t, func(t *testing.T, r *rig, s *interrupted) {
		k := r.event("k")
		require.Equal(t, store.Granted, r.ask(k).Kind)
		exit := runtime.Goexit
		s.first.Store(&exit)
		w := new(waiter)
		r.Attempted(k, &stored, w)
		time.Sleep(storeTimeout + time.Second)
		w.is(t, 1, 0)
		s.first.Store(nil)
		time.Sleep(time.Minute)
		require.Equal(t, idempotency.Succeeded, r.record("k").Status)
		w.is(t, 1, 0)
	})
}

// One store call writes claims and queued results together, and the store ends the
// goroutine of the call. The next call writes the results.
func TestClaimThatEndsTheGoroutine(t *testing.T) {
	eachInterrupted(t, func(t *testing.T, r *rig, s *interrupted) {
		k, next := r.event("k"), r.event("next")
		require.Equal(t, store.Granted, r.ask(k).Kind)
		exit := runtime.Goexit
		s.first.Store(&exit)
		r.Attempted(k, &stored, new(waiter))
		go r.ask(next)
		time.Sleep(time.Second)
		s.first.Store(nil)
		time.Sleep(time.Minute)
		require.Equal(t, idempotency.Succeeded, r.record("k").Status)
		lost, err := r.Close(t.Context())
		require.NoError(t, err)
		require.Zero(t, lost)
	})
}

// Close returns although the store ignores its context and does not answer. Close counts
// the results without an answer as lost.
func TestCloseOfASilentStore(t *testing.T) {
	eachInterrupted(t, func(t *testing.T, r *rig, s *interrupted) {
		k := r.event("k")
		require.Equal(t, store.Granted, r.ask(k).Kind)
		answer := make(chan struct{})
		hang := func() { <-answer }
		s.first.Store(&hang)
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
