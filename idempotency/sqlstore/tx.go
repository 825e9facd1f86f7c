package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// ClaimTx is Claim in a transaction of the caller: the claim is made when tx commits.
// If the claim is granted, make the side effect in tx, call [Store.CompleteTx], and
// commit; to give up, roll back. Nobody else can claim the key before tx ends: on
// PostgreSQL the others get InProgress at once, on SQLite they wait. A claimant that has
// the claim already, known by its token, waits until ctx ends for others that are trying
// to get it, and then returns [idempotency.ErrBusy].
//
// Make it the first statement of tx on SQLite. On PostgreSQL it sets plan_cache_mode
// for the rest of tx. The lease of the claim does not matter
// if the completion is in tx. A fence that the claim was given is not used again if
// tx is rolled back.
func (s *Store) ClaimTx(ctx context.Context, tx *sql.Tx, c idempotency.Claim) (idempotency.Outcome, error) {
	if err := c.Check(); err != nil {
		return idempotency.Outcome{}, err
	}
	if err := s.usable(ctx); err != nil {
		return idempotency.Outcome{}, err
	}
	fence, err := s.engine.begin(ctx, tx, 1)
	if err != nil {
		return idempotency.Outcome{}, err
	}
	// Read first: a claim that cannot be granted takes no lock for the rest of tx.
	it := newClaims([]idempotency.Claim{c})
	id := it.claims[0].id
	s.stats.reads.Add(1)
	records, err := s.engine.read(ctx, tx, []idempotency.KeyID{id})
	if err != nil {
		return idempotency.Outcome{}, err
	}
	known := map[idempotency.KeyID]*finding{id: {record: records[id]}}
	_, known[id].exists = records[id]
	firsts := openClaims([]*item{it}, known)
	if len(firsts) == 0 {
		return it.outcomes[0], nil
	}
	s.stats.claims.Add(1)
	admitted, err := s.admit(ctx, tx, firsts, known)
	if err != nil {
		return idempotency.Outcome{}, err
	}
	if len(admitted) == 0 {
		return idempotency.Outcome{Decision: idempotency.Full}, nil
	}
	results, err := s.claimInTx(ctx, tx, fence, admitted)
	if err != nil {
		return idempotency.Outcome{}, err
	}
	if err := s.grow(ctx, tx, results); err != nil {
		return idempotency.Outcome{}, err
	}
	if err := s.record(ctx, tx, nil, admitted, results); err != nil {
		return idempotency.Outcome{}, err
	}
	return idempotency.NewOutcome(results[0].decision, owned(results[0].record), c), nil
}

// claimInTx makes one claim, again and again while its claimant has the operation already
// and somebody else is trying to get it.
func (s *Store) claimInTx(ctx context.Context, tx *sql.Tx, fence int64, claims []claimOf) ([]claimed, error) {
	for wait := time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		results, err := s.engine.claim(ctx, tx, fence, claims)
		if err != nil {
			return nil, err
		}
		r := results[0]
		if r.decision != idempotency.InProgress || idempotency.Decide(r.record, claims[0].Claim, r.record.ReadAt) != idempotency.Renewed {
			return results, nil
		}
		if err := pause(ctx, wait); err != nil {
			return nil, fmt.Errorf("sqlstore: nothing was changed: %w: %w", idempotency.ErrBusy, err)
		}
	}
}

// CompleteTx is Complete in a transaction of the caller: the result is stored when tx
// commits, together with whatever else tx did. The claim may have been made by ClaimTx
// in tx, or earlier by Claim. If it returns an error, roll back.
func (s *Store) CompleteTx(ctx context.Context, tx *sql.Tx, ref idempotency.Ref, result idempotency.Result) error {
	if err := ref.Check(); err != nil {
		return err
	}
	if err := result.Check(); err != nil {
		return err
	}
	if err := s.usable(ctx); err != nil {
		return err
	}
	if _, err := s.engine.begin(ctx, tx, 0); err != nil {
		return err
	}
	s.stats.transitions.Add(1)
	t := []settleOf{{ref: ref, id: ref.Key.ID(), t: idempotency.Completed(result)}}
	for wait := time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		ends, err := s.engine.settle(ctx, tx, t)
		if err != nil {
			return err
		}
		if ends[0].made {
			return s.record(ctx, tx, ends, nil, nil)
		}
		if !ends[0].busy {
			return ends[0].err
		}
		if err := pause(ctx, wait); err != nil {
			return fmt.Errorf("sqlstore: nothing was changed: %w: %w", idempotency.ErrBusy, err)
		}
	}
}
