package sqlstoretest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/sqlstore"
)

func claimOf(value string) idempotency.Claim {
	body := []byte(`{"amount":1e3}`)
	return idempotency.Claim{
		Key: idempotency.Key{Scope: "test", Operation: "payments.create", Value: value}, Token: idempotency.NewToken(),
		Fingerprint: idempotency.FingerprintOf("test/1", body), ExactHash: idempotency.ExactHashOf(body, "group"), Group: "group", Body: body,
		Terms: idempotency.Terms{Lease: time.Hour, TTL: 24 * time.Hour},
	}
}

// claim makes the claim and expects the decision.
func claim(t testing.TB, s *sqlstore.Store, c idempotency.Claim, want idempotency.Decision) idempotency.Outcome {
	t.Helper()
	out, err := s.Claim(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	if out.Decision != want {
		t.Fatalf("got %v, want %v", out.Decision, want)
	}
	return out
}

// A caller's transaction commits the side effect, the claim and the result together. After
// a rollback, none of them exists.
func TestClaimTx(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		db := d.open(t)
		s := d.store(t, sqlstore.Config{DB: db})
		ctx := t.Context()
		if _, err := db.Exec(`CREATE TABLE payments (id bigint)`); err != nil {
			t.Fatal(err)
		}
		pay := func(value string, commit bool) (idempotency.Outcome, error) {
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return idempotency.Outcome{}, err
			}
			defer tx.Rollback()
			out, err := s.ClaimTx(ctx, tx, claimOf(value))
			if err != nil || !out.Decision.Granted() {
				return out, err
			}
			if _, err := tx.Exec(`INSERT INTO payments (id) VALUES (1)`); err != nil {
				return out, err
			}
			if err := s.CompleteTx(ctx, tx, out.Ref(), idempotency.Result{Response: []byte("paid")}); err != nil {
				return out, err
			}
			if !commit {
				return out, nil
			}
			return out, tx.Commit()
		}
		payments := func() (n int) {
			if err := db.QueryRow(`SELECT count(*) FROM payments`).Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		rolledBack, err := pay("a", false)
		if err != nil || rolledBack.Decision != idempotency.DecisionNew {
			t.Fatalf("got %v, %v", rolledBack.Decision, err)
		}
		if r, err := s.Lookup(ctx, claimOf("a").Key); err != nil || r[0].Status != idempotency.StatusAbsent || payments() != 0 {
			t.Fatalf("after a rollback: %v, %v, %d payments, want nothing", r[0].Status, err, payments())
		}
		// The caller may have used the fence (number) of the rolled back claim elsewhere.
		other := d.store(t, sqlstore.Config{})
		if out := claim(t, other, claimOf("b"), idempotency.DecisionNew); out.Record.Fence <= rolledBack.Record.Fence {
			t.Errorf("fence %d was given after %d, which was rolled back", out.Record.Fence, rolledBack.Record.Fence)
		}
		if out, err := pay("a", true); err != nil || out.Decision != idempotency.DecisionNew || out.Record.Fence <= rolledBack.Record.Fence {
			t.Fatalf("got %v with fence %d, %v", out.Decision, out.Record.Fence, err)
		}
		for range 3 {
			out, err := pay("a", true)
			if err != nil || out.Decision != idempotency.DecisionDuplicate || string(out.Record.Result.Response) != "paid" {
				t.Fatalf("got %v, %v, want the stored result", out.Decision, err)
			}
		}
		if n := payments(); n != 1 {
			t.Errorf("%d payments, want 1", n)
		}
		if n, err := s.Count(ctx); err != nil || n != 2 {
			t.Errorf("the count is %d, %v, want 2", n, err)
		}
	})
}

// The caller's transaction may belong to another *sql.DB of the same database.
func TestClaimTxWithAnotherHandle(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		s := d.store(t, sqlstore.Config{})
		tx, err := d.open(t).BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		out, err := s.ClaimTx(t.Context(), tx, claimOf("a"))
		if err != nil || out.Decision != idempotency.DecisionNew {
			t.Fatalf("got %v, %v, want New", out.Decision, err)
		}
		if err := s.CompleteTx(t.Context(), tx, out.Ref(), idempotency.Result{Response: []byte("done")}); err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		claim(t, s, claimOf("a"), idempotency.DecisionDuplicate)
	})
}

