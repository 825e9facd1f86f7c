package process

import "time"

// horizon is the state of [Memory.freeUntil].
//
// Problem: a waiting submission calls Refresh once a minute to learn whether another
// submission has stored the same event. During a suspension of the machine, records expire,
// but the waiting submission cannot call Refresh. If the Memory freed the expired records
// right after the suspension, a record could be gone before the next Refresh.
//
// Solution: after a suspension, the Memory keeps the expired records until the process has
// run for minAwake, or until no submission waits for its outcome.
type horizon struct {
	// countedSleep is the total length of all suspensions except the recent ones. The method
	// freeUntil subtracts the length of the recent suspensions from the current time.
	countedSleep time.Duration

	// noticedSleep is the total length of the suspensions noticed so far. When the process
	// has run for minAwake since noticedAt, countedSleep gets this value.
	noticedSleep time.Duration

	// noticedAt is the time at which freeUntil noticed a suspension and set noticedSleep. It
	// does not include the length of suspensions.
	noticedAt Instant

	latest Instant // last result of freeUntil
}

// minAwake is the time for which the Memory keeps expired records after a suspension of
// the machine. It is longer than the minute between two Refresh calls, so each waiting
// submission calls Refresh before the Memory frees the records.
const minAwake = 2 * time.Minute

// freeUntil returns an instant: the Memory may free all records that had expired at this
// instant. The result is normally the parameter now. If waiting submissions may need the
// records that expired during a suspension of the machine, the result is earlier by the
// length of the suspension (see horizon). The result never decreases. The caller holds m.mu.
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
