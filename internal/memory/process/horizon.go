package process

import "time"

// horizon is the state of [Memory.freeUntil].
//
// Problem: a waiting submission calls Refresh once a minute, to learn whether another
// submission has stored the event. If the memory freed expired records right after a long
// suspension of the machine, the waiting submission would never learn this.
//
// Solution: after a suspension, the memory keeps all records until the process has run
// for minAwake, or until no submission waits.
type horizon struct {
	countedSleep time.Duration // total length of the suspensions that freeUntil no longer subtracts
	// noticedSleep is the total length of the suspensions noticed so far. It is larger
	// than countedSleep while freeUntil still subtracts the last suspension.
	noticedSleep time.Duration
	noticedAt    Instant // time of the last change of noticedSleep, on a clock that stops in suspensions
	latest       Instant // result of the last call of freeUntil, the highest so far
}

// minAwake is how long the process runs after a suspension before the memory frees older
// records. It is longer than the time between two Refresh calls, so each waiting
// submission calls Refresh in time.
const minAwake = 2 * time.Minute

// freeUntil returns the instant up to which the memory may free records, normally the
// parameter now. After a suspension, the result is earlier by the suspension's length, as
// long as horizon requires. The result never decreases. The caller holds m.mu.
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
