package recent_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kansas-frontier-matrix/sqsfifo/cmd/sqsfifo/internal/recent"
)

// After each Add, the values of the last six minutes (Kept) are found. After 50 minutes,
// the values of the first 25 minutes are not.
func TestMessages(t *testing.T) {
	var m recent.Messages[int]
	begin := time.Date(2025, 12, 4, 12, 0, 0, 0, time.UTC)
	const n, perMinute = 100_000, 2000
	for number := 1; number <= n; number++ {
		m.Add(begin.Add(time.Duration(number)*time.Minute/perMinute), number)
		oldest := max(1, number-int(recent.Kept/time.Minute)*perMinute)
		for _, of := range []int{number, (number + oldest) / 2, oldest} {
			got, ok := m.Of(of)
			if !ok || got != of {
				t.Fatalf("message %d of %d: %d, %v", of, number, got, ok)
			}
		}
	}
	for _, number := range []int{-1, 0, 1, n / 2, n + 1} {
		_, ok := m.Of(number)
		assert.False(t, ok, number)
	}
}
