package claims

import (
	"sync/atomic"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// Stats counts what a claimant has asked and told since it was made.
type Stats struct {
	New, Renewed, Reclaimed                           int64 // claims granted
	Duplicates, Conflicts, Waits, Indeterminate, Full int64 // and not granted
	Drifts                                            int64

	// Unclaimed counts the attempts without a claim, Errors the calls of the store that
	// failed, Stale the transitions that came after another claimant's.
	Unclaimed, Errors, Stale int64

	// Unsettled counts the transitions that wait now, Lost those that were given up.
	Unsettled, Lost int64
}

type counts struct {
	granted                                            [3]atomic.Int64
	duplicates, conflicts, waits, indeterminates, full atomic.Int64
	drifts, unclaimed, errors, stale                   atomic.Int64
}

func (c *counts) add(out idempotency.Outcome) {
	switch out.Decision {
	case idempotency.New:
		c.granted[0].Add(1)
	case idempotency.Renewed:
		c.granted[1].Add(1)
	case idempotency.Reclaimed:
		c.granted[2].Add(1)
	case idempotency.Duplicate:
		c.duplicates.Add(1)
	case idempotency.Conflict:
		c.conflicts.Add(1)
	case idempotency.InProgress:
		c.waits.Add(1)
	case idempotency.Indeterminate:
		c.indeterminates.Add(1)
	case idempotency.Full:
		c.full.Add(1)
	case idempotency.Undecided, idempotency.Unjudged:
	}
}

// Stats returns the counts.
func (c *Claimant) Stats() Stats {
	c.mu.Lock()
	lost, unsettled := c.lost, int64(len(c.queue)+c.telling)
	c.mu.Unlock()
	n := &c.counts
	return Stats{
		New: n.granted[0].Load(), Renewed: n.granted[1].Load(), Reclaimed: n.granted[2].Load(),
		Duplicates: n.duplicates.Load(), Conflicts: n.conflicts.Load(), Waits: n.waits.Load(),
		Indeterminate: n.indeterminates.Load(), Full: n.full.Load(), Drifts: n.drifts.Load(),
		Unclaimed: n.unclaimed.Load(), Errors: n.errors.Load(), Stale: n.stale.Load(), Lost: lost, Unsettled: unsettled,
	}
}
