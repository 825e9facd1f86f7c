package idempotency

import (
	"sync/atomic"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/clock"
)

// Suspendable gives g a clock for tests. Each call of the returned function advances this
// clock by d at once, like a suspension of the machine.
func Suspendable(g *Guard) (suspend func(time.Duration)) {
	start, asleep := time.Now(), new(atomic.Int64)
	g.clock = clock.Simulated(func() clock.Reading {
		now := time.Now()
		return clock.Reading{Awake: now.Sub(start), Asleep: time.Duration(asleep.Load()), Wall: now.Round(0)}
	})
	return func(d time.Duration) { asleep.Add(int64(d)) }
}