// A fence (the number of a claim) that a caller has seen is never given again, even if the
// claim was rolled back and the clock was set back.
func TestFencesAndTheClock(t *testing.T) {
	d := newSQLite(t)
	db := d.open(t)
	now := time.Now()
	s := d.store(t, sqlstore.Config{DB: db, Clock: func() time.Time { return now }})
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	rolledBack, err := s.ClaimTx(t.Context(), tx, claimOf("a"))
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	now = now.Add(-time.Hour)
	if out := claim(t, s, claimOf("a"), idempotency.DecisionNew); out.Record.Fence <= rolledBack.Record.Fence {
		t.Errorf("fence %d was given after %d, which was rolled back", out.Record.Fence, rolledBack.Record.Fence)
	}
	other := d.store(t, sqlstore.Config{Clock: func() time.Time { return now }})
	first := claim(t, s, claimOf("b"), idempotency.DecisionNew)
	if out := claim(t, other, claimOf("c"), idempotency.DecisionNew); out.Record.Fence <= first.Record.Fence {
		t.Errorf("fence %d was given after %d, by another store", out.Record.Fence, first.Record.Fence)
	}
}

// If many callers pay the same hundred bills, each in its own transactions, each bill is
// paid once.
func TestClaimTxRaces(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		db := d.open(t)
		s := d.store(t, sqlstore.Config{DB: db})
		if _, err := db.Exec(`CREATE TABLE payments (bill bigint)`); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for bill := range 100 {
					err := func() error {
						tx, err := db.BeginTx(t.Context(), nil)
						if err != nil {
							return err
						}
						defer tx.Rollback()
						out, err := s.ClaimTx(t.Context(), tx, claimOf(fmt.Sprint(bill)))
						if err != nil || !out.Decision.Granted() {
							return err
						}
						if _, err := tx.Exec(fmt.Sprintf(`INSERT INTO payments (bill) VALUES (%d)`, bill)); err != nil {
							return err
						}
						if err := s.CompleteTx(t.Context(), tx, out.Ref(), idempotency.Result{}); err != nil {
							return err
						}
						return tx.Commit()
					}()
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		var rows, bills int
		if err := db.QueryRow(`SELECT count(*), count(DISTINCT bill) FROM payments`).Scan(&rows, &bills); err != nil {
			t.Fatal(err)
		}
		if rows != 100 || bills != 100 {
			t.Errorf("%d payments of %d bills, want 100 of 100", rows, bills)
		}
	})
}

