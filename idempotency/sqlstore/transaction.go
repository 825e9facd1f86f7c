package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/ledger"
)

// transaction executes endings of distinct keys and claims of distinct keys in a single
// commit. It then sets the results of the calls, and updates the records in the map
// `known`. After an error nothing was changed, unless the error wraps ErrAmbiguous.
func (s *Store) transaction(ctx context.Context, c *connection, endings []*item, firsts []undecidedClaim, known map[idempotency.KeyID]*keyState) (err error) {
	conn, err := c.get(ctx)
	if err != nil {
		return fmt.Errorf("sqlstore: begin: %w", err)
	}
	defer func() {
		if err != nil || !c.reuse {
			c.free()
		}
		if err != nil {
			s.allowances.removeAll()
		}
	}()
	own, err := conn.BeginTx(ctx, s.options)
	if err != nil {
		return fmt.Errorf("sqlstore: begin: %w", err)
	}
	defer own.Rollback() //nolint:errcheck // after a commit there is nothing to roll back
	tx := s.statements.compiled(own)
	s.stats.transactions.Add(1)
	s.stats.endings.Add(int64(len(endings)))
	s.stats.claims.Add(int64(len(firsts)))
	at, err := s.begin(ctx, tx, len(firsts))
	if err != nil {
		return err
	}
	transitions := make([]endingOf, len(endings))
	for i, it := range endings {
		transitions[i] = *it.ending
	}
	ends, err := s.engine.finish(ctx, tx, transitions)
	if err != nil {
		return err
	}
	s.allowances.addCompleted(transitions, ends, s.config.Quota)
	claims, err := s.admit(ctx, tx, firsts, known, true)
	if err != nil {
		return err
	}
	results, err := s.engine.claim(ctx, tx, at.fence, claims)
	if err != nil {
		return err
	}
	if err := s.record(ctx, tx, ends, claims, results); err != nil {
		return err
	}
	if err := own.Commit(); err != nil {
		// The connection may still be in the transaction, so ErrBadConn makes package sql
		// close the connection.
		_ = conn.Raw(func(any) error { return driver.ErrBadConn })
		return fmt.Errorf("sqlstore: commit: %w: %w", idempotency.ErrAmbiguous, err)
	}
	s.afterCommit(at)
	for i, it := range endings {
		it.err, it.busy = ends[i].err, ends[i].busy
	}
	byID := make(map[idempotency.KeyID]claimed, len(results))
	for i, r := range results {
		byID[claims[i].id] = r
	}
	for _, o := range firsts {
		c := o.claims[o.i]
		r, made := byID[c.id]
		if !made {
			continue // admit() refused the claim; decideClaims() sets the outcome later
		}
		f := known[c.id]
		f.record, f.exists = r.record, true
		if d := idempotency.Decide(r.record, c.Claim, r.record.ReadAt); r.decision == idempotency.DecisionInProgress && d.Granted() {
			f.refusal = idempotency.DecisionInProgress
			if d == idempotency.DecisionRenewed {
				o.renewals = append(o.renewals, o.i)
			}
		}
		o.outcomes[o.i] = idempotency.NewOutcome(r.decision, owned(r.record), c.Claim)
		o.granted = o.granted || r.decision.Granted()
	}
	return nil
}

// connection is the database connection of one goroutine of commit(). If reuse is true,
// the next transaction uses the same connection. On SQLite the connection's cached pages
// then stay valid, unless another connection has written.
type connection struct {
	db    *sql.DB
	conn  *sql.Conn
	reuse bool
}

func (c *connection) get(ctx context.Context) (_ *sql.Conn, err error) {
	if c.conn == nil {
		c.conn, err = c.db.Conn(ctx)
	}
	return c.conn, err
}

func (c *connection) free() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

// record increases the stored number of rows by the number of rows that the claims
// inserted. It adds a ledger entry for each granted claim, and for each record changed by a
// call of Finish. Calls of Extend have no entries.
func (s *Store) record(ctx context.Context, tx writer, ends []ended, claims []claimOf, results []claimed) error {
	inserted := int64(0)
	for _, r := range results {
		inserted += toInt(r.inserted)
	}
	if inserted > 0 {
		if err := s.engine.grow(ctx, tx, inserted); err != nil {
			return err
		}
	}
	if !s.config.Ledger {
		return nil
	}
	var entries []ledger.Entry
	for _, end := range ends {
		if end.changed && end.entry.Event != "" {
			entries = append(entries, end.entry)
		}
	}
	for i, r := range results {
		if r.decision.Granted() {
			entries = append(entries, entryOfClaim(claims[i], r))
		}
	}
	return s.engine.append(ctx, tx, entries)
}
