package process

import "time"

// horizon is the state of [Memory.freeUntil].
//
// Problem: the machine may be suspended for longer than a deduplication interval. SQS then
// forgets an event that was stored before the suspension. Another submission of the same
// event may have waited all the time without knowing that the event was stored: waiting
// submissions are refreshed once a minute, and the process ran for less than a minute. If
// the memory freed the record right after the suspension, the submission would never learn
// of the stored event.
//
// Solution: the memory keeps each record until the process has run for minAwake after the
// suspension, or until no submission waits.
type horizon struct {
	countedSleep time.Duration // total length of the suspensions that count as elapsed time
	// noticedSleep is countedSleep plus the suspensions that are noticed but do not count as
	// elapsed time yet.
	noticedSleep time.Duration
	noticedAt    Instant // when noticed was set, on a clock that stops in suspensions
	latest       Instant // latest result of freeUntil
}

// minAwake is longer than the time between two calls of Refresh for a waiting submission.
const minAwake = 2 * time.Minute

// freeUntil returns the instant up to which the memory may free records. A recent
// suspension does not count yet: freeUntil subtracts its length from the current instant.
// The result never decreases. The caller holds m.mu.
func (m *Memory) freeUntil(now Instant) Instant {
	h, asleep := &m.horizon, m.clock.Asleep()
	if asleep != h.countedSleep {
		awake := now.Add(-asleep)
		switch {
		case m.waiting.Load() == 0:
			h.countedSleep, h.noticedSleep = asleep, asleep
		case h.noticedSleep == h.countedSleep:
			h.noticedSleep, h.noticedAt = asleep, awake
		case awake.Sub(h.noticedAt) >= minAwake:
			h.countedSleep = h.noticedSleep
			if asleep != h.noticedSleep {
				h.noticedSleep, h.noticedAt = asleep, awake
			}
		}
	}
	h.latest = max(h.latest, now.Add(h.countedSleep-asleep))
	return h.latest
}