// On PostgreSQL, a caller's open transaction locks its key and delays no other key.
func TestOpenTransactionDelaysNobody(t *testing.T) {
	d := newPostgreSQL(t)
	db := d.open(t)
	s := d.store(t, sqlstore.Config{DB: db, GroupTimeout: 3 * time.Second})
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if out, err := s.ClaimTx(t.Context(), tx, claimOf("held")); err != nil || out.Decision != idempotency.DecisionNew {
		t.Fatal(out.Decision, err)
	}
	var batch []idempotency.Claim
	for i := range 63 {
		batch = append(batch, claimOf(fmt.Sprint(i)))
	}
	batch = append(batch, claimOf("held"))
	outs, err := s.ClaimBatch(t.Context(), batch)
	if err != nil {
		t.Fatalf("a group with a key that a transaction holds: %v", err)
	}
	for i, out := range outs[:63] {
		if out.Decision != idempotency.DecisionNew {
			t.Errorf("claim %d: got %v, want new", i, out.Decision)
		}
	}
	if out := outs[63]; out.Decision != idempotency.DecisionInProgress || out.RetryAfter() <= 0 {
		t.Errorf("the key that is held: got %v, want in progress", out.Decision)
	}
	// If another transaction has locked a key, the completion of the key waits for a
	// limited time.
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := tx.Exec(`SELECT pg_advisory_xact_lock(('x' || encode(substring(key_id FROM 1 FOR 8), 'hex'))::bit(64)::bigint) FROM idempotency_keys WHERE key IN ('0', '3')`); err != nil {
		t.Fatal(err)
	}
	err = s.Finish(ctx, outs[0].Ref(), idempotency.Completed(idempotency.Result{}))
	if !errors.Is(err, idempotency.ErrBusy) && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("completion of a key that is held: got %v, want ErrBusy", err)
	}
	// A repeated claim by the owner waits for the key's lock, and never gets DecisionInProgress.
	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if out, err := s.ClaimBatch(ctx, batch[:2]); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("renewal of a key that is held: got %v, %v, want to wait", out, err)
	}
	renewing, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer renewing.Rollback()
	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if out, err := s.ClaimTx(ctx, renewing, batch[0]); !errors.Is(err, idempotency.ErrBusy) && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("renewal in a transaction, of a key that is held: got %v, %v, want ErrBusy", out.Decision, err)
	}
	// Rollback fails if the ended context has closed the connection. The server then rolls
	// back by itself.
	if err := renewing.Rollback(); err != nil {
		t.Logf("roll back after the context has ended: %v", err)
	}
	claim(t, s, claimOf("0"), idempotency.DecisionInProgress)
	if err := s.Finish(t.Context(), outs[1].Ref(), idempotency.Completed(idempotency.Result{})); err != nil {
		t.Errorf("completion of a key that is free: %v", err)
	}
	renewed := make(chan idempotency.Decision)
	inTx := make(chan idempotency.Decision)
	go func() {
		tx, err := db.BeginTx(context.Background(), nil)
		if err != nil {
			t.Error(err)
		}
		defer tx.Rollback()
		out, err := s.ClaimTx(context.Background(), tx, batch[3])
		if err != nil {
			t.Error(err)
		}
		inTx <- out.Decision
	}()
	go func() {
		out, err := s.ClaimBatch(context.Background(), []idempotency.Claim{batch[2], batch[0], batch[1]})
		if err != nil {
			t.Error(err)
			out = make([]idempotency.Outcome, 3)
		}
		if out[0].Decision != idempotency.DecisionRenewed || out[2].Decision != idempotency.DecisionDuplicate {
			t.Errorf("the other claims of the batch: got %v and %v, want renewed and duplicate", out[0].Decision, out[2].Decision)
		}
		renewed <- out[1].Decision
	}()
	time.Sleep(20 * time.Millisecond)
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if d := <-inTx; d != idempotency.DecisionRenewed {
		t.Errorf("renewal in a transaction after the key is free: got %v, want renewed", d)
	}
	if d := <-renewed; d != idempotency.DecisionRenewed {
		t.Errorf("renewal after the key is free: got %v, want renewed", d)
	}
	if err := s.Finish(t.Context(), outs[0].Ref(), idempotency.Completed(idempotency.Result{})); err != nil {
		t.Errorf("completion after the key is free: %v", err)
	}
	claim(t, s, claimOf("held"), idempotency.DecisionNew)
}

