package dedup

import "time"

// Clocks are the clocks of a machine that a test moves by hand.
type Clocks struct {
	Awake, Asleep time.Duration // passed so far
	Step          time.Duration // how far the wall clock was set forward
}

// ClocksStart is what the wall clock says at first.
var ClocksStart = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func (c *Clocks) read() reading {
	return reading{c.Awake, c.Asleep, ClocksStart.Add(c.Awake + c.Asleep + c.Step)}
}

// NewAt returns a memory that reads these clocks.
func NewAt(o Options, c *Clocks) *Memory { return newMemory(o, startClock(c.read)) }

var ByWallClock = byWallClock

// Look returns what the memory knows of the event, and captures it in no ticket.
func (m *Memory) Look(now Instant, ev *Event) Known {
	m.mu.Lock()
	defer m.mu.Unlock()
	own, _ := m.find(now, ev)
	return own.known(now)
}
