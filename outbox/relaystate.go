package outbox

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"
)

func (r *Relay) stopping() bool {
	select {
	case <-r.stop:
		return true
	default:
		return false
	}
}

// pause waits for d. It returns an error if Run must end.
func (r *Relay) pause(ctx context.Context, d time.Duration) error {
	if r.stopping() {
		return errStopped
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-r.stop:
		return errStopped
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

var errStopped = errors.New("outbox: the relay was closed")

// recordFailure logs and counts a database error.
func (r *Relay) recordFailure(what string, err error) {
	r.config.Logger.Error("outbox: the database failed", "holder", r.config.Holder, "at", what, "error", err)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stats.DatabaseErrors++
	r.stats.LastDatabaseError = err
}

// Stats returns counts and the current state of the relay. It does not read the database.
func (r *Relay) Stats() RelayStats {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.stats
	for _, stopped := range r.stops {
		out.Stopped = append(out.Stopped, stopped)
	}
	slices.SortFunc(out.Stopped, func(a, b StoppedGroup) int { return strings.Compare(a.Group, b.Group) })
	return out
}

// recordLeading records whether this relay leads, and its fence (the number of the
// takeover).
func (r *Relay) recordLeading(yes bool, fence int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stats.Leading = yes
	if yes {
		r.stats.Fence = fence
		r.stats.Leaderships++
	} else {
		r.stats.InFlight = 0
		clear(r.stops) // another relay decides about the stopped groups now
	}
}

func (r *Relay) spent(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stats.Commits++
	r.stats.Database += d
}

func (r *Relay) count(done []completion, inFlight int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stats.InFlight = inFlight
	for _, c := range done {
		if c.Outcome == OutcomeDuplicate {
			r.stats.Duplicates++
		} else {
			r.stats.Sent++
		}
	}
}

// gauges returns the values of the gauges. If this relay does not lead, the result
// `leading` is false.
func (r *Relay) gauges(ctx context.Context) (g gauges, leading bool, err error) {
	own := r.Stats()
	if !own.Leading {
		return g, false, nil
	}
	g.stopped = len(own.Stopped)
	g.Stats, err = r.outbox.Stats(ctx)
	return g, true, err
}
