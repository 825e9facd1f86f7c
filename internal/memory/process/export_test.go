package process

import (
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/clock"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/verdict"
)

// Clocks simulates a machine's clocks. Tests change the fields to let time pass.
type Clocks struct {
	Awake  time.Duration // running time since the creation of the Memory
	Asleep time.Duration // total time of suspensions, also before the creation of the Memory
	Step   time.Duration // how far the wall clock was set forward
}

// ClocksStart is the initial wall-clock time.
var ClocksStart = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func (c *Clocks) read() clock.Reading {
	return clock.Reading{Awake: c.Awake, Asleep: c.Asleep, Wall: ClocksStart.Add(c.Awake + c.Asleep + c.Step)}
}

// NewAt returns a Memory with simulated clocks.
func NewAt(o Options, c *Clocks) *Memory {
	o.Clock = clock.Simulated(c.read)
	return New(o)
}

// KeptUntil returns k.keptUntil(). The result is zero if the State of k is StateUnknown or
// StateClear.
func KeptUntil(k Known) Instant {
	if k.State != verdict.StateInDoubt && k.State != verdict.StateStored && k.State != verdict.StateAltered {
		return 0
	}
	return k.keptUntil()
}

// Horizon returns the time that decides which records have expired (see expiryTime).
func (m *Memory) Horizon(now Instant) Instant {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.expiryTime(now)
}

// Look returns the Memory's current knowledge of the event. Unlike Refresh, it needs no
// Submission.
func (m *Memory) Look(now Instant, ev *Event) Known {
	m.mu.Lock()
	defer m.mu.Unlock()
	own, _ := m.find(now, ev, &Submission{made: now})
	return own.known(now)
}

// IsRetained reports whether the last judgement was KindWait, because an earlier submission
// may need the event's old record.
func (sub *Submission) IsRetained() bool { return sub.retained }
