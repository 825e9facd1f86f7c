package consumer

import "github.com/kansas-frontier-matrix/sqsfifo/internal/clock"

// SetClock sets the clock of a consumer whose Run has not been called.
func (c *Consumer[T]) SetClock(k *clock.Clock) { c.engine.clock = k }
