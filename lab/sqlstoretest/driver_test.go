package sqlstoretest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/sqlstore"
)

// hooks intercepts calls between a store and its driver.
type hooks struct {
	// The function `begin` is called once, before the first write of the next transaction.
	begin atomic.Pointer[func()]
	// The function `commit` replaces the driver's Commit for the next transaction. It may call
	// the real Commit.
	commit atomic.Pointer[func(real func() error) error]

	mu      sync.Mutex
	queries []string // all statements so far
}

// last returns the last statement that contains a text.
func (h *hooks) last(t *testing.T, text string) string {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, query := range slices.Backward(h.queries) {
		if strings.Contains(query, text) {
			return query
		}
	}
	t.Fatalf("no statement has %q", text)
	return ""
}

func (h *hooks) before(query string) {
	h.mu.Lock()
	h.queries = append(h.queries, query)
	h.mu.Unlock()
	if strings.Contains(query, "plan_cache_mode") || strings.Contains(query, "name = 'fence'") {
		if f := h.begin.Swap(nil); f != nil {
			(*f)()
		}
	}
}

// open opens the database with a driver that calls the hooks.
func (h *hooks) open(t *testing.T, d database) *sql.DB {
	t.Helper()
	plain := d.open(t)
	db := sql.OpenDB(connector{plain.Driver(), d.source, h})
	t.Cleanup(func() { db.Close() })
	return db
}

type connector struct {
	driver driver.Driver
	source string
	hooks  *hooks
}

func (c connector) Driver() driver.Driver { return c.driver }

func (c connector) Connect(ctx context.Context) (conn driver.Conn, err error) {
	if with, ok := c.driver.(driver.DriverContext); ok {
		var plain driver.Connector
		if plain, err = with.OpenConnector(c.source); err == nil {
			conn, err = plain.Connect(ctx)
		}
	} else {
		conn, err = c.driver.Open(c.source)
	}
	if err != nil {
		return nil, err
	}
	return hookedConn{conn, c.hooks}, nil
}

type hookedConn struct {
	driver.Conn
	hooks *hooks
}

func (c hookedConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c.hooks.before(query)
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
}

func (c hookedConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	c.hooks.before(query)
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
}

func (c hookedConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	s, err := c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	return hookedStmt{s, query, c.hooks}, nil
}

func (c hookedConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	tx, err := c.Conn.(driver.ConnBeginTx).BeginTx(ctx, opts)
	return hookedTx{tx, c.hooks}, err
}

func (c hookedConn) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := c.Conn.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

type hookedStmt struct {
	driver.Stmt
	query string
	hooks *hooks
}

func (s hookedStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	s.hooks.before(s.query)
	return s.Stmt.(driver.StmtQueryContext).QueryContext(ctx, args)
}

func (s hookedStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	s.hooks.before(s.query)
	return s.Stmt.(driver.StmtExecContext).ExecContext(ctx, args)
}

type hookedTx struct {
	driver.Tx
	hooks *hooks
}

func (x hookedTx) Commit() error {
	if f := x.hooks.commit.Swap(nil); f != nil {
		return (*f)(x.Tx.Commit)
	}
	return x.Tx.Commit()
}

