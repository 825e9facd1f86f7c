package process

import "time"

// horizon is the state of [Memory.freeUntil].
//
// Problem: a suspension of the machine may be longer than an interval. If an event was
// stored before the suspension, SQS has forgotten the event afterwards. A submission of
// the same event that was made earlier may not know that the event was stored: the
// submission is refreshed once a minute, and the process ran for less than a minute.
//
// Solution: the memory keeps each record until the process has run for awakeFor, or until
// no submission waits.
type horizon struct {
	counted time.Duration // suspensions that count as elapsed time
	noticed time.Duration // suspensions until since; equal to counted without a later one
	since   Instant       // on a clock without suspensions
	last    Instant       // latest result of freeUntil
}

// awakeFor is longer than the time between two calls of Refresh for a waiting submission.
const awakeFor = 2 * time.Minute

// freeUntil returns the instant up to which the memory may free records: the present
// without the suspensions that do not count yet. The caller holds m.mu.
func (m *Memory) freeUntil(now Instant) Instant {
	h, asleep := &m.horizon, m.clock.Asleep()
	if asleep != h.counted {
		awake := now.Add(-asleep)
		switch {
		case m.waiting.Load() == 0:
			h.counted, h.noticed = asleep, asleep
		case h.noticed == h.counted:
			h.noticed, h.since = asleep, awake
		case awake.Sub(h.since) >= awakeFor:
			h.counted = h.noticed
			if asleep != h.noticed {
				h.noticed, h.since = asleep, awake
			}
		}
	}
	h.last = max(h.last, now.Add(h.counted-asleep))
	return h.last
}
