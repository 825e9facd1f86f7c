package process

import (
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/clock"
)

// Clocks simulates a machine's clocks; tests move them by hand.
type Clocks struct {
	Awake, Asleep time.Duration // passed so far
	Step          time.Duration // forward step of the wall clock
}

// ClocksStart is the initial wall-clock time.
var ClocksStart = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func (c *Clocks) read() clock.Reading {
	return clock.Reading{Awake: c.Awake, Asleep: c.Asleep, Wall: ClocksStart.Add(c.Awake + c.Asleep + c.Step)}
}

// NewAt returns a memory with simulated clocks.
func NewAt(o Options, c *Clocks) *Memory { return newMemory(o, clock.Simulated(c.read)) }

// Look returns what the memory knows about the event now. It changes no ticket.
func (m *Memory) Look(now Instant, ev *Event) Known {
	m.mu.Lock()
	defer m.mu.Unlock()
	own, _ := m.find(now, ev)
	return own.known(now)
}
