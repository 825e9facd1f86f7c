package clock_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/clock"
)

// Raise never lowers the number, even if goroutines raise it concurrently.
func TestLargest(t *testing.T) {
	var l clock.Largest
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 1000 {
				l.Raise(int64((i*7 + g*13) % 1000))
			}
		})
	}
	wg.Wait()
	assert.EqualValues(t, 999, l.Load())
	l.Raise(5)
	assert.EqualValues(t, 999, l.Load())
	assert.EqualValues(t, 999, l.Swap(3))
	l.Raise(5)
	assert.EqualValues(t, 5, l.Load())
}
