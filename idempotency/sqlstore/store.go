package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/ledger"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/clock"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/sink"
)

// Config configures a [Store].
type Config struct {
	// DB is the database, opened by the caller and closed by the caller after the store.
	// The store uses up to three concurrent connections, plus one for each concurrent
	// read by a caller, such as Lookup.
	DB *sql.DB

	Dialect Dialect

	// Capacity is the maximum number of rows; beyond it, claims of new keys are refused
	// as Full. Zero means unlimited. See [Store.Purge].
	//
	// Concurrent transactions do not see each other's rows, so each transaction may
	// exceed Capacity by the number of its claims.
	Capacity int64

	// Quota is the maximum number of unfinished operations of one scope. When a scope has
	// reached Quota, its new operations are refused as OverQuota. Zero means
	// idempotency.DefaultQuota(Capacity), or unlimited without a Capacity.
	//
	// Several transactions or stores on one database may together exceed Quota. Concurrent
	// transactions do not see each other's operations. While Quota has much room, a store
	// counts the operations of a scope only about once a second. Between two counts it
	// does not see the operations of other stores, and the operations that it begins may
	// outnumber those that it completes by up to a sixteenth of Quota. Each further store
	// may therefore exceed Quota by a sixteenth.
	Quota int64

	// GroupTimeout is the time limit for a group of concurrent calls that the store writes
	// together. Zero means 10 s.
	GroupTimeout time.Duration

	// Ledger makes the store record each key change in the ledger, in the same
	// transaction: see [Ledger]. After a store has opened the database with Ledger,
	// stores without Ledger cannot open it.
	Ledger bool

	// LedgerSecret hides scopes and values of keys in the ledger: an entry has the
	// HMAC-SHA-256 of each, made with this secret, in place of the text. See
	// [ledger.Hide]. The secret has at least [ledger.MinSecret] random bytes. Nil writes
	// scopes and values in clear.
	//
	// After a store has opened the database with a secret, stores without a secret cannot
	// open it. A store opened earlier without a secret continues to write in clear.
	// Earlier entries stay unchanged.
	//
	// Keep the secret: without it, the entries of a key cannot be found, and stores with
	// another secret cannot open the database.
	LedgerSecret []byte

	// Logger receives a record when the database clock was set back. It receives a
	// warning when the rows reach 90 % of Capacity, and a warning when a scope has used
	// its quota, each at most once a minute. Nil disables logging.
	Logger *slog.Logger

	// AllowLoss accepts database settings under which acknowledged writes may be lost.
	// [Store.Weaknesses] lists those settings.
	AllowLoss bool

	// Clock returns the time for SQLite; nil means time.Now. Clock must be nil for
	// PostgreSQL, which uses the server's clock.
	Clock func() time.Time
}

// Store is an [idempotency.Store] in a database. It is safe for concurrent use. Any
// number of stores and processes may share a database.
type Store struct {
	config     Config
	engine     engine
	weak       []*idempotency.InvalidError
	committers int
	maxGroup   int  // limit for the claims and endings of one transaction
	hidesKeys  bool // the scope and value of keys are hidden in the ledger
	statements *statements
	missing    missing
	allowances allowances
	options    *sql.TxOptions // of group transactions

	mu       sync.Mutex
	queue    []*item
	running  int                        // number of running goroutines of commit
	lastErr  error                      // error of the last call of write(), or nil
	inFlight map[idempotency.KeyID]bool // keys in transactions now being written
	closed   bool

	clockQueued bool // an item with item.clock is in the queue

	idle sync.Cond // uses mu; signaled when a goroutine of commit ends

	opened           time.Time
	nearFull, noRoom sink.OnceAMinute // limit the warnings about Capacity and about Quota

	seen clock.Largest // largest database time seen by this process, in microseconds
	back clock.Largest // largest backward step that was detected and not yet handled, in microseconds; changes under mu

	stats struct{ transactions, claims, endings, reads, clockSteps atomic.Int64 }
}

var (
	_ idempotency.Store  = (*Store)(nil)
	_ idempotency.Writer = (*Store)(nil)
)

