package sqsfifo

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// drive makes calls for so long, as many as the pacer lets start, answered at once
// with what the given function says, and returns how many.
func drive(p *pacer, from time.Time, length time.Duration, what func(n int) pace) (calls int) {
	for now := from; now.Before(from.Add(length)); now = now.Add(time.Millisecond) {
		for range 10 { // ten a millisecond is all that there is to send
			if p.wait(now) > 0 {
				break
			}
			p.start()
			p.answered(now, now, what(calls))
			calls++
		}
	}
	return calls
}

func TestPacer(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	all := func(as pace) func(int) pace { return func(int) pace { return as } }

	t.Run("no limit until SQS throttles", func(t *testing.T) {
		p := &pacer{}
		assert.Equal(t, 10_000, drive(p, start, time.Second, all(passedPace)))
		assert.Zero(t, p.rate)
	})
	t.Run("a throttle brings the rate down, time brings it up", func(t *testing.T) {
		p := &pacer{}
		drive(p, start, time.Second, all(passedPace))
		now := start.Add(time.Second)
		p.answered(now, now, throttledPace)
		assert.InDelta(t, 0.9*10_000/4, p.rate, 50)
		first := p.rate

		p.answered(now, now, throttledPace)
		assert.InDelta(t, first, p.rate, 0, "it began before the cut")

		got := drive(p, now, 10*time.Second, all(passedPace))
		assert.Greater(t, p.rate, first*1.6)
		assert.Less(t, p.rate, first*2.8, "at most 2 % each 200 ms")
		assert.InDelta(t, 10*first*1.65, got, 10*first*0.2, "the calls follow the rate")
	})
	t.Run("a rate that nothing reaches is no limit", func(t *testing.T) {
		p := &pacer{}
		p.answered(start, start, throttledPace)
		assert.InDelta(t, paceFloor, p.rate, 0)
		for now := start; now.Before(start.Add(time.Hour)); now = now.Add(time.Second) {
			p.wait(now)
		}
		assert.Zero(t, p.rate)
	})
	t.Run("a cut that was too small is followed by another", func(t *testing.T) {
		p := &pacer{rate: 1000, ceiling: 1000, cut: start, raised: start, at: start, since: start}
		now := start.Add(20 * time.Millisecond)
		for range 4 {
			p.answered(now, start.Add(time.Millisecond), passedPace)
		}
		p.answered(now, start.Add(time.Millisecond), throttledPace)
		assert.InDelta(t, 200, p.rate, 1, "4 in 20 ms are 200 a second, and that is a fifth")
	})
	t.Run("never below ten calls a second", func(t *testing.T) {
		p := &pacer{}
		p.answered(start.Add(time.Second), start, throttledPace)
		assert.InDelta(t, paceFloor, p.rate, 0)
		assert.InDelta(t, 11, drive(p, start.Add(time.Second), time.Second, all(passedPace)), 1)
	})
	t.Run("some trouble is chance, much is overload", func(t *testing.T) {
		p := &pacer{}
		drive(p, start, time.Second, func(n int) pace {
			if n%10 == 0 {
				return troubledPace
			}
			return passedPace
		})
		assert.Zero(t, p.rate)
		drive(p, start.Add(time.Second), time.Second, all(troubledPace))
		assert.NotZero(t, p.rate)
		assert.Less(t, p.rate, 5000.0)
	})
	t.Run("what is late is made good a little", func(t *testing.T) {
		p := &pacer{rate: 1000, cut: start, raised: start, at: start}
		calls := 0
		for now := start.Add(time.Hour); p.wait(now) == 0; calls++ {
			p.start()
		}
		assert.Less(t, calls, 300, "an hour of rest is no burst")
		assert.GreaterOrEqual(t, calls, 10)
	})
}

func TestRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &room{events: 2, bytes: 100}
		require.NoError(t, r.enter(t.Context(), 60), "nobody waits where there is room")
		require.ErrorIs(t, r.tryEnter(60), ErrBufferFull, "no bytes left")
		var mu sync.Mutex
		var order []string
		wait := func(name string, ctx context.Context, bytes int) {
			go func() {
				if err := r.enter(ctx, bytes); err != nil {
					name += " " + err.Error()
				}
				mu.Lock()
				defer mu.Unlock()
				order = append(order, name)
			}()
			synctest.Wait()
		}
		ctx, cancel := context.WithCancel(t.Context())
		wait("large", ctx, 90)
		wait("small", t.Context(), 1)
		require.ErrorIs(t, r.tryEnter(1), ErrBufferFull, "nobody overtakes those who wait")
		assert.Empty(t, order, "the small one waits behind the large one")
		cancel()
		synctest.Wait()
		assert.Equal(t, []string{"large context canceled", "small"}, order)

		wait("event", t.Context(), 1)
		assert.Len(t, order, 2, "there is no place for another event")
		r.leave(60)
		synctest.Wait()
		assert.Equal(t, "event", order[2])
		assert.Equal(t, 98, r.bytes)
		assert.Zero(t, r.events)

		wait("late", t.Context(), 1)
		r.close()
		synctest.Wait()
		assert.Equal(t, "late "+ErrClosed.Error(), order[3])
		require.ErrorIs(t, r.tryEnter(1), ErrClosed)
		require.ErrorIs(t, r.enter(t.Context(), 1), ErrClosed)
		r.leave(1)
		r.leave(1)
		assert.Equal(t, []int{2, 100}, []int{r.events, r.bytes})
	})
}

// Who is let in has the place, though its context ends in the same instant.
func TestRoomKeepsItsWord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 20 { // either may be seen first
			r := &room{events: 1, bytes: 1}
			require.NoError(t, r.tryEnter(1))
			ctx, cancel := context.WithCancel(t.Context())
			got := make(chan error, 1)
			go func() { got <- r.enter(ctx, 1) }()
			synctest.Wait()
			r.leave(1)
			cancel()
			require.NoError(t, <-got)
			assert.Zero(t, r.events)
		}
	})
}

// Who waits is let in when it is worth it, and then as many as fit.
func TestRoomLetsManyInAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &room{events: 4, bytes: 100, enough: 3}
		for range 4 {
			require.NoError(t, r.tryEnter(1))
		}
		in := make(chan struct{}, 5)
		for range 5 {
			go func() {
				assert.NoError(t, r.enter(t.Context(), 1))
				in <- struct{}{}
			}()
		}
		synctest.Wait()
		for _, want := range []int{0, 0, 3, 3, 3, 5} {
			r.leave(1)
			synctest.Wait()
			assert.Len(t, in, want)
		}
	})
}
