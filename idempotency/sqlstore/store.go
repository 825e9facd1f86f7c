package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/ledger"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/sqldb"
)

// Config configures a [Store].
type Config struct {
	// DB is the database, opened by the caller, who closes it after the store. The store
	// uses up to three of its connections at once beside those of its callers' reads.
	DB *sql.DB

	Dialect Dialect

	// Capacity is the largest number of rows; a claim of another key is then refused as
	// Full. 0 is no bound. Transactions that run at the same time may exceed it by one
	// group each. See [Store.Purge].
	Capacity int64

	// GroupTimeout bounds one group of writes. The default is 10 s.
	GroupTimeout time.Duration

	// Ledger makes the store write each change of a key into the ledger, in the
	// transaction of the change: see [Ledger]. Once a store has been opened with it, the
	// database is refused to stores without it.
	Ledger bool

	// AllowLoss accepts settings of the database under which acknowledged writes may be
	// lost. They are named by [Store.Weaknesses].
	AllowLoss bool

	// Clock is the time of a SQLite database; nil is time.Now. It must be nil for
	// PostgreSQL, which has its own.
	Clock func() time.Time
}

// Store is an [idempotency.Store] in a database. It is safe for concurrent use.
// Any number of stores and processes may share a database.
type Store struct {
	config     Config
	engine     engine
	weaknesses []sqldb.Setting
	committers int
	statements *statements
	unseen     unseen
	options    *sql.TxOptions // of the transactions of groups

	mu       sync.Mutex
	queue    []*item
	running  int                        // committers
	inFlight map[idempotency.KeyID]bool // keys of the groups that are being written
	closed   bool
	idle     sync.Cond // with mu: a committer ended

	stats struct{ groups, claims, transitions, reads atomic.Int64 }
}

var _ idempotency.Store = (*Store)(nil)

// engine is what the dialects do differently.
type engine interface {
	// read returns the records of the keys that have a row.
	read(ctx context.Context, q queryer, ids []idempotency.KeyID) (map[idempotency.KeyID]idempotency.Record, error)

	// now returns the time of the store.
	now(ctx context.Context, q queryer) (time.Time, error)

	// begin makes tx the writer, where there is only one, and returns the first of n
	// fences if the engine draws them.
	begin(ctx context.Context, tx writer, n int) (fence int64, err error)

	// claim makes claims of different keys, if there are any.
	claim(ctx context.Context, tx writer, fence int64, claims []claimOf) ([]claimed, error)

	// settle makes transitions of different keys, if there are any.
	settle(ctx context.Context, tx writer, settles []settleOf) ([]settled, error)

	// append writes entries into the ledger.
	append(ctx context.Context, tx writer, entries []ledger.Entry) error

	// rows returns up to limit entries of the ledger from one place to before another, of
	// an epoch or earlier ones.
	rows(ctx context.Context, q queryer, from, to position, limit int) ([]ledgerRow, error)

	// unsealed returns up to limit entries that should have a seal and have none.
	unsealed(ctx context.Context, q queryer, limit int) ([]ledgerRow, error)

	// count returns the number of rows.
	count(ctx context.Context, q queryer) (int64, error)

	// grow adds to the number of rows.
	grow(ctx context.Context, tx writer, by int64) error

	// placeholder returns the i-th parameter of a statement, from 1.
	placeholder(i int) string
}

type claimOf struct {
	idempotency.Claim
	id idempotency.KeyID
}

type claimed struct {
	decision idempotency.Decision
	record   idempotency.Record // as granted or as found
	inserted bool               // a row
}

type settleOf struct {
	ref idempotency.Ref
	id  idempotency.KeyID
	t   idempotency.Transition
}

type settled struct {
	err  error
	busy bool // somebody else is writing the record; try again

	made  bool         // the transition changed the record
	entry ledger.Entry // about it, if it was made and the engine keeps a ledger
}

// Open returns a store over a database that [Migrate] has prepared. It refuses, with
// a [*SettingError], settings under which an acknowledged write may be lost, unless
// the configuration allows them.
func Open(ctx context.Context, c Config) (*Store, error) {
	if c.DB == nil {
		return nil, &SettingError{Setting: "Config.DB", Found: "nil", Rule: "open the database with a driver and pass it"}
	}
	if c.Capacity < 0 || c.GroupTimeout < 0 {
		return nil, &SettingError{Setting: "Config", Found: fmt.Sprintf("Capacity %d, GroupTimeout %v", c.Capacity, c.GroupTimeout), Rule: "want 0 or more"}
	}
	if c.GroupTimeout == 0 {
		c.GroupTimeout = 10 * time.Second
	}
	s := &Store{config: c, statements: &statements{}, inFlight: map[idempotency.KeyID]bool{}}
	s.idle.L = &s.mu
	schema, err := c.Dialect.schema()
	if err != nil {
		return nil, err
	}
	var found sqldb.Settings
	switch c.Dialect {
	case SQLite:
		clock := c.Clock
		if clock == nil {
			clock = time.Now
		}
		s.engine, s.committers = &sqlite{clock: clock, ledger: c.Ledger, statements: s.statements}, 1
		found, err = sqldb.ReadSQLite(ctx, c.DB)
	case PostgreSQL:
		if c.Clock != nil {
			return nil, &SettingError{Setting: "Config.Clock", Found: "set", Rule: "PostgreSQL has its own clock; leave it nil"}
		}
		s.engine, s.committers = postgres{ledger: c.Ledger}, 2
		s.options = &sql.TxOptions{Isolation: sql.LevelReadCommitted} // whatever the default of the database
		found, err = sqldb.ReadPostgreSQL(ctx, c.DB, "the store")
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("sqlstore: %w", err)
	case found.Refused != nil:
		return nil, &SettingError{Setting: found.Refused.Name, Found: found.Refused.Found, Rule: found.Refused.Rule}
	case len(found.Weak) > 0 && !c.AllowLoss:
		w := found.Weak[0]
		return nil, &SettingError{Setting: w.Name, Found: w.Found, Rule: w.Rule + ", or set Config.AllowLoss"}
	}
	s.weaknesses = found.Weak
	version, err := schema.Version(ctx, c.DB)
	switch {
	case err != nil:
		return nil, fmt.Errorf("sqlstore: %w", err)
	case version > schemaVersion:
		return nil, newerSchema(version)
	case version < schemaVersion:
		return nil, &SettingError{Setting: "schema", Found: fmt.Sprintf("version %d", version), Rule: fmt.Sprintf("want %d; call Migrate", schemaVersion)}
	}
	if err := s.openLedger(ctx); err != nil {
		return nil, err
	}
	if c.Dialect == SQLite { // a driver of PostgreSQL prepares by itself
		if err := s.statements.prepare(ctx, c.DB, sqliteStatements()...); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Weaknesses names the settings under which acknowledged writes may be lost, for
// example "synchronous is 1". It is empty unless [Config.AllowLoss] is set.
func (s *Store) Weaknesses() []string {
	var out []string
	for _, w := range s.weaknesses {
		out = append(out, w.Name+" is "+w.Found)
	}
	return out
}

// Close waits for the writes under way. Later calls return [idempotency.ErrClosed].
// The database stays open.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for s.running > 0 {
		s.idle.Wait()
	}
	s.statements.close()
	return nil
}