// The store's transactions set their own isolation level. Concurrent transactions do not
// fail with serialization errors, even in a database that is serializable by default.
func TestGroupsOfASerializableDatabase(t *testing.T) {
	d := newPostgreSQL(t)
	d.source += "&default_transaction_isolation=serializable"
	stores := []*sqlstore.Store{d.store(t, sqlstore.Config{}), d.store(t, sqlstore.Config{})}
	var wg sync.WaitGroup
	for w := range 32 {
		wg.Go(func() {
			for i := range 20 {
				out, err := stores[w%2].Claim(t.Context(), claimOf(fmt.Sprint(i)))
				if err == nil && out.Decision.Granted() {
					err = stores[w%2].Finish(t.Context(), out.Ref(), idempotency.Completed(idempotency.Result{}))
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// Claims and completions of concurrent callers share commits. Duplicates need no commit.
func TestGroups(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		s := d.store(t, sqlstore.Config{})
		const writers, each = 64, 20
		outs := make([][]idempotency.Outcome, writers)
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				for i := range each {
					out, err := s.Claim(t.Context(), claimOf(fmt.Sprint(w, i)))
					if err == nil {
						err = s.Finish(t.Context(), out.Ref(), idempotency.Completed(idempotency.Result{Response: []byte("r")}))
					}
					if err != nil || out.Decision != idempotency.DecisionNew {
						t.Errorf("got %v, %v", out.Decision, err)
					}
					outs[w] = append(outs[w], out)
				}
			})
		}
		wg.Wait()
		before := s.Stats()
		if before.Claims != writers*each || before.Endings != writers*each {
			t.Errorf("%+v, want %d claims and transitions", before, writers*each)
		}
		if before.Transactions > before.Claims/4 {
			t.Errorf("%d transactions for %d claims of %d callers; they share none", before.Transactions, before.Claims, writers)
		}
		for w := range writers {
			wg.Go(func() {
				for i := range each {
					out, err := s.Claim(t.Context(), claimOf(fmt.Sprint(w, i)))
					if err != nil || out.Decision != idempotency.DecisionDuplicate || string(out.Record.Result.Response) != "r" {
						t.Errorf("got %v, %v, want a duplicate", out.Decision, err)
					}
				}
			})
		}
		wg.Wait()
		if after := s.Stats(); after.Transactions != before.Transactions || after.Claims != before.Claims {
			t.Errorf("duplicates wrote: %+v became %+v", before, after)
		}
	})
}

// A full store refuses new keys. Only expired records make room. The count of records is
// exact.
func TestCapacity(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		db := d.open(t)
		if err := sqlstore.Migrate(t.Context(), db, d.dialect); err != nil {
			t.Fatal(err)
		}
		advance, clock := advancing(t, d)
		s := d.store(t, sqlstore.Config{DB: db, Capacity: 50, Clock: clock})
		for i := range 5 {
			var batch []idempotency.Claim
			for j := range 10 {
				c := claimOf(fmt.Sprint(i, j))
				if i == 0 {
					c.Terms.TTL = time.Hour
				}
				batch = append(batch, c)
			}
			outs, err := s.ClaimBatch(t.Context(), batch)
			if err != nil {
				t.Fatal(err)
			}
			for _, out := range outs {
				if out.Decision != idempotency.DecisionNew {
					t.Fatalf("got %v, want new", out.Decision)
				}
				if err := s.Finish(t.Context(), out.Ref(), idempotency.Completed(idempotency.Result{})); err != nil {
					t.Fatal(err)
				}
			}
		}
		one := claimOf("one more")
		outs, err := s.ClaimBatch(t.Context(), []idempotency.Claim{one, claimOf(fmt.Sprint(3, 3)), one})
		if err != nil || outs[0].Decision != idempotency.DecisionFull || outs[1].Decision != idempotency.DecisionDuplicate || outs[2].Decision != idempotency.DecisionFull {
			t.Fatalf("a full store: got %v, %v, want full and a duplicate", outs, err)
		}
		var capacity *idempotency.CapacityError
		if err := outs[0].Err(one.Key); !errors.As(err, &capacity) || strings.Contains(err.Error(), one.Key.Value) {
			t.Errorf("got %v, want a CapacityError without the key's value", err)
		}
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if out, err := s.ClaimTx(t.Context(), tx, one); err != nil || out.Decision != idempotency.DecisionFull {
			t.Errorf("ClaimTx in a full store: got %v, %v, want full", out.Decision, err)
		}
		tx.Rollback()
		// The full store refuses only new keys. The 50 stored keys are duplicates.
		for i := range 50 {
			claim(t, s, claimOf(fmt.Sprint(i/10, i%10)), idempotency.DecisionDuplicate)
		}
		advance(2 * time.Hour)
		// The row of the expired key remains until Purge. A new claim uses this row.
		claim(t, s, claimOf(fmt.Sprint(0, 0)), idempotency.DecisionNew)
		if n, err := s.Purge(t.Context()); err != nil || n != 9 {
			t.Errorf("purged %d, %v, want 9", n, err)
		}
		claim(t, s, one, idempotency.DecisionNew)
		var rows int64
		if err := db.QueryRow(`SELECT count(*) FROM idempotency_keys`).Scan(&rows); err != nil {
			t.Fatal(err)
		}
		if n, err := s.Count(t.Context()); err != nil || n != rows || n != 42 {
			t.Errorf("the count is %d, %v, want %d = 42", n, err, rows)
		}
	})
}

// Close waits for running calls, and no call begins afterwards.
func TestClose(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		s := d.store(t, sqlstore.Config{})
		var wg sync.WaitGroup
		var mu sync.Mutex
		var granted []idempotency.Key
		for w := range 16 {
			wg.Go(func() {
				for i := 0; ; i++ {
					out, err := s.Claim(context.Background(), claimOf(fmt.Sprint(w, i)))
					if errors.Is(err, idempotency.ErrClosed) {
						return
					} else if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					granted = append(granted, out.Record.Key)
					mu.Unlock()
				}
			})
		}
		time.Sleep(50 * time.Millisecond)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		wg.Wait()
		again := d.store(t, sqlstore.Config{})
		records, err := again.Lookup(t.Context(), granted...)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			if r.Status != idempotency.StatusRunning {
				t.Errorf("a claim that was granted before Close is %v", r.Status)
			}
		}
		if _, err := s.Lookup(t.Context(), claimOf("a").Key); !errors.Is(err, idempotency.ErrClosed) {
			t.Errorf("lookup: got %v, want ErrClosed", err)
		}
	})
}
