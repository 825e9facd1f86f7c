package consumer_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/consumer"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// The producer stored an event twice, more than five minutes apart. The consumer
// deletes the second message without a call of the handler.
func TestDuplicateIsDeleted(t *testing.T) {
	bubble(t, 1, func(w *world) {
		c := w.config(nil)
		c.Store = &idempotency.Memory{}
		w.send("a", 1)
		w.run(c, time.Minute)
		time.Sleep(6 * time.Minute)
		w.send("a", 1, 2)
		running := w.run(c, time.Minute)
		assert.Equal(w, []string{"a1", "a2"}, w.calls)
		assert.Empty(w, left(w.queue))
		assert.EqualValues(w, 1, running.Stats().Duplicates)
	})
}

// After an ordinary error the consumer keeps its claim and calls the handler again. Parking
// a message records no success in the store. So if a producer sends the event again later,
// the handler is called again.
func TestStoreAndFailures(t *testing.T) {
	bubble(t, 0, func(w *world) {
		broken := true
		c := w.config(func(_ context.Context, m consumer.Message[job]) error {
			if broken && (m.Payload.N == 2 || m.Attempt < 3) {
				return errors.New("bad")
			}
			return nil
		})
		c.Store = &idempotency.Memory{}
		w.send("a", 1, 2)
		w.run(c, time.Hour)
		assert.Equal(w, []string{"a1"}, w.done)
		assert.Len(w, w.calls, 3+5)
		assert.Len(w, left(w.parking), 1)
		broken = false
		time.Sleep(time.Hour)
		w.send("a", 2)
		w.run(c, time.Minute)
		assert.Equal(w, []string{"a1", "a2"}, w.done)
	})
}

// While the store does not answer, attempts do not count and messages are not parked.
func TestStoreOutage(t *testing.T) {
	bubble(t, 0, func(w *world) {
		s := &brokenStore{Store: &idempotency.Memory{}}
		s.broken.Store(true)
		c := w.config(nil)
		c.Store = s
		w.send("a", 1, 2)
		running, stop := w.running(c)
		time.Sleep(3 * time.Hour)
		assert.Empty(w, w.noted(&w.calls))
		assert.Greater(w, running.Stats().Undecided, int64(100))
		s.broken.Store(false)
		time.Sleep(2 * time.Minute)
		assert.Equal(w, []string{"a1", "a2"}, w.noted(&w.done))
		s.finishBroken.Store(true)
		w.send("a", 3)
		time.Sleep(10 * time.Minute)
		assert.Equal(w, []string{"a1", "a2", "a3"}, w.noted(&w.calls), "handled once although its success is not recorded")
		assert.Len(w, left(w.queue), 1)
		s.finishBroken.Store(false)
		time.Sleep(2 * time.Minute)
		assert.Empty(w, left(w.queue))
		require.NoError(w, stop())
		assert.Empty(w, left(w.parking))
		assert.Equal(w, 1, mostReceives(w.queue))
	})
}

type brokenStore struct {
	idempotency.Store
	broken, finishBroken atomic.Bool
}

func (s *brokenStore) Claim(ctx context.Context, c idempotency.Claim) (idempotency.Outcome, error) {
	if s.broken.Load() {
		return idempotency.Outcome{}, errors.New("down")
	}
	return s.Store.Claim(ctx, c)
}

func (s *brokenStore) Finish(ctx context.Context, ref idempotency.Ref, e idempotency.Ending) error {
	if s.finishBroken.Load() {
		return errors.New("down")
	}
	return s.Store.Finish(ctx, ref, e)
}

// The consumer crashes after the effect and before the store records it. With GuaranteeAtLeastOnce
// the effect happens again. With GuaranteeAtMostOnce the message is unresolved until a probe
// decides.
func TestCrashAfterEffect(t *testing.T) {
	for _, tc := range []struct {
		name    string
		once    consumer.Guarantee
		probe   func(context.Context, consumer.Message[job]) (bool, error)
		effects int64
		left    int
	}{
		{"at least once", consumer.GuaranteeAtLeastOnce, nil, 2, 0},
		{"at most once", consumer.GuaranteeAtMostOnce, nil, 1, 2},
		{"at most once, probed", consumer.GuaranteeAtMostOnce, func(_ context.Context, m consumer.Message[job]) (bool, error) { return m.Payload.N == 1, nil }, 1, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, 0, func(w *world) {
				var effects atomic.Int64
				c := w.config(func(ctx context.Context, m consumer.Message[job]) error {
					if m.Payload.N == 2 {
						return nil
					}
					if effects.Add(1) == 1 {
						return killSelf(ctx)
					}
					assert.True(w, m.Repeated)
					return nil
				})
				c.Store, c.Guarantee, c.Probe = &idempotency.Memory{}, tc.once, tc.probe
				w.send("a", 1, 2)
				p := w.start(c)
				<-p.ended
				p = w.start(c)
				time.Sleep(time.Hour)
				assert.Equal(w, tc.effects, effects.Load())
				assert.Len(w, left(w.queue), tc.left)
				p.cancel()
				require.NoError(w, <-p.ended)
			})
		})
	}
}

// With GuaranteeAtMostOnce, a handler is not called again after an error that leaves its effect
// unknown.
func TestUnresolved(t *testing.T) {
	bubble(t, 0, func(w *world) {
		c := w.config(failing(1, consumer.MaybeDone(errors.New("timeout"))))
		c.Store, c.Guarantee = &idempotency.Memory{}, consumer.GuaranteeAtMostOnce
		w.send("a", 1, 2)
		running, stop := w.running(c)
		time.Sleep(time.Hour)
		assert.Equal(w, []string{"a1"}, w.noted(&w.calls))
		require.Len(w, running.Blocked(), 1)
		require.Error(w, running.Retry("a"), "still unresolved")
		time.Sleep(time.Hour)
		assert.Equal(w, []string{"a1"}, w.noted(&w.calls))
		require.NoError(w, running.ParkHead(w.Context(), "a", running.Blocked()[0].MessageID))
		time.Sleep(time.Minute)
		assert.Equal(w, []string{"a2"}, w.noted(&w.done))
		require.NoError(w, stop())
	})
}

// The lease of a claim is renewed as long as the handler runs.
func TestLeaseIsRenewed(t *testing.T) {
	bubble(t, 0, func(w *world) {
		store := &idempotency.Memory{}
		c := w.config(func(context.Context, consumer.Message[job]) error {
			time.Sleep(2 * time.Hour)
			return nil
		})
		c.Store, c.Visibility = store, 30*time.Second
		w.send("a", 1)
		_, stop := w.running(c)
		for range 100 {
			time.Sleep(time.Minute)
			for r, err := range store.Scan(w.Context(), idempotency.Filter{}) {
				require.NoError(w, err)
				require.True(w, r.LeaseUntil.After(time.Now()))
				require.EqualValues(w, 1, r.Attempts)
			}
		}
		time.Sleep(time.Hour)
		require.NoError(w, stop())
		assert.Equal(w, []string{"a1"}, w.done)
	})
}

// A message with the key of a handled message and a different payload is a conflict, and
// is parked.
func TestConflictIsParked(t *testing.T) {
	bubble(t, 0, func(w *world) {
		c := w.config(nil)
		c.Store = &idempotency.Memory{}
		c.Decode = consumer.JSON(func(j job) string { return j.Group })
		w.send("a", 1, 2)
		w.run(c, time.Minute)
		assert.Equal(w, []string{"a1"}, w.done)
		assert.Len(w, left(w.parking), 1)
	})
}
