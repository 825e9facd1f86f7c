package process

import "time"

// expiryClock is the clock by which records expire. After a suspension of the machine, it
// may lag by the length of the suspension, so that records do not expire before waiting
// submissions have read them in Refresh. The lag ends when the process has run for
// minAwake, or when no submission waits.
type expiryClock struct {
	// countedSleep is the total length of the suspensions that the expiry clock already
	// includes.
	countedSleep time.Duration

	// noticedSleep is the total length of all suspensions until noticedAt.
	noticedSleep time.Duration

	// noticedAt is the time at which expiryTime set noticedSleep. It is measured by a clock
	// that stops during suspensions. It has no meaning while noticedSleep equals
	// countedSleep.
	noticedAt Instant

	latest Instant // last result of expiryTime
}

// minAwake is the time for which expired records are kept after a suspension of the
// machine. Waiting submissions call Refresh once a minute, so each of them reads its
// event's record within this time.
const minAwake = 2 * time.Minute

// expiryTime returns the time that decides which records have expired: normally the
// parameter `now`, but possibly earlier after a suspension. It never decreases. The caller
// holds m.mu.
func (m *Memory) expiryTime(now Instant) Instant {
	h, asleep := &m.expiry, m.clock.Asleep()
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
