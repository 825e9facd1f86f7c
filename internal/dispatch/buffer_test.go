package dispatch

import (
	"container/list"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/verdict"
	"github.com/stretchr/testify/require"
)

// queue holds callers that wait for room, in the order of their arrival.
type queue struct {
	b        *buffer
	mu       sync.Mutex
	admitted []int
	sorted   int
	errs     map[int]error
}

func newQueue(items, bytes int) *queue {
	return &queue{b: &buffer{items: items, bytes: bytes}, errs: map[int]error{}}
}

// enter calls buffer.enter in a new goroutine. It returns when that goroutine has ended
// or waits for room.
func (q *queue) enter(ctx context.Context, n, bytes int) {
	go func() {
		err := q.b.enter(ctx, bytes, nil)
		q.mu.Lock()
		defer q.mu.Unlock()
		if err != nil {
			q.errs[n] = err
		} else {
			q.admitted = append(q.admitted, n)
		}
	}()
	synctest.Wait()
}

// seen returns the admitted callers. Callers that were admitted at the same time are
// sorted by number, because their goroutines run in any order.
func (q *queue) seen() []int {
	synctest.Wait()
	q.mu.Lock()
	defer q.mu.Unlock()
	slices.Sort(q.admitted[q.sorted:])
	q.sorted = len(q.admitted)
	return slices.Clone(q.admitted)
}

func inBubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, test)
}

func TestFirstComeFirstServed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		q := newQueue(2, 100)
		for i, bytes := range []int{50, 50, 90, 1, 1, 1} {
			q.enter(t.Context(), i, bytes)
		}
		require.Equal(t, []int{0, 1}, q.seen())
		q.b.leave(1, 50)
		require.Equal(t, []int{0, 1}, q.seen(), "no room for the first, and the small ones do not pass it")
		q.b.leave(1, 50)
		require.Equal(t, []int{0, 1, 2, 3}, q.seen(), "let in as soon as there is room")
		q.b.leave(1, 90)
		require.Equal(t, []int{0, 1, 2, 3, 4}, q.seen())
		q.b.leave(1, 1)
		q.b.leave(1, 1)
		require.Equal(t, []int{0, 1, 2, 3, 4, 5}, q.seen())
		q.b.leave(1, 1)
		items, bytes := used(q.b, Options{Items: 2, Bytes: 100})
		require.Zero(t, items)
		require.Zero(t, bytes)
	})
}

// When a large item leaves the buffer, all waiting callers that fit into the freed room
// are admitted immediately.
func TestAllForWhomThereIsRoom(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		q := newQueue(100, 1000)
		q.enter(t.Context(), 0, 1000)
		for i := range 60 {
			q.enter(t.Context(), 1+i, 10)
		}
		require.Len(t, q.seen(), 1)
		q.b.leave(1, 1000)
		require.Len(t, q.seen(), 61)
	})
}

func TestTryEnterPassesNobody(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		q := newQueue(10, 100)
		require.NoError(t, q.b.tryEnter(60))
		require.ErrorIs(t, q.b.tryEnter(60), ErrFull)
		ctx, cancel := context.WithCancelCause(t.Context())
		q.enter(ctx, 0, 60)
		require.ErrorIs(t, q.b.tryEnter(1), ErrFull, "somebody waits")
		q.enter(t.Context(), 1, 1)
		cancel(errOver)
		require.Equal(t, []int{1}, q.seen(), "the one after it fits")
		require.ErrorIs(t, q.errs[0], errOver)
		require.NoError(t, q.b.tryEnter(1))
	})
}

func TestAClosedBufferRefuses(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		q := newQueue(1, 100)
		for i := range 3 {
			q.enter(t.Context(), i, 1)
		}
		q.b.close()
		q.b.close()
		require.Equal(t, []int{0}, q.seen())
		for i := 1; i < 3; i++ {
			require.ErrorIs(t, q.errs[i], ErrClosed)
		}
		require.ErrorIs(t, q.b.tryEnter(1), ErrClosed)
		require.ErrorIs(t, q.b.enter(t.Context(), 1, nil), ErrClosed)
		q.b.leave(1, 1)
		items, bytes := used(q.b, Options{Items: 1, Bytes: 100})
		require.Zero(t, items)
		require.Zero(t, bytes)
	})
}