// Stats counts what a store has written and read since it was opened.
type Stats struct {
	Groups      int64 // transactions
	Claims      int64 // claims that reached a transaction
	Transitions int64
	Reads       int64 // statements that only read
}

// Stats returns the counts.
func (s *Store) Stats() Stats {
	return Stats{
		Groups: s.stats.groups.Load(), Claims: s.stats.claims.Load(),
		Transitions: s.stats.transitions.Load(), Reads: s.stats.reads.Load(),
	}
}

// Claim implements [idempotency.Store].
func (s *Store) Claim(ctx context.Context, c idempotency.Claim) (idempotency.Outcome, error) {
	if err := c.Check(); err != nil {
		return idempotency.Outcome{}, err
	}
	outcomes, err := s.claim(ctx, []idempotency.Claim{c})
	if err != nil {
		return idempotency.Outcome{}, err
	}
	return outcomes[0], nil
}

// ClaimBatch implements [idempotency.Store]: one commit for all.
func (s *Store) ClaimBatch(ctx context.Context, claims []idempotency.Claim) ([]idempotency.Outcome, error) {
	if err := idempotency.CheckBatch(claims); err != nil {
		return nil, err
	}
	if len(claims) == 0 {
		return nil, ctx.Err()
	}
	return s.claim(ctx, claims)
}

// claim makes the claims, and makes those again whose claimant has its claim already and
// could not renew it because somebody else was trying to get it: a holder is never
// told that its own claim is in progress elsewhere.
func (s *Store) claim(ctx context.Context, claims []idempotency.Claim) ([]idempotency.Outcome, error) {
	it := newClaims(claims)
	if err := s.submit(ctx, it); err != nil {
		return nil, err
	}
	outcomes := it.outcomes
	for wait := time.Millisecond; len(it.held) > 0; wait = min(2*wait, 100*time.Millisecond) {
		if err := pause(ctx, wait); err != nil {
			return nil, fmt.Errorf("sqlstore: %w: %w: %w", idempotency.ErrAmbiguous, idempotency.ErrBusy, err)
		}
		var indexes []int
		var again []idempotency.Claim
		for _, i := range it.held {
			indexes = append(indexes, it.indexes[i])
			again = append(again, it.claims[i].Claim)
		}
		it = newClaims(again)
		it.indexes = indexes
		if err := s.submit(ctx, it); err != nil {
			return nil, fmt.Errorf("%w: %w", idempotency.ErrAmbiguous, err)
		}
		for i, out := range it.outcomes {
			outcomes[indexes[i]] = out
		}
	}
	return outcomes, nil
}

// Complete implements [idempotency.Store].
func (s *Store) Complete(ctx context.Context, ref idempotency.Ref, result idempotency.Result) error {
	return s.settle(ctx, ref, idempotency.Completed(result))
}

// Fail implements [idempotency.Store].
func (s *Store) Fail(ctx context.Context, ref idempotency.Ref, failure idempotency.Failure) error {
	return s.settle(ctx, ref, idempotency.FailedWith(failure))
}

// Release implements [idempotency.Store].
func (s *Store) Release(ctx context.Context, ref idempotency.Ref) error {
	return s.settle(ctx, ref, idempotency.Released())
}

func (s *Store) settle(ctx context.Context, ref idempotency.Ref, t idempotency.Transition) error {
	if err := ref.Check(); err != nil {
		return err
	}
	if err := t.Check(); err != nil {
		return err
	}
	for wait := time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		it := newSettle(ref, t)
		if err := s.submit(ctx, it); err != nil {
			return err
		}
		if !it.busy {
			return nil
		}
		if err := pause(ctx, wait); err != nil {
			return fmt.Errorf("sqlstore: nothing was changed: %w: %w", idempotency.ErrBusy, err)
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// usable returns the error of a store that is closed, or of a context that has ended.
func (s *Store) usable(ctx context.Context) error {
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return idempotency.ErrClosed
	}
	return ctx.Err()
}