// Another store changes the record between a claim's read and its write. The changed
// record decides the claim. With the decision Duplicate, the claimant gets the result in
// that record.
func TestBetweenReadAndWrite(t *testing.T) {
	result := idempotency.Result{Response: []byte("by the other")}
	payload := func(c *idempotency.Claim) { c.Fingerprint = idempotency.FingerprintOf("test/1", []byte("another")) }
	type step func(t *testing.T, s *sqlstore.Store, c idempotency.Claim)
	claims := func(then func(t *testing.T, s *sqlstore.Store, ref idempotency.Ref), change ...func(*idempotency.Claim)) step {
		return func(t *testing.T, s *sqlstore.Store, c idempotency.Claim) {
			c.Token = idempotency.NewToken()
			for _, f := range change {
				f(&c)
			}
			out, err := s.Claim(t.Context(), c)
			if err != nil || !out.Decision.Granted() {
				t.Errorf("the other store's claim: %v, %v", out.Decision, err)
				return
			}
			if then != nil {
				then(t, s, out.Ref())
			}
		}
	}
	ends := func(f func(ctx context.Context, s *sqlstore.Store, ref idempotency.Ref) error) func(t *testing.T, s *sqlstore.Store, ref idempotency.Ref) {
		return func(t *testing.T, s *sqlstore.Store, ref idempotency.Ref) {
			if err := f(t.Context(), s, ref); err != nil {
				t.Error(err)
			}
		}
	}
	completes := ends(func(ctx context.Context, s *sqlstore.Store, ref idempotency.Ref) error {
		return s.Finish(ctx, ref, idempotency.Completed(result))
	})
	releases := ends(func(ctx context.Context, s *sqlstore.Store, ref idempotency.Ref) error {
		return s.Finish(ctx, ref, idempotency.Released())
	})
	fails := func(proof idempotency.Proof) func(t *testing.T, s *sqlstore.Store, ref idempotency.Ref) {
		return ends(func(ctx context.Context, s *sqlstore.Store, ref idempotency.Ref) error {
			return s.Finish(ctx, ref, idempotency.FailedWith(idempotency.Failure{Proof: proof}))
		})
	}
	safe := func(c *idempotency.Claim) { c.Terms.ResendFor = time.Hour }
	spec := func(c *idempotency.Claim) { c.Fingerprint.Spec = "test/0" }
	for _, tc := range []struct {
		name    string
		before  step
		between step
		want    idempotency.Decision
	}{
		{"absent, claimed", nil, claims(nil), idempotency.DecisionInProgress},
		{"absent, claimed for another payload", nil, claims(nil, payload), idempotency.DecisionConflict},
		{"absent, failed with another payload", nil, claims(fails(idempotency.ProofForAll), payload), idempotency.DecisionConflict},
		{"absent, failed with another spec", nil, claims(fails(idempotency.ProofForAll), spec), idempotency.DecisionIncomparable},
		{"absent, in doubt with another payload", nil, claims(fails(idempotency.ProofNone), payload, safe), idempotency.DecisionConflict},
		{"absent, completed", nil, claims(completes), idempotency.DecisionDuplicate},
		{"absent, failed", nil, claims(fails(idempotency.ProofForAll)), idempotency.DecisionNew},
		{"absent, in doubt", nil, claims(fails(idempotency.ProofNone)), idempotency.DecisionUnresolved},
		{"absent, in doubt and safe", nil, claims(fails(idempotency.ProofNone), safe), idempotency.DecisionReclaimed},
		{"absent, released", nil, claims(releases, payload), idempotency.DecisionNew},
		{"released, completed", claims(releases), claims(completes), idempotency.DecisionDuplicate},
		{"failed, completed", claims(fails(idempotency.ProofForAll)), claims(completes), idempotency.DecisionDuplicate},
		{"in doubt, reclaimed", claims(fails(idempotency.ProofNone), safe), claims(nil), idempotency.DecisionInProgress},
		{"in doubt, reclaimed and completed", claims(fails(idempotency.ProofNone), safe), claims(completes), idempotency.DecisionDuplicate},
		{"in doubt, reclaimed and released", claims(fails(idempotency.ProofNone), safe), claims(releases), idempotency.DecisionReclaimed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			each(t, func(t *testing.T, d database) {
				h := new(hooks)
				other := d.store(t, sqlstore.Config{})
				s := d.store(t, sqlstore.Config{DB: h.open(t, d)})
				c := claimOf("key")
				if tc.before != nil {
					tc.before(t, other, c)
				}
				between := func() { tc.between(t, other, c) }
				h.begin.Store(&between)
				out := claim(t, s, c, tc.want)
				if h.begin.Load() != nil {
					t.Fatal("nothing came between")
				}
				if tc.want == idempotency.DecisionDuplicate && string(out.Record.Result.Response) != string(result.Response) {
					t.Errorf("the duplicate has the result %q", out.Record.Result.Response)
				}
			})
		})
	}
}