// At random, callers wait for room in the buffer, give room back and stop waiting. The
// buffer must admit callers in the order of their arrival. After every step, the room in use
// must be the sum of the sizes of the admitted items.
func TestTheBufferIsBalanced(t *testing.T) {
	for seed := range uint64(100) {
		inBubble(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 2))
			o := Options{Items: 1 + rng.IntN(10), Bytes: 100}
			q := newQueue(o.Items, o.Bytes)
			sizes := map[int]int{}
			var cancels []context.CancelFunc
			left := 0
			for i := range 200 {
				switch {
				case rng.IntN(3) > 0:
					ctx, cancel := context.WithCancel(t.Context())
					cancels = append(cancels, cancel)
					sizes[len(cancels)-1] = 1 + rng.IntN(100)
					q.enter(ctx, len(cancels)-1, sizes[len(cancels)-1])
				case rng.IntN(2) == 0 && len(cancels) > 0:
					cancels[rng.IntN(len(cancels))]()
				case left < len(q.seen()):
					q.b.leave(1, sizes[q.seen()[left]])
					left++
				}
				admitted := q.seen()
				require.True(t, slices.IsSorted(admitted), "step %d: %v", i, admitted)
				want := 0
				for _, n := range admitted[left:] {
					want += sizes[n]
				}
				items, bytes := used(q.b, o)
				require.Equal(t, len(admitted)-left, items)
				require.Equal(t, want, bytes)
				q.b.mu.Lock()
				if first := q.b.waiters.Front(); first != nil {
					require.True(t, q.b.items == 0 || q.b.bytes < first.Value.(*waiter).bytes, "there is room, and somebody waits")
				}
				q.b.mu.Unlock()
			}
			for _, cancel := range cancels {
				cancel()
			}
			require.Len(t, q.errs, len(cancels)-len(q.seen()))
		})
	}
}

// The time that a waiting caller needs to give up does not depend on the number of
// waiting callers.
func TestGivingUpTakesConstantTime(t *testing.T) {
	cost := func(n int) time.Duration {
		b := &buffer{items: 1, bytes: 1}
		places := make([]*list.Element, n)
		for i := range places {
			places[i] = b.waiters.PushBack(&waiter{bytes: 1, done: make(chan struct{})})
		}
		b.items = 0
		start := time.Now()
		for i := n - 1; i >= 0; i -= 2 { // the odd indexes; the next loop has the even indexes
			b.waiters.Remove(places[i])
			b.admit()
		}
		for i := n - 2; i >= 0; i -= 2 {
			b.waiters.Remove(places[i])
			b.admit()
		}
		require.Zero(t, b.waiters.Len())
		return time.Since(start)
	}
	// This takes about 10 ms. If each step visited all waiting callers, it would take half a
	// minute.
	took := cost(200_000)
	require.Less(t, took, 2*time.Second)
}

// An item larger than the buffer gets the whole buffer. Other items wait until it leaves.
func TestAnItemLargerThanTheBuffer(t *testing.T) {
	o := options()
	o.Bytes = 1000
	try(t, o, func(t *testing.T, c *modelSender) {
		large := c.item("a")
		large.Size, large.Verdict = 5000, verdict.KindRefuse
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errOver)
		defer cancel()
		require.NoError(t, c.d.Reserve(ctx, large.Size, nil))
		require.Equal(t, 1000, c.d.Stats().Bytes)
		require.ErrorIs(t, c.d.TryReserve(1), ErrFull)
		c.enqueue(large)
		next := c.item("a")
		c.submit(next)
		require.NoError(t, c.d.Reserve(ctx, 5000, nil))
		c.d.Cancel(5000)
		c.flush()
		require.NoError(t, c.d.TryReserve(5000))
		c.d.Cancel(5000)
	})
}

// Every item, even a refused item, keeps its room in the buffer until the end of its
// report.
func TestPlacesAreHeldUntilTheReport(t *testing.T) {
	o := options()
	o.Items = 3
	try(t, o, func(t *testing.T, c *modelSender) {
		blocked := make(chan struct{})
		for i, it := range c.make("a", 3) {
			if i == 1 {
				it.Verdict = verdict.KindRefuse
			}
			it.Message.onReport = func() { <-blocked }
			c.submit(it)
		}
		pass(time.Minute)
		require.ErrorIs(t, c.d.TryReserve(1), ErrFull)
		require.Equal(t, 300, c.d.Stats().Bytes)
		close(blocked)
		c.flush()
		for range 3 {
			require.NoError(t, c.d.TryReserve(1))
		}
		for range 3 {
			c.d.Cancel(1)
		}
	})
}
