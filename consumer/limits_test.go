package consumer_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/consumer"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// A call of a handler that hangs ends after Config.Timeout, by default after five minutes. It
// is a failed attempt. The count goes on after MaxHold: after five attempts the message is parked, and the
// group goes on.
func TestTimeout(t *testing.T) {
	for name, store := range map[string]idempotency.Store{"without a store": nil, "with a store": &idempotency.Memory{}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 0, func(w *world) {
				w.send("a", 1, 2)
				var took []time.Duration
				var attempts []int
				c := w.config(func(ctx context.Context, m consumer.Message[job]) error {
					if m.Payload.N == 2 {
						return nil
					}
					began := time.Now()
					<-ctx.Done()
					took, attempts = append(took, time.Since(began).Round(time.Second)), append(attempts, m.Attempt)
					return ctx.Err()
				})
				c.Store = store
				running, stop := w.running(c)
				time.Sleep(6 * time.Minute)
				require.Len(w, running.Blocked(), 1)
				require.ErrorIs(w, running.Blocked()[0].Cause, consumer.ErrTimeout)
				time.Sleep(time.Hour)
				synctest.Wait()
				assert.Equal(w, []int{1, 2, 3, 4, 5}, attempts)
				for _, d := range took {
					assert.Equal(w, 5*time.Minute, d)
				}
				assert.Equal(w, 2, mostReceives(w.queue), "MaxHold ends after three calls")
				assert.Equal(w, []string{"a2"}, w.done)
				assert.Len(w, left(w.parking), 1)
				require.NoError(w, stop())
			})
		})
	}
}

// At the end of Config.MaxHold, by default 15 minutes, the handler's context ends with
// ErrHeldTooLong. The message is not lost.
func TestHeldTooLong(t *testing.T) {
	for _, hold := range []time.Duration{0, 11*time.Hour + 55*time.Minute} {
		bubble(t, 0, func(w *world) {
			w.send("a", 1)
			began := time.Now()
			c := w.config(func(ctx context.Context, m consumer.Message[job]) error {
				if m.Receives > 1 {
					return nil
				}
				<-ctx.Done()
				if m.Attempt == 1 {
					assert.ErrorIs(w, context.Cause(ctx), consumer.ErrTimeout)
					return ctx.Err()
				}
				assert.ErrorIs(w, context.Cause(ctx), consumer.ErrHeldTooLong)
				want := hold
				if hold == 0 {
					want = 15 * time.Minute
				}
				assert.Equal(w, want, time.Since(began).Round(time.Minute))
				return ctx.Err()
			})
			c.MaxHold = hold
			c.Timeout = max(hold, 15*time.Minute) * 2 / 3
			running := w.run(c, 13*time.Hour)
			assert.Equal(w, []string{"a1"}, w.done)
			assert.Zero(w, running.Stats().Lost)
			assert.Equal(w, 2, mostReceives(w.queue))
		})
	}
}

// MaxHold is about one message and its failed attempts. The consumer keeps ten messages of a
// group that take two minutes each, and a message during a pause of Defer or a long back-off.
func TestHoldIsOfOneMessage(t *testing.T) {
	for name, handle := range map[string]func(m consumer.Message[job], n int) error{
		"slow": func(consumer.Message[job], int) error { time.Sleep(2 * time.Minute); return nil },
		"defers": func(m consumer.Message[job], n int) error {
			if n == 1 {
				return consumer.Defer(errors.New("closed"), time.Hour)
			}
			return nil
		},
		"backs off": func(m consumer.Message[job], n int) error {
			if n < 4 {
				return errors.New("not yet")
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 0, func(w *world) {
				w.send("a", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
				began, n := time.Now(), 0
				c := w.config(func(_ context.Context, m consumer.Message[job]) error {
					n++
					return handle(m, n)
				})
				c.Failure.Backoff = func(int, error) time.Duration { return 14 * time.Minute }
				w.run(c, 2*time.Hour)
				assert.Len(w, w.done, 10)
				assert.Equal(w, 1, mostReceives(w.queue))
				if name == "defers" {
					assert.GreaterOrEqual(w, time.Since(began), time.Hour)
				}
			})
		})
	}
}

// Calls that do not fail, between failed calls, neither count nor begin the time again.
func TestHoldSumsFailedCalls(t *testing.T) {
	bubble(t, 0, func(w *world) {
		w.send("a", 1)
		var causes []error
		n := 0
		c := w.config(func(ctx context.Context, m consumer.Message[job]) error {
			if n++; n%2 == 0 {
				return consumer.Defer(errors.New("closed"), time.Second)
			}
			select {
			case <-time.After(4 * time.Minute):
			case <-ctx.Done():
			}
			causes = append(causes, context.Cause(ctx))
			return errors.New("not yet")
		})
		c.Failure.Attempts = 100
		_, stop := w.running(c)
		time.Sleep(16 * time.Minute)
		synctest.Wait()
		require.Len(w, causes, 4)
		assert.Equal(w, []error{nil, nil, nil}, causes[:3])
		require.ErrorIs(w, causes[3], consumer.ErrHeldTooLong)
		require.NoError(w, stop())
	})
}

// Failure.Backoff decides the pause after each failed attempt, whatever MaxHold is. If it
// panics, the default applies.
func TestOwnBackoff(t *testing.T) {
	bubble(t, 0, func(w *world) {
		w.send("a", 1)
		bad := errors.New("bad")
		var at []time.Duration
		began := time.Now()
		c := w.config(func(context.Context, consumer.Message[job]) error {
			at = append(at, time.Since(began).Round(time.Minute))
			return consumer.NotDone(bad)
		})
		c.Failure.Backoff = func(attempts int, err error) time.Duration {
			assert.ErrorIs(w, err, bad)
			switch attempts {
			case 1:
				return -1
			case 2:
				return time.Hour
			}
			panic("no wait")
		}
		c.Failure.FirstBackoff, c.Failure.MaxBackoff = time.Second, time.Second
		w.run(c, 3*time.Hour)
		assert.Equal(w, []time.Duration{0, 0, time.Hour, time.Hour, time.Hour}, at)
		assert.Len(w, left(w.parking), 1)
	})
}

// A blocked group is not handled again in this process: neither after MaxHold, nor after the
// 12 hours of SQS.
func TestBlockedGroupStaysBlocked(t *testing.T) {
	for name, err := range map[string]error{"used up": errors.New("bad"), "permanent": consumer.Permanent(errors.New("bad"))} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 0, func(w *world) {
				w.send("a", 1, 2)
				var mended bool
				c := w.config(func(context.Context, consumer.Message[job]) error {
					if mended {
						return nil
					}
					return err
				})
				c.Failure = consumer.Failure{Action: consumer.ActionBlock, Attempts: 2}
				running, stop := w.running(c)
				time.Sleep(time.Minute)
				calls := len(w.noted(&w.calls))
				for range 26 {
					time.Sleep(time.Hour)
					require.Len(w, running.Blocked(), 1)
					got := running.Blocked()[0]
					require.True(w, got.Blocked)
					require.Equal(w, calls, got.Attempts)
					require.Equal(w, "a1", got.Key)
					require.ErrorContains(w, got.Cause, "bad")
				}
				assert.Len(w, w.noted(&w.calls), calls)
				assert.Equal(w, 3, mostReceives(w.queue), "the hold of SQS ended twice")
				mended = true
				require.NoError(w, running.Retry("a"))
				time.Sleep(time.Minute)
				assert.Equal(w, []string{"a1", "a2"}, w.noted(&w.done))
				require.NoError(w, stop())
			})
		})
	}
}
