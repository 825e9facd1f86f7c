package dispatch

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BenchmarkDispatch measures the dispatcher's own cost of an item: the sender answers
// immediately and remembers nothing. Each item needs one allocation, the item itself.
func BenchmarkDispatch(b *testing.B) {
	for _, perGroup := range []int{1, 10} {
		for _, groups := range []int{1, 100, 0} {
			name := "groups=" + strconv.Itoa(groups)
			if groups == 0 {
				name = "groups=items"
			}
			b.Run("perGroup="+strconv.Itoa(perGroup)+"/"+name, func(b *testing.B) {
				d := New(&idle{}, benchOptions(perGroup))
				keys := make([]string, 1<<16)
				for i := range keys {
					keys[i] = "event " + strconv.Itoa(i)
				}
				names := keys
				if groups > 0 {
					names = keys[:groups]
				}
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					if d.TryReserve(100) != nil {
						if err := d.Reserve(b.Context(), 100, nil); err != nil {
							b.Fatal(err)
						}
					}
					d.Submit(&Item[int]{Group: names[i%len(names)], Key: keys[i%len(keys)], Size: 100})
				}
				if _, err := d.Close(context.Background(), func() {}); err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}

func benchOptions(perGroup int) Options {
	return Options{PerGroup: perGroup, RetryFor: time.Minute, Linger: 5 * time.Millisecond, InFlight: 4, Items: 4096, Bytes: 64 << 20}
}

// The dispatcher sends a million items, in one group or each in a separate group, and
// frees its memory afterwards.
func TestAMillionItems(t *testing.T) {
	n := 1_000_000
	if testing.Short() {
		n = 50_000
	}
	for _, perGroup := range []int{1, 10} {
		for _, groups := range []int{1, n} {
			d := New(&idle{}, benchOptions(perGroup))
			most := 0
			start := time.Now()
			for i := range n {
				if d.TryReserve(1) != nil {
					require.NoError(t, d.Reserve(t.Context(), 1, nil))
				}
				key := strconv.Itoa(i)
				require.True(t, d.Submit(&Item[int]{Group: strconv.Itoa(i % groups), Key: key, Size: 1}))
				if i%1000 == 0 {
					d.mu.Lock()
					most = max(most, len(d.groups), cap(d.delayed), len(d.epochs), len(d.spareBatches))
					d.mu.Unlock()
				}
			}
			_, err := d.Close(t.Context(), func() {})
			require.NoError(t, err)
			require.LessOrEqual(t, most, 4096+40)
			checkEmpty(t, d)
			t.Logf("%d items, %d groups, %d a request: %v", n, groups, perGroup, time.Since(start))
		}
	}
}
