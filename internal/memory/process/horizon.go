package process

import "time"

// horizon is the state of [Memory.freeUntil].
//
// Problem: during a suspension longer than a deduplication interval, SQS forgets an event
// stored before. Another submission of the event may have waited all the time without
// knowledge of the stored event: waiting submissions are refreshed once a minute, and the
// process ran for less. If the memory freed the record right after the suspension, that
// submission would never learn of the stored event.
//
// Solution: the memory keeps each record until the process has run for minAwake after the
// suspension, or until no submission waits.
type horizon struct {
	countedSleep time.Duration // total length of the suspensions that freeUntil includes in its result
	// noticedSleep is the total length of the suspensions noticed so far. It is larger
	// than countedSleep if freeUntil does not include the last suspension in its result
	// yet.
	noticedSleep time.Duration
	noticedAt    Instant // time of the last change of noticedSleep, on a clock that stops in suspensions
	latest       Instant // result of the last call of freeUntil, the highest so far
}

// minAwake is the running time of the process after a suspension before freeUntil
// includes the suspension. It is longer than the time between two Refresh calls for a
// waiting submission, so each is refreshed before the memory frees its event.
const minAwake = 2 * time.Minute

// freeUntil returns the instant up to which the memory may free records, usually now.
// After a suspension it first subtracts the suspension's length, as if no time had
// passed. It includes the suspension once the process has run for minAwake, or when no
// submission waits. The result never decreases. The caller holds m.mu.
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