// engine contains all dialect-specific operations.
type engine interface {
	// read returns existing records of the keys.
	read(ctx context.Context, q queryer, ids []idempotency.KeyID) (map[idempotency.KeyID]idempotency.Record, error)

	// now returns the store's time.
	now(ctx context.Context, q queryer) (time.Time, error)

	// begin returns an error if the database's schema no longer permits writes by this
	// version of the program. On SQLite, begin also takes the write lock and reserves
	// fences (numbers of granted claims) for n claims. The parameter `own` is false if a
	// caller began tx.
	begin(ctx context.Context, tx writer, n int, own bool) (started, error)

	// rememberTime returns the statement for recording the database time. The statement
	// waits for no other transaction.
	rememberTime() string

	// claim executes claims of different keys, possibly none. On SQLite, claims[i] gets
	// the number `fence`+i if it is granted.
	claim(ctx context.Context, tx writer, fence int64, claims []claimOf) ([]claimed, error)

	// finish executes calls of Finish and Extend for different keys, possibly none.
	finish(ctx context.Context, tx writer, endings []endingOf) ([]ended, error)

	// append writes ledger entries.
	append(ctx context.Context, tx writer, entries []ledger.Entry) error

	// rows returns at most `limit` ledger rows between the positions `start` (inclusive)
	// and `end` (exclusive), possibly of several epochs.
	rows(ctx context.Context, q queryer, start, end position, limit int) ([]ledgerRow, error)

	// unsealed returns at most `limit` entries that another program added without a seal.
	// On PostgreSQL it returns none.
	unsealed(ctx context.Context, q queryer, limit int) ([]ledgerRow, error)

	// count returns the number of rows.
	count(ctx context.Context, q queryer) (int64, error)

	// unfinished returns the number of unfinished operations of each scope. For each scope
	// it stops counting at the number `limit`.
	unfinished(ctx context.Context, tx writer, scopes []string, limit int64) (map[string]int64, error)

	// grow changes the stored number of rows by the given amount.
	grow(ctx context.Context, tx writer, by int64) error

	// placeholder returns statement parameter i, counting from 1.
	placeholder(i int) string
}

type claimOf struct {
	idempotency.Claim
	id idempotency.KeyID
}

type claimed struct {
	decision idempotency.Decision
	record   idempotency.Record // record after a granted claim, otherwise the record found
	inserted bool               // a row was inserted
}

type endingOf struct {
	ref idempotency.Ref
	id  idempotency.KeyID
	t   idempotency.Ending
}

// ended is the result of a call of Finish or Extend.
type ended struct {
	err  error
	busy bool // another transaction is writing the record, so try the call again

	changed bool         // the call changed the record
	entry   ledger.Entry // the change for the ledger; zero for Extend and without a ledger
}

