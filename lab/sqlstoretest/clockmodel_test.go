package sqlstoretest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/sqlstore"
)

// Random programs of claims, callers' transactions (committed or rolled back), purges,
// restarts and steps of the clock. No operation runs a second time after the end of its
// resend time, measured by a clock that nobody sets.
func TestClockModel(t *testing.T) {
	seeds := 5000
	if testing.Short() {
		seeds = 25
	}
	var reclaimed, steps int64
	d := newSQLite(t)
	d.source += "&_pragma=synchronous(OFF)"
	db := d.open(t)
	if err := sqlstore.Migrate(t.Context(), db, d.dialect); err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(seeds) {
		m := newClockModel(t, db, seed)
		for range 60 {
			m.step()
		}
		m.s.Close()
		reclaimed += m.reclaimed
		steps += m.steps
		if t.Failed() {
			t.Fatalf("seed %d:\n%s", seed, m.log)
		}
	}
	if reclaimed == 0 || steps == 0 {
		t.Errorf("%d second runs and %d steps of the clock in %d seeds", reclaimed, steps, seeds)
	}
}

const modelResendFor = 265 * time.Second

type clockModel struct {
	t    *testing.T
	db   *sql.DB
	rng  *rand.Rand
	s    *sqlstore.Store
	seed uint64
	log  string

	elapsed  time.Duration // by the clock that nobody sets
	clock    atomic.Int64  // the store's clock, in nanoseconds since 1970
	inMemory bool          // the store has read its clock since the clock last changed
	recorded bool          // likewise, in a call that records the time in the database

	// unnoticed is true if the clock was set back and no write followed. The clock must not
	// pass the earlier time meanwhile, because the store could not notice the step.
	unnoticed bool

	// unwritten is also true then, if the database does not show the step.
	unwritten bool

	begun map[string]time.Duration // elapsed time at the first attempt of each operation

	reclaimed, steps int64
}

func newClockModel(t *testing.T, db *sql.DB, seed uint64) *clockModel {
	m := &clockModel{t: t, db: db, seed: seed, rng: rand.New(rand.NewPCG(seed, 39)), begun: map[string]time.Duration{}}
	// The programs of all seeds share a database with different keys. The clock of a later
	// program is ahead of all earlier ones.
	m.clock.Store(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, 10*int(seed)).UnixNano())
	m.open()
	return m
}

func (m *clockModel) open() {
	if m.s != nil {
		m.s.Close()
	}
	var err error
	m.s, err = sqlstore.Open(m.t.Context(), sqlstore.Config{DB: m.db, Dialect: sqlstore.SQLite, AllowLoss: true, Clock: func() time.Time { return time.Unix(0, m.clock.Load()) }})
	if err != nil {
		m.t.Fatal(err)
	}
	m.inMemory = m.recorded
}

func (m *clockModel) step() {
	switch n := m.rng.IntN(100); {
	case n < 30:
		m.claim()
	case n < 55:
		m.claimTx()
	case n < 60:
		m.note("lookup")
		if _, err := m.s.Lookup(m.t.Context(), m.key()); err != nil {
			m.t.Error(err)
		}
		m.inMemory = true
	case n < 65:
		m.note("purge")
		if _, err := m.s.Purge(m.t.Context()); err != nil {
			m.t.Error(err)
		}
		m.written()
	case n < 70:
		if !m.unwritten {
			m.note("restart")
			m.open()
		}
	case n < 90 && m.unnoticed:
	case n < 90:
		m.advance(time.Duration(m.rng.Int64N(int64(4 * time.Minute))))
	default:
		if !m.inMemory { // the store cannot notice the step
			return
		}
		m.steps++
		by := 6*time.Second + time.Duration(m.rng.Int64N(int64(20*time.Minute)))
		m.note(fmt.Sprintf("the clock is set back by %v", by))
		m.clock.Add(-int64(by))
		m.unnoticed, m.unwritten = true, m.unwritten || !m.recorded
		m.inMemory, m.recorded = false, false
	}
}

// written records a call with a write transaction of the store.
func (m *clockModel) written() {
	m.inMemory, m.recorded, m.unnoticed, m.unwritten = true, true, false, false
}

func (m *clockModel) note(text string) { m.log += fmt.Sprintf("%v: %s\n", m.elapsed, text) }

func (m *clockModel) advance(by time.Duration) {
	m.note(fmt.Sprintf("wait %v", by))
	m.elapsed += by
	m.clock.Add(int64(by))
	m.inMemory, m.recorded = false, false
}

func (m *clockModel) key() idempotency.Key {
	return claimOf(fmt.Sprintf("%d-%d", m.seed, m.rng.IntN(4))).Key
}

func (m *clockModel) newClaim() idempotency.Claim {
	c := claimOf("")
	c.Key = m.key()
	c.Terms.Lease, c.Terms.ResendFor = 10*time.Second, modelResendFor
	return c
}

// check checks a granted claim. It returns the time of the first attempt.
func (m *clockModel) check(c idempotency.Claim, out idempotency.Outcome) time.Duration {
	m.note(fmt.Sprintf("claim of %s: %v", c.Key.Value, out.Decision))
	if out.Decision != idempotency.DecisionReclaimed {
		return m.elapsed
	}
	m.reclaimed++
	since := m.begun[c.Key.Value]
	// The store ignores steps of up to five seconds, and records the time once a second.
	if age := m.elapsed - since; age > modelResendFor+6*time.Second {
		m.t.Errorf("a second run %v after the first attempt", age)
	}
	return since
}

func (m *clockModel) claim() {
	c := m.newClaim()
	out, err := m.s.Claim(m.t.Context(), c)
	if err != nil {
		m.t.Error(err)
		return
	}
	since := m.check(c, out)
	if !out.Decision.Granted() {
		return
	}
	m.written()
	m.begun[c.Key.Value] = since
	if m.rng.IntN(3) == 0 { // otherwise the outcome is lost
		m.note("completed")
		if err := m.s.Finish(m.t.Context(), out.Ref(), idempotency.Completed(idempotency.Result{})); err != nil {
			m.t.Error(err)
		}
	}
}

func (m *clockModel) claimTx() {
	ctx := context.Background()
	c := m.newClaim()
	tx, err := m.db.BeginTx(ctx, nil)
	if err != nil {
		m.t.Error(err)
		return
	}
	defer tx.Rollback() //nolint:errcheck // after a commit there is nothing to roll back
	out, err := m.s.ClaimTx(ctx, tx, c)
	m.written()
	if errors.Is(err, idempotency.ErrBusy) {
		m.note("refused: " + err.Error())
		return
	}
	if err != nil {
		m.t.Error(err)
		return
	}
	since := m.check(c, out)
	if m.rng.IntN(2) == 0 || !out.Decision.Granted() {
		m.note("rolled back")
		return
	}
	if m.rng.IntN(2) == 0 {
		if err := m.s.CompleteTx(ctx, tx, out.Ref(), idempotency.Result{}); err != nil {
			m.t.Error(err)
			return
		}
	}
	if err := tx.Commit(); err != nil {
		m.t.Error(err)
		return
	}
	m.begun[c.Key.Value] = since
}