// If the driver reports that a commit failed, the commit may have been made, so the call
// returns ErrAmbiguous. A repeated call succeeds in both cases.
func TestUnconfirmedCommit(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		h := new(hooks)
		s := d.store(t, sqlstore.Config{DB: h.open(t, d)})
		lost := func(made bool) func(real func() error) error {
			return func(real func() error) error {
				if made {
					if err := real(); err != nil {
						t.Error(err)
					}
				}
				return io.ErrUnexpectedEOF
			}
		}
		for name, made := range map[string]bool{"made": true, "not made": false} {
			c := claimOf(name)
			commit := lost(made)
			h.commit.Store(&commit)
			if _, err := s.Claim(t.Context(), c); !errors.Is(err, idempotency.ErrAmbiguous) || !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatalf("%s: claim: got %v, want ErrAmbiguous", name, err)
			}
			want := idempotency.DecisionNew
			if made {
				want = idempotency.DecisionRenewed
				if out := claim(t, s, claimOf(name), idempotency.DecisionInProgress); out.Record.Token != c.Token {
					t.Errorf("%s: the claim is not there", name)
				}
			}
			out := claim(t, s, c, want)
			h.commit.Store(&commit)
			if err := s.Finish(t.Context(), out.Ref(), idempotency.Completed(idempotency.Result{Response: []byte("r")})); !errors.Is(err, idempotency.ErrAmbiguous) {
				t.Fatalf("%s: complete: got %v, want ErrAmbiguous", name, err)
			}
			if err := s.Finish(t.Context(), out.Ref(), idempotency.Completed(idempotency.Result{Response: []byte("r")})); err != nil {
				t.Errorf("%s: complete again: %v", name, err)
			}
			claim(t, s, claimOf(name), idempotency.DecisionDuplicate)
		}
	})
}

// held starts a claim in another goroutine and returns when the claim has begun its
// transaction and waits there. After release(), the claim continues, and its error, or
// nil, is sent to the channel `answered`.
func (h *hooks) held(t *testing.T, s *sqlstore.Store) (answered chan error, release func()) {
	t.Helper()
	waits, goOn := make(chan struct{}), make(chan struct{})
	begin := func() {
		close(waits)
		<-goOn
	}
	h.begin.Store(&begin)
	answered = make(chan error, 1)
	go func() {
		_, err := s.Claim(context.Background(), claimOf("held"))
		answered <- err
	}()
	<-waits
	return answered, func() { close(goOn) }
}

// If the context of a claim ends while the claim waits for a transaction, the store does
// not make the claim. If the context ends during the transaction, the store may make the
// claim, and the error is ErrAmbiguous.
func TestWithdrawn(t *testing.T) {
	d := newSQLite(t) // on SQLite, the store runs one transaction at a time
	h := new(hooks)
	s := d.store(t, sqlstore.Config{DB: h.open(t, d)})
	answered, release := h.held(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := s.Claim(ctx, claimOf("waiting"))
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, idempotency.ErrAmbiguous) {
		t.Errorf("got %v, want the context's error, and no doubt", err)
	}
	release()
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
	// Claims run in the order of the calls. After this claim, the claim "waiting" can no
	// longer be made.
	claim(t, s, claimOf("next"), idempotency.DecisionNew)
	if r, err := s.Lookup(t.Context(), claimOf("waiting").Key); err != nil || r[0].Status != idempotency.StatusAbsent {
		t.Errorf("the claim that was withdrawn is %v, %v", r[0].Status, err)
	}

	waits, goOn := make(chan struct{}), make(chan struct{})
	begin := func() { close(waits); <-goOn }
	h.begin.Store(&begin)
	ctx, cancel = context.WithCancel(t.Context())
	go func() { <-waits; cancel() }()
	if _, err := s.Claim(ctx, claimOf("in a group")); !errors.Is(err, context.Canceled) || !errors.Is(err, idempotency.ErrAmbiguous) {
		t.Errorf("got %v, want ErrAmbiguous and the context's error", err)
	}
	close(goOn)
	claim(t, s, claimOf("in a group"), idempotency.DecisionInProgress)
}

// If a claim has begun its transaction, Close waits until the claim has returned.
func TestCloseWaits(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		h := new(hooks)
		s := d.store(t, sqlstore.Config{DB: h.open(t, d)})
		answered, release := h.held(t, s)
		closed := make(chan struct{})
		go func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			close(closed)
		}()
		select {
		case <-closed:
			t.Error("Close did not wait")
		case <-time.After(50 * time.Millisecond):
		}
		release()
		if err := <-answered; err != nil {
			t.Error(err)
		}
		<-closed
	})
}
