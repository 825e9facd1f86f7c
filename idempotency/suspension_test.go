package idempotency_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// suspendingStore simulates that the machine is suspended after each claim.
type suspendingStore struct {
	*idempotency.Memory
	suspend func(time.Duration)
	d       time.Duration
}

func (s *suspendingStore) Claim(ctx context.Context, c idempotency.Claim) (idempotency.Outcome, error) {
	out, err := s.Memory.Claim(ctx, c)
	s.suspend(s.d)
	return out, err
}

// If the machine sleeps past the end of the lease between the claim and the operation, the
// operation does not begin.
func TestGuardSuspendedBeforeTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &suspendingStore{Memory: new(idempotency.Memory), d: time.Minute}
		g := newGuard(t, store, nil)
		store.suspend = idempotency.Suspendable(g)
		ran := 0
		operation := func(context.Context, idempotency.Outcome) (idempotency.Result, error) {
			ran++
			return idempotency.Result{}, nil
		}
		_, err := g.Do(t.Context(), request("k", "body"), operation)
		if !errors.Is(err, context.DeadlineExceeded) || ran != 0 {
			t.Fatalf("ran %d times after the end of the lease: %v", ran, err)
		}
		store.d = 59 * time.Second
		if _, err := g.Do(t.Context(), request("k", "body"), operation); err != nil || ran != 1 {
			t.Fatalf("ran %d times within the lease: %v", ran, err)
		}
	})
}

// If the machine sleeps past the end of the lease during the operation, the operation's
// context ends within a second.
func TestGuardSuspendedDuringTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuard(t, new(idempotency.Memory), nil)
		suspend := idempotency.Suspendable(g)
		_, err := g.Do(t.Context(), request("k", "body"), func(ctx context.Context, _ idempotency.Outcome) (idempotency.Result, error) {
			time.Sleep(10 * time.Second)
			suspend(time.Hour)
			resumed := time.Now()
			<-ctx.Done()
			if awake := time.Since(resumed); awake > time.Second {
				t.Errorf("the context ended %v after the suspension", awake)
			}
			return idempotency.Result{}, ctx.Err()
		})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}
