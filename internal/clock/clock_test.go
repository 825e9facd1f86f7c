package clock

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWallClockThatDoesNotStep(t *testing.T) {
	start := time.Now()
	assert.Zero(t, byWallClock(start, start.Add(time.Hour)))
}

// sleepClock measures every suspension exactly. As long as the wall clock and the
// monotonic clock advance by the same amounts, sleepClock makes only ten system calls a
// second.
func TestSleepClock(t *testing.T) {
	var c sleepClock
	var awake, stepped, asleep time.Duration
	calls := 0
	read := func() time.Duration {
		return c.read(awake, asleep+stepped, func() time.Duration { calls++; return asleep })
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		switch random.IntN(10) {
		case 0:
			asleep += time.Millisecond + time.Duration(random.Int64N(int64(time.Hour)))
		case 1:
			stepped += time.Duration(random.Int64N(int64(time.Hour))) - 30*time.Minute
		}
		require.Equal(t, asleep, read())
		awake += time.Duration(random.Int64N(int64(time.Millisecond)))
	}
	began := awake
	for calls = 0; awake < began+10*time.Second; awake += 10 * time.Microsecond {
		require.Equal(t, asleep, read())
	}
	assert.InDelta(t, 100, calls, 1)

	// The wall clock, set back by the same hour, hides this suspension for maxReadingAge.
	asleep, stepped = asleep+time.Hour, stepped-time.Hour
	require.Equal(t, asleep-time.Hour, read())
	awake += maxReadingAge
	require.Equal(t, asleep, read())
}

func BenchmarkNow(b *testing.B) {
	c := New()
	for b.Loop() {
		c.Now()
	}
}

// suspendable returns a clock for a synctest bubble, and the total of its suspensions in
// nanoseconds. A test increases the total to simulate a suspension of the machine.
func suspendable() (*Clock, *atomic.Int64) {
	start, asleep := time.Now(), new(atomic.Int64)
	return Simulated(func() Reading {
		now := time.Now()
		return Reading{Awake: now.Sub(start), Asleep: time.Duration(asleep.Load()), Wall: now.Round(0)}
	}), asleep
}

var errCause = errors.New("cause")

// Without a suspension, a context of WithDeadline ends like a context of package context.
func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New()
		began := time.Now()
		ctx, cancel := c.WithDeadline(t.Context(), c.Now().Add(time.Minute+time.Millisecond), errCause)
		defer cancel()
		child, cancelChild := context.WithCancel(ctx)
		defer cancelChild()
		require.NoError(t, ctx.Err())
		<-child.Done()
		assert.Equal(t, time.Minute+time.Millisecond, time.Since(began))
		for _, ctx := range []context.Context{ctx, child} {
			assert.Equal(t, context.DeadlineExceeded, ctx.Err())
			assert.Equal(t, errCause, context.Cause(ctx))
		}
		ctx, cancel = c.WithDeadline(t.Context(), c.Now(), nil)
		defer cancel()
		assert.Equal(t, context.DeadlineExceeded, ctx.Err())
		assert.Equal(t, context.DeadlineExceeded, context.Cause(ctx))
		ctx, cancel = c.WithDeadline(t.Context(), c.Now().Add(time.Minute), nil)
		cancel()
		assert.Equal(t, context.Canceled, ctx.Err())
		assert.Equal(t, context.Canceled, context.Cause(ctx))
	})
}

// After a suspension beyond the deadline, Err returns an error immediately, and Done is
// closed within a second.
func TestDeadlineDuringSuspension(t *testing.T) {
	for name, look := range map[string]bool{"Err": true, "Done": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, asleep := suspendable()
				ctx, cancel := c.WithDeadline(t.Context(), c.Now().Add(time.Minute), errCause)
				defer cancel()
				child, cancelChild := context.WithCancel(ctx)
				defer cancelChild()
				time.Sleep(10 * time.Second)
				asleep.Store(int64(49 * time.Second))
				require.NoError(t, ctx.Err())
				asleep.Store(int64(50 * time.Second))
				resumed := time.Now()
				if look {
					require.Equal(t, context.DeadlineExceeded, ctx.Err())
				}
				<-child.Done()
				if look {
					assert.Zero(t, time.Since(resumed))
				}
				assert.LessOrEqual(t, time.Since(resumed), time.Second)
				assert.Equal(t, context.DeadlineExceeded, ctx.Err())
				assert.Equal(t, errCause, context.Cause(child))
			})
		})
	}
}

func TestTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, asleep := suspendable()
		began, calls := c.Now(), make(chan Instant, 9)
		at := func(d time.Duration) Instant { return began.Add(d) }
		timer := c.AfterFunc(at(time.Minute), func() { calls <- c.Now() })
		time.Sleep(50 * time.Second)
		timer.Reset(at(2 * time.Minute))
		time.Sleep(30 * time.Second)
		assert.False(t, timer.Over())
		assert.Empty(t, calls)
		asleep.Store(int64(39*time.Second + 500*time.Millisecond))
		called := <-calls
		assert.GreaterOrEqual(t, called, at(2*time.Minute))
		assert.LessOrEqual(t, called, at(2*time.Minute+time.Second))
		assert.True(t, timer.Over())
		timer.Reset(at(time.Hour))
		assert.False(t, timer.Over())
		time.Sleep(2 * time.Hour)
		assert.Empty(t, calls, "called once")

		timer = c.AfterFunc(c.Now().Add(time.Minute), func() { calls <- c.Now() })
		timer.Stop()
		timer.Stop()
		timer.Reset(c.Now())
		time.Sleep(time.Hour)
		assert.Empty(t, calls, "stopped")
	})
}
