package idempotency_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// The default quota covers what a producer with defaults has under way, 228 events, as soon
// as half of the store is enough for it. The unfinished operations of one scope never fill
// a store with room for two.
func TestDefaultQuota(t *testing.T) {
	for capacity, want := range map[int64]int64{1: 1, 2: 1, 20: 10, 65: 33, 456: 228, 512: 256, 600: 256, 1536: 256, 6000: 1000} {
		require.Equal(t, want, idempotency.DefaultQuota(capacity), "capacity %d", capacity)
	}
}
