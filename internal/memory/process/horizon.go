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
	countedSleep time.Duration // total length of the suspensions that freeUntil includes in its result
	// noticedSleep is the total length of the suspensions noticed so far. It is larger
	// than countedSleep if freeUntil does not include the last suspension in its result
	// yet.
	noticedSleep time.Duration
	noticedAt    Instant // time of the last change of noticedSleep, on a clock that stops in suspensions
	latest       Instant // result of the last call of freeUntil, the highest so far
}

// minAwake is the time for which the process must run after a suspension before freeUntil
// includes the suspension. It is longer than the time between two calls of Refresh for a
// waiting submission, so each waiting submission is refreshed before the memory frees its
// event.
const minAwake = 2 * time.Minute

// freeUntil returns the instant up to which the memory may free records. Usually this is
// the instant now. After a suspension of the machine, freeUntil at first returns an
// earlier instant, as if time had not passed in the suspension: it subtracts the length of
// the suspension. It includes the suspension when the process has run for minAwake, or
// when no submission waits. The result never decreases. The caller holds m.mu.
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
