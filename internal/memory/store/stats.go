package store

import (
	"sync/atomic"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// Stats counts a claimant's claims, results, releases and errors since New.
type Stats struct {
	New, Renewed, Reclaimed                        int64 // claims granted
	Duplicates, Conflicts, Waits, Unresolved, Full int64 // claims not granted
	OverQuota                                      int64 // claims not granted
	Drifts                                         int64

	// Unclaimed counts attempts that started without a claim in the store
	// (Options.FailOpen). Errors counts failed store calls. Stale counts results and releases that the
	// store refused, because their claims were not current any more
	// ([idempotency.ErrStaleClaim]).
	Unclaimed, Errors, Stale int64

	// Recording is the number of store updates (results and releases) that are queued or
	// being written. Lost is the number of dropped store updates.
	Recording, Lost int64

	// Unrecorded counts receipts that the producer reported although the store has no
	// record of the event.
	Unrecorded int64
}

type counts struct {
	granted                                        [3]atomic.Int64
	duplicates, conflicts, waits, unresolved, full atomic.Int64
	overQuota                                      atomic.Int64
	drifts, unclaimed, errors, stale, unrecorded   atomic.Int64
}

func (c *counts) add(out idempotency.Outcome) {
	switch out.Decision {
	case idempotency.DecisionNew:
		c.granted[0].Add(1)
	case idempotency.DecisionRenewed:
		c.granted[1].Add(1)
	case idempotency.DecisionReclaimed:
		c.granted[2].Add(1)
	case idempotency.DecisionDuplicate:
		c.duplicates.Add(1)
	case idempotency.DecisionConflict:
		c.conflicts.Add(1)
	case idempotency.DecisionInProgress:
		c.waits.Add(1)
	case idempotency.DecisionUnresolved:
		c.unresolved.Add(1)
	case idempotency.DecisionFull:
		c.full.Add(1)
	case idempotency.DecisionOverQuota:
		c.overQuota.Add(1)
	case idempotency.DecisionNone, idempotency.DecisionIncomparable:
	}
}

// Stats returns the counts.
func (c *Claimant) Stats() Stats {
	c.mu.Lock()
	lost, recording := c.lost, int64(len(c.queue)+c.writing)
	c.mu.Unlock()
	n := &c.counts
	return Stats{
		New: n.granted[0].Load(), Renewed: n.granted[1].Load(), Reclaimed: n.granted[2].Load(),
		Duplicates: n.duplicates.Load(), Conflicts: n.conflicts.Load(), Waits: n.waits.Load(),
		Unresolved: n.unresolved.Load(), Full: n.full.Load(), OverQuota: n.overQuota.Load(), Drifts: n.drifts.Load(),
		Unclaimed: n.unclaimed.Load(), Errors: n.errors.Load(), Stale: n.stale.Load(), Lost: lost, Recording: recording,
		Unrecorded: n.unrecorded.Load(),
	}
}

// CountUnclaimed counts an attempt that starts without a claim: Ask has answered with the
// KindGo and an error.
func (c *Claimant) CountUnclaimed() { c.counts.unclaimed.Add(1) }

// CountUnrecorded counts a receipt that the producer reported although the store has no
// record of the event.
func (c *Claimant) CountUnrecorded() { c.counts.unrecorded.Add(1) }