// Open returns a store using a database prepared by [Migrate]. It returns an
// [*idempotency.InvalidError] for an invalid configuration, for a different schema, and,
// without Config.AllowLoss, for settings under which acknowledged writes may be lost.
func Open(ctx context.Context, c Config) (*Store, error) {
	if c.Capacity < 0 || c.Quota < 0 || c.GroupTimeout < 0 {
		return nil, wrong("Config", fmt.Sprintf("Capacity %d, Quota %d, GroupTimeout %v", c.Capacity, c.Quota, c.GroupTimeout), "want 0 or more")
	}
	if c.Quota == 0 && c.Capacity > 0 {
		c.Quota = idempotency.DefaultQuota(c.Capacity)
	}
	if c.Dialect == PostgreSQL && c.Clock != nil {
		return nil, wrong("Config.Clock", "set", "PostgreSQL has its own clock; leave it nil")
	}
	hide, err := newHider(&c)
	if err != nil {
		return nil, err
	}
	weak, err := schema.Open(ctx, c.DB, c.Dialect, c.AllowLoss)
	if err != nil {
		return nil, err
	}
	if c.GroupTimeout == 0 {
		c.GroupTimeout = 10 * time.Second
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Store{config: c, options: c.Dialect.TxOptions(), weak: weak, hidesKeys: hide != nil, statements: &statements{}, inFlight: map[idempotency.KeyID]bool{}, opened: time.Now()}
	s.idle.L = &s.mu
	if c.Dialect == SQLite {
		clock := c.Clock
		if clock == nil {
			clock = time.Now
		}
		s.maxGroup = maxGroup
		s.engine, s.committers = &sqlite{clock: clock, ledger: c.Ledger, hide: hide, statements: s.statements}, 1
	} else {
		s.maxGroup = maxGroupPostgres
		s.engine, s.committers = postgres{ledger: c.Ledger, hide: hide}, 2
	}
	if err := s.openLedger(ctx, hide); err != nil {
		return nil, err
	}
	if c.Dialect == SQLite { // PostgreSQL drivers prepare automatically
		if err := s.statements.prepare(ctx, c.DB, sqliteStatements()...); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func wrong(field, found, rule string) error {
	return fmt.Errorf("sqlstore: %w", &idempotency.InvalidError{Field: field, Found: found, Rule: rule})
}

// Weaknesses lists settings under which acknowledged writes may be lost, for example
// "synchronous is 1". The list is empty unless [Config.AllowLoss] is set.
func (s *Store) Weaknesses() []string {
	var out []string
	for _, w := range s.weak {
		out = append(out, w.Field+" is "+w.Found)
	}
	return out
}

// Close waits for current and queued writes. Later calls return [idempotency.ErrClosed].
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

// Stats counts a store's writes and reads since it was opened.
type Stats struct {
	Transactions int64 // write transactions, each for one or more concurrent calls
	Claims       int64 // claims executed in a transaction; all other claims needed only a read
	Endings      int64 // calls of Finish and Extend executed in a transaction
	Reads        int64 // read-only statements

	// ClockSteps counts backward steps of the database clock detected by this store. See
	// Limits in the package documentation.
	ClockSteps int64
}

// Stats returns the counts since [Open].
func (s *Store) Stats() Stats {
	return Stats{
		Transactions: s.stats.transactions.Load(), Claims: s.stats.claims.Load(),
		Endings: s.stats.endings.Load(), Reads: s.stats.reads.Load(), ClockSteps: s.stats.clockSteps.Load(),
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

// ClaimBatch implements [idempotency.Store], usually with one commit for all claims.
func (s *Store) ClaimBatch(ctx context.Context, claims []idempotency.Claim) ([]idempotency.Outcome, error) {
	if err := idempotency.CheckBatch(claims); err != nil {
		return nil, err
	}
	if len(claims) == 0 {
		return nil, ctx.Err()
	}
	return s.claim(ctx, claims)
}

// Write implements [idempotency.Writer], usually with one commit for all endings and
// claims of the call.
func (s *Store) Write(ctx context.Context, endings []idempotency.ClaimEnding, claims []idempotency.Claim) (failures []error, outcomes []idempotency.Outcome, err error) {
	failures = make([]error, len(endings))
	items := make([]*item, 0, len(endings)+1)
	finishing := make([]*item, len(endings))
	for i, e := range endings {
		if failures[i] = checkFinishing(e); failures[i] == nil {
			finishing[i] = newEnding(e.Ref, e.Ending)
			items = append(items, finishing[i])
		}
	}
	var claiming *item
	if err = idempotency.CheckBatch(claims); err == nil && len(claims) > 0 {
		claiming = newClaims(claims)
		items = append(items, claiming)
	}
	refused := s.enqueue(ctx, items...)
	for i, it := range finishing {
		switch {
		case it == nil:
		case refused != nil:
			failures[i] = refused
		default:
			if failures[i] = s.await(ctx, it); failures[i] == nil && it.busy {
				failures[i] = s.Finish(ctx, endings[i].Ref, endings[i].Ending)
			}
		}
	}
	switch {
	case claiming == nil:
		return failures, nil, err
	case refused != nil:
		return failures, nil, refused
	}
	if err := s.await(ctx, claiming); err != nil {
		return failures, nil, err
	}
	outcomes, err = s.renew(ctx, claiming)
	return failures, outcomes, err
}

func checkFinishing(e idempotency.ClaimEnding) error {
	if err := e.Ref.Check(); err != nil {
		return err
	}
	return e.Ending.Check()
}

// claim submits the claims. A claim that renews a lease may fail because another
// transaction holds the key's lock; the method `renew` repeats such claims.
func (s *Store) claim(ctx context.Context, claims []idempotency.Claim) ([]idempotency.Outcome, error) {
	it := newClaims(claims)
	if err := s.submit(ctx, it); err != nil {
		return nil, err
	}
	return s.renew(ctx, it)
}

// renew repeats the claims in item.renewals until their keys are free or ctx ends. Each of
// these claims renews a lease, but another transaction had locked the key. The answer
// InProgress would mean that another claimant runs the operation. This would be wrong: the
// caller itself is the claimant.
func (s *Store) renew(ctx context.Context, it *item) ([]idempotency.Outcome, error) {
	outcomes := it.outcomes
	for wait := time.Millisecond; len(it.renewals) > 0; wait = min(2*wait, 100*time.Millisecond) {
		if err := clock.Sleep(ctx, wait); err != nil {
			return nil, fmt.Errorf("sqlstore: %w: %w: %w", idempotency.ErrAmbiguous, idempotency.ErrBusy, err)
		}
		var indexes []int
		var again []idempotency.Claim
		for _, i := range it.renewals {
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

// Extend implements [idempotency.Store].
func (s *Store) Extend(ctx context.Context, ref idempotency.Ref, lease time.Duration) error {
	return s.Finish(ctx, ref, idempotency.Extended(lease))
}

// Finish implements [idempotency.Store].
func (s *Store) Finish(ctx context.Context, ref idempotency.Ref, t idempotency.Ending) error {
	if err := checkFinishing(idempotency.ClaimEnding{Ref: ref, Ending: t}); err != nil {
		return err
	}
	return repeat(ctx, func() (done bool, err error) {
		it := newEnding(ref, t)
		err = s.submit(ctx, it)
		return !it.busy, err
	})
}

// repeat calls f until f is done or returns an error. Between two calls it waits 1 ms at
// first, and then twice as long each time, up to 100 ms. If ctx ends meanwhile, repeat
// returns [idempotency.ErrBusy].
func repeat(ctx context.Context, f func() (done bool, err error)) error {
	for wait := time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		if done, err := f(); done || err != nil {
			return err
		}
		if err := clock.Sleep(ctx, wait); err != nil {
			return fmt.Errorf("sqlstore: nothing was changed: %w: %w", idempotency.ErrBusy, err)
		}
	}
}

func (s *Store) age() time.Duration { return time.Since(s.opened) }

// usable returns an error if the store is closed or ctx has ended.
func (s *Store) usable(ctx context.Context) error {
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return idempotency.ErrClosed
	}
	return ctx.Err()
}
