package consumertest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"sync"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// fakeDB is an in-memory database for handlers' effects and claims of keys. Both become
// visible when a transaction commits. A statement's text is the name of an effect instead
// of SQL.
type fakeDB struct {
	s *simulation

	mu      sync.Mutex
	records map[idempotency.Key]idempotency.Record
	locked  map[idempotency.Key]int64
	staged  map[int64]*stagedTx
	ids     int64
	fences  int64
}

type stagedTx struct {
	effects []string
	record  idempotency.Record
}

func newFakeDB(s *simulation) *fakeDB {
	return &fakeDB{s: s, records: map[idempotency.Key]idempotency.Record{}, locked: map[idempotency.Key]int64{}, staged: map[int64]*stagedTx{}}
}

func (d *fakeDB) close() {}

// open returns the database for one process.
func (d *fakeDB) open(p *process) *sql.DB { return sql.OpenDB(fakeConnector{d, p}) }

type fakeConnector struct {
	d *fakeDB
	p *process
}

func (c fakeConnector) Connect(context.Context) (driver.Conn, error) {
	return &fakeConn{d: c.d, p: c.p}, nil
}
func (c fakeConnector) Driver() driver.Driver { return nil }

type fakeConn struct {
	d    *fakeDB
	p    *process
	txID int64 // identifies the open transaction
}

func (c *fakeConn) Prepare(string) (driver.Stmt, error) { return nil, errors.New("not supported") }
func (c *fakeConn) Close() error                        { return nil }
func (c *fakeConn) Begin() (driver.Tx, error) {
	if c.p.killed.Load() {
		return nil, errKilled
	}
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	c.d.ids++
	c.txID = c.d.ids
	c.d.staged[c.txID] = &stagedTx{}
	return c, nil
}

// ExecContext adds the named effect to the open transaction; an empty name adds no
// effect. The result contains the number of the transaction.
func (c *fakeConn) ExecContext(_ context.Context, effect string, _ []driver.NamedValue) (driver.Result, error) {
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	if effect != "" {
		c.d.staged[c.txID].effects = append(c.d.staged[c.txID].effects, effect)
	}
	return txResult(c.txID), nil
}

type txResult int64

func (r txResult) LastInsertId() (int64, error) { return int64(r), nil }
func (r txResult) RowsAffected() (int64, error) { return 1, nil }

func (c *fakeConn) Commit() error {
	c.p.w.point(c.p, "before a commit")
	if c.p.killed.Load() {
		_ = c.Rollback()
		return errKilled
	}
	c.d.mu.Lock()
	staged := c.d.staged[c.txID]
	c.d.records[staged.record.Key] = staged.record
	c.d.mu.Unlock()
	s := c.d.s
	s.mu.Lock()
	for _, effect := range staged.effects {
		s.effects[effect]++
		s.ended[effect] = true
	}
	s.mu.Unlock()
	// The effects are committed. Rollback only removes the transaction and its lock.
	_ = c.Rollback()
	c.p.w.point(c.p, "after a commit")
	if c.p.killed.Load() || s.random(50) == 0 {
		return errors.New("the answer to the commit is lost")
	}
	return nil
}

func (c *fakeConn) Rollback() error {
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	if staged := c.d.staged[c.txID]; staged != nil && c.d.locked[staged.record.Key] == c.txID {
		delete(c.d.locked, staged.record.Key)
	}
	delete(c.d.staged, c.txID)
	return nil
}

// fakeTxStore is an idempotency store for HandleTx. Its methods ClaimTx and CompleteTx
// keep the records in a fakeDB.
type fakeTxStore struct {
	idempotency.Store // for calls outside a transaction
	d                 *fakeDB
}

func (f fakeTxStore) ClaimTx(ctx context.Context, tx *sql.Tx, c idempotency.Claim) (idempotency.Outcome, error) {
	r, err := tx.ExecContext(ctx, "")
	if err != nil {
		return idempotency.Outcome{}, err
	}
	id, _ := r.LastInsertId()
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if by := f.d.locked[c.Key]; by != 0 && by != id {
		return idempotency.Outcome{Decision: idempotency.DecisionInProgress}, nil
	}
	found := f.d.records[c.Key]
	decision := idempotency.Decide(found, c, time.Now())
	if !decision.Granted() {
		return idempotency.NewOutcome(decision, found, c), nil
	}
	f.d.fences++
	granted := idempotency.Grant(found, c, decision, f.d.fences, time.Now())
	f.d.locked[c.Key] = id
	f.d.staged[id].record = granted
	return idempotency.NewOutcome(decision, granted, c), nil
}

func (f fakeTxStore) CompleteTx(ctx context.Context, tx *sql.Tx, ref idempotency.Ref, result idempotency.Result) error {
	r, err := tx.ExecContext(ctx, "")
	if err != nil {
		return err
	}
	id, _ := r.LastInsertId()
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	record := &f.d.staged[id].record
	if record.Fence != ref.Fence {
		return idempotency.ErrStaleClaim
	}
	record.Status, record.Result, record.Token = idempotency.StatusSucceeded, result, idempotency.Token{}
	return nil
}
