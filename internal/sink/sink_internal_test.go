package sink

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The sink is slow, and many Flush calls end with their context. The queue keeps at most
// 100 records, and forgets the ended Flush calls.
func TestMemoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 100
		q := New(func(int) error { time.Sleep(time.Second); return nil }, limit, func() {})
		for n := range 50 * limit {
			q.Add(n)
			if n%3 == 0 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				_ = q.Flush(ctx)
				cancel()
			}
			q.mu.Lock()
			require.LessOrEqual(t, cap(q.front)+cap(q.back), 4*limit)
			require.Empty(t, q.flushes)
			q.mu.Unlock()
		}
		n, first := q.Lost()
		assert.Positive(t, n)
		require.NoError(t, first)
		require.NoError(t, q.Flush(t.Context()))
		synctest.Wait()
		assert.Nil(t, q.front)
		assert.Nil(t, q.back)
		assert.False(t, q.writing)
	})
}

// Flush returns nil if its records are written, even if its context ends at the same
// time.
func TestFlushPrefersSuccess(t *testing.T) {
	release := make(chan struct{})
	q := New(func(int) error { <-release; return nil }, 10, func() {})
	q.Add(1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	result := make(chan error, 1)
	go func() { result <- q.Flush(ctx) }()
	require.Eventually(t, func() bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		return len(q.flushes) == 1
	}, 10*time.Second, time.Millisecond)

	q.mu.Lock()
	cancel()
	time.Sleep(20 * time.Millisecond) // meanwhile, the context of Flush ends, and Flush waits for mu
	q.done++
	q.mu.Unlock()
	require.NoError(t, <-result)

	q.mu.Lock()
	q.done--
	q.mu.Unlock()
	close(release)
	require.NoError(t, q.Flush(t.Context()))
}
