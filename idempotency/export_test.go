package idempotency

import (
	"sync/atomic"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/clock"
)

// Suspendable replaces the clock of g. The returned function advances the new clock as if
// the machine had been suspended for the duration.
func Suspendable(g *Guard) (suspend func(time.Duration)) {
	start, asleep := time.Now(), new(atomic.Int64)
	g.clock = clock.Simulated(func() clock.Reading {
		now := time.Now()
		return clock.Reading{Awake: now.Sub(start), Asleep: time.Duration(asleep.Load()), Wall: now.Round(0)}
	})
	return func(d time.Duration) { asleep.Add(int64(d)) }
}
