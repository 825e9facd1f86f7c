package sqlstore

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// ClaimTx is like Claim, but in the caller's transaction: the claim takes effect when the
// transaction commits. No other caller can claim the key before the transaction ends. On
// PostgreSQL other callers get InProgress immediately, on SQLite they wait.
//
// If the claim is granted, perform the side effect in the transaction, call
// [Store.CompleteTx] and commit. It does not matter if the lease ends meanwhile. To give
// up, roll back. The claim then did not happen, and no later claim gets the same fence,
// unless the clock is set back.
//
// The current claimant may call ClaimTx with its token to renew its claim. The claimant
// does not get InProgress: while another caller's transaction has the key's lock, ClaimTx
// tries again. If ctx ends before the lock is free, ClaimTx returns an error, usually
// [idempotency.ErrBusy].
//
// ClaimTx also returns [idempotency.ErrBusy] after the clock was set back, until the store
// has recorded this in a transaction of its own: roll back and try again. See Limits in the
// package documentation.
//
// On SQLite, make ClaimTx the first statement of the transaction. On PostgreSQL, ClaimTx
// sets plan_cache_mode for the rest of the transaction.
func (s *Store) ClaimTx(ctx context.Context, own *sql.Tx, c idempotency.Claim) (idempotency.Outcome, error) {
	if err := c.Check(); err != nil {
		return idempotency.Outcome{}, err
	}
	if err := s.usable(ctx); err != nil {
		return idempotency.Outcome{}, err
	}
	tx := s.statements.tryCompiled(ctx, own)
	fence, back, err := s.beginCallers(ctx, tx, 1)
	if err != nil {
		return idempotency.Outcome{}, err
	}
	if back > 0 {
		s.mu.Lock()
		defer s.mu.Unlock()
		return idempotency.Outcome{}, s.withLastErr(fmt.Errorf("sqlstore: the clock was set back by %v; roll back and repeat the transaction: %w", back, idempotency.ErrBusy))
	}
	// Try a read first: a write would lock the key until tx ends, even for a refused
	// claim.
	it := newClaims([]idempotency.Claim{c})
	id := it.claims[0].id
	s.stats.reads.Add(1)
	records, err := s.engine.read(ctx, tx, []idempotency.KeyID{id})
	if err != nil {
		return idempotency.Outcome{}, err
	}
	known := map[idempotency.KeyID]*keyState{id: {record: records[id]}}
	_, known[id].exists = records[id]
	firsts := decideClaims([]*item{it}, known, s.config.Quota)
	if len(firsts) == 0 {
		return it.outcomes[0], nil
	}
	s.stats.claims.Add(1)
	admitted, err := s.admit(ctx, tx, firsts, known, false)
	if err != nil {
		return idempotency.Outcome{}, err
	}
	if len(admitted) == 0 {
		decideClaims([]*item{it}, known, s.config.Quota)
		return it.outcomes[0], nil
	}
	results, err := s.claimInTx(ctx, tx, fence, admitted)
	if err != nil {
		return idempotency.Outcome{}, err
	}
	if err := s.record(ctx, tx, nil, admitted, results); err != nil {
		return idempotency.Outcome{}, err
	}
	return idempotency.NewOutcome(results[0].decision, owned(results[0].record), c), nil
}

// claimInTx executes a single claim, claims[0]. The current claimant of the key gets
// InProgress only while another transaction has locked the key. For this claimant,
// claimInTx tries again until the key is free or ctx ends.
func (s *Store) claimInTx(ctx context.Context, tx writer, fence int64, claims []claimOf) (results []claimed, err error) {
	err = repeat(ctx, func() (done bool, err error) {
		if results, err = s.engine.claim(ctx, tx, fence, claims); err != nil {
			return false, err
		}
		r := results[0]
		return r.decision != idempotency.DecisionInProgress || idempotency.Decide(r.record, claims[0].Claim, r.record.ReadAt) != idempotency.DecisionRenewed, nil
	})
	return results, err
}

// CompleteTx is like Finish with the ending [idempotency.Completed], but in the caller's
// transaction: the result is stored when the transaction commits. The claim may come from
// ClaimTx in this transaction, or from an earlier Claim. Roll back after an error.
func (s *Store) CompleteTx(ctx context.Context, own *sql.Tx, ref idempotency.Ref, result idempotency.Result) error {
	if err := ref.Check(); err != nil {
		return err
	}
	if err := result.Check(); err != nil {
		return err
	}
	if err := s.usable(ctx); err != nil {
		return err
	}
	tx := s.statements.tryCompiled(ctx, own)
	// The end of a claim does not depend on the time, so CompleteTx ignores a step of the clock.
	if _, _, err := s.beginCallers(ctx, tx, 0); err != nil {
		return err
	}
	s.stats.endings.Add(1)
	t := []endingOf{{ref: ref, id: ref.Key.ID(), t: idempotency.Completed(result)}}
	return repeat(ctx, func() (done bool, err error) {
		ends, err := s.engine.finish(ctx, tx, t)
		switch {
		case err != nil:
			return false, err
		case ends[0].changed:
			return true, s.record(ctx, tx, ends, nil, nil)
		default:
			return !ends[0].busy, ends[0].err
		}
	})
}
