package sqlstoretest

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/sqlstore"
)

func claimIn(scope, value string) idempotency.Claim {
	c := claimOf(value)
	c.Key.Scope = scope
	return c
}

// One tenant's unresolved operations fill only the tenant's share of a store. The other
// tenants continue, and this tenant continues after an operator resolves an operation.
func TestQuota(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		db := d.open(t)
		var out lines
		s := d.store(t, sqlstore.Config{DB: db, Capacity: 600, Quota: 100, Logger: slog.New(slog.NewTextHandler(&out, nil))})
		refused := 0
		for i := range 150 {
			c := claimIn("failing", fmt.Sprint(i))
			c.Terms.Lease = time.Millisecond
			switch out, err := s.Claim(t.Context(), c); {
			case err != nil:
				t.Fatal(err)
			case out.Decision == idempotency.DecisionOverQuota:
				refused++
				var quota *idempotency.QuotaError
				if err := out.Err(c.Key); !errors.As(err, &quota) || quota.Quota != 100 {
					t.Fatalf("got %v, want a QuotaError of 100", err)
				}
			}
		}
		if refused != 50 {
			t.Errorf("%d claims were refused, want 50", refused)
		}
		if n := out.count("scope=failing quota=100"); n != 1 {
			t.Errorf("%d warnings of the quota, want 1:\n%s", n, out.text())
		}
		for i := range 100 {
			o := claim(t, s, claimIn("working", fmt.Sprint(i)), idempotency.DecisionNew)
			if err := s.Finish(t.Context(), o.Ref(), idempotency.Completed(idempotency.Result{})); err != nil {
				t.Fatal(err)
			}
		}
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		o, err := s.ClaimTx(t.Context(), tx, claimIn("failing", "in a transaction"))
		if err != nil || o.Decision != idempotency.DecisionOverQuota || o.Quota != 100 {
			t.Errorf("ClaimTx: got %v, %v, want over quota", o.Decision, err)
		}
		tx.Rollback()
		found, err := s.Lookup(t.Context(), claimIn("failing", "7").Key)
		if err != nil {
			t.Fatal(err)
		}
		if err := idempotency.Resolve(t.Context(), s, found[0], idempotency.Completed(idempotency.Result{})); err != nil {
			t.Fatal(err)
		}
		claim(t, s, claimIn("failing", "one more"), idempotency.DecisionNew)
		claim(t, s, claimIn("failing", "two more"), idempotency.DecisionOverQuota)
	})
}

// On PostgreSQL, the count of unfinished operations omits uncommitted transactions.
// Concurrent writers can therefore exceed the quota, here by at most one operation for each
// writer. On SQLite they never exceed the quota.
func TestQuotaOfConcurrentWriters(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		const quota, stores, writers = 40, 3, 4
		var wg sync.WaitGroup
		for i := range stores {
			s := d.store(t, sqlstore.Config{Quota: quota})
			for w := range writers {
				wg.Go(func() {
					for n := range 20 {
						if _, err := s.Claim(t.Context(), claimIn("a", fmt.Sprint(i, w, n))); err != nil {
							t.Error(err)
						}
					}
				})
			}
		}
		wg.Wait()
		var n int
		if err := d.open(t).QueryRow(`SELECT count(*) FROM idempotency_keys`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		most := quota
		if d.dialect == sqlstore.PostgreSQL {
			most += stores * writers
		}
		if n < quota || n > most {
			t.Errorf("%d operations, want %d to %d", n, quota, most)
		}
	})
}

// A store with quota 1 finds no record of a key. Another store then claims the key, which
// uses up the quota. The first store's claim of the same key is DecisionInProgress, not
// DecisionOverQuota. Its claim of a new key is DecisionOverQuota.
func TestQuotaAfterLookup(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		s, other := d.store(t, sqlstore.Config{Quota: 1}), d.store(t, sqlstore.Config{})
		if _, err := s.Lookup(t.Context(), claimOf("last").Key); err != nil {
			t.Fatal(err)
		}
		claim(t, other, claimOf("last"), idempotency.DecisionNew)
		claim(t, s, claimOf("last"), idempotency.DecisionInProgress)
		claim(t, s, claimOf("next"), idempotency.DecisionOverQuota)
	})
}

// The store logs one warning when 18 of its 20 possible records exist.
func TestCapacityWarning(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		var out lines
		s := d.store(t, sqlstore.Config{Capacity: 20, Quota: 20, Logger: slog.New(slog.NewTextHandler(&out, nil))})
		for i := range 17 {
			claim(t, s, claimOf(fmt.Sprint(i)), idempotency.DecisionNew)
		}
		if n := out.count("nearly full"); n != 0 {
			t.Errorf("%d warnings with 17 of 20 records", n)
		}
		for i := range 3 {
			claim(t, s, claimOf(fmt.Sprint("last", i)), idempotency.DecisionNew)
		}
		claim(t, s, claimOf("refused"), idempotency.DecisionFull)
		if n := out.count("nearly full"); n != 1 || out.count("records=18 capacity=20") != 1 {
			t.Errorf("%d warnings, want 1 with 18 of 20 records:\n%s", n, out.text())
		}
	})
}

// Migrate adds the index of unfinished operations to a database with schema version 2.
// Programs for version 2 keep working, and the quota counts their operations.
func TestQuotaAfterUpgrade(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		db := d.open(t)
		old := d.store(t, sqlstore.Config{DB: db})
		statements := []string{`DROP INDEX idempotency_keys_unfinished`, `UPDATE idempotency_meta SET value = 2 WHERE name IN ('schema', 'oldest')`}
		if d.dialect == sqlstore.PostgreSQL {
			statements = append(statements, `DROP FUNCTION idempotency_unfinished`)
		}
		for _, statement := range statements {
			if _, err := db.Exec(statement); err != nil {
				t.Fatal(err)
			}
		}
		claim(t, old, claimOf("before the upgrade"), idempotency.DecisionNew)
		_, err := sqlstore.Open(t.Context(), sqlstore.Config{DB: db, Dialect: d.dialect})
		wantField(t, "a database of version 2", err, "schema")
		s := d.store(t, sqlstore.Config{DB: db, Quota: 2})
		claim(t, old, claimOf("after the upgrade"), idempotency.DecisionNew)
		claim(t, s, claimOf("one more"), idempotency.DecisionOverQuota)
		var version, oldest int64
		if err := db.QueryRow(`SELECT max(CASE WHEN name = 'schema' THEN value END), max(CASE WHEN name = 'oldest' THEN value END) FROM idempotency_meta`).Scan(&version, &oldest); err != nil || version != 3 || oldest != 2 {
			t.Errorf("the database has version %d, for programs from %d, %v, want 3 and 2", version, oldest, err)
		}
	})
}

// Open refuses a negative quota.
func TestQuotaRefused(t *testing.T) {
	var invalid *idempotency.InvalidError
	if _, err := sqlstore.Open(t.Context(), sqlstore.Config{Quota: -1}); !errors.As(err, &invalid) || !strings.Contains(invalid.Found, "Quota -1") {
		t.Errorf("got %v, want an InvalidError", err)
	}
}

// The query that counts a scope's unfinished operations reads only the index of unfinished
// operations: the database's plan has neither a scan of the table nor a bitmap scan.
func TestQuotaPlan(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		db := d.open(t)
		s := d.store(t, sqlstore.Config{DB: db})
		for range 20 {
			var batch []idempotency.Claim
			for range idempotency.MaxBatch {
				batch = append(batch, claimOf(idempotency.NewToken().String()))
			}
			if _, err := s.ClaimBatch(context.Background(), batch); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := db.Exec(`ANALYZE idempotency_keys`); err != nil {
			t.Fatal(err)
		}
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		query := `QUERY PLAN SELECT count(*) FROM (SELECT 1 FROM idempotency_keys WHERE scope = ? AND status = 'in_progress' LIMIT ?)`
		args := []any{[]byte("test"), 1000000}
		if d.dialect == sqlstore.PostgreSQL {
			query = functionQuery(t, tx, "idempotency_unfinished", "scopes", "$1::text::bytea[]", "most", "$2::bigint")
			args[0] = `{"\\x74657374"}`
		}
		rows, err := tx.Query("EXPLAIN "+query, args...)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		var plan strings.Builder
		columns, err := rows.Columns()
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			values := make([]any, len(columns))
			for i := range values {
				values[i] = new(any)
			}
			if err := rows.Scan(values...); err != nil {
				t.Fatal(err)
			}
			fmt.Fprintln(&plan, *values[len(values)-1].(*any))
		}
		if !strings.Contains(plan.String(), "idempotency_keys_unfinished") || strings.Contains(plan.String(), "Seq Scan") || strings.Contains(plan.String(), "Bitmap") {
			t.Errorf("the plan is\n%s", plan.String())
		}
	})
}

// functionQuery returns the query in the body of a PostgreSQL function. The replacements
// are pairs: a function parameter and its replacement. functionQuery applies the function's
// settings to tx.
func functionQuery(t *testing.T, tx *sql.Tx, function string, replacements ...string) string {
	t.Helper()
	var body, settings string
	if err := tx.QueryRow(`SELECT prosrc, array_to_string(proconfig, ';') FROM pg_proc WHERE oid = $1::text::regproc`, function).Scan(&body, &settings); err != nil {
		t.Fatal(err)
	}
	for setting := range strings.SplitSeq(settings, ";") {
		name, value, _ := strings.Cut(setting, "=")
		if name == "search_path" {
			continue
		}
		if _, err := tx.Exec(`SELECT set_config($1, $2, true)`, name, value); err != nil {
			t.Fatal(err)
		}
	}
	_, query, _ := strings.Cut(body, "RETURN QUERY ")
	query, _, _ = strings.Cut(query, ";")
	return strings.NewReplacer(replacements...).Replace(query)
}

// With a large quota, not every transaction counts the unfinished operations. A single
// store still permits exactly as many operations as the quota. Completed operations make
// room immediately.
func TestLargeQuota(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		const quota, rest = 700, 25
		s := d.store(t, sqlstore.Config{Quota: quota})
		var last []idempotency.Outcome
		for n := 0; n < quota-rest; {
			var batch []idempotency.Claim
			for range min(45, quota-rest-n) {
				batch = append(batch, claimOf(fmt.Sprint(n)))
				n++
			}
			var err error
			if last, err = s.ClaimBatch(t.Context(), batch); err != nil {
				t.Fatal(err)
			}
		}
		for i := range rest + 10 {
			want := idempotency.DecisionNew
			if i >= rest {
				want = idempotency.DecisionOverQuota
			}
			claim(t, s, claimOf(fmt.Sprint("rest", i)), want)
		}
		for i := range 5 {
			if err := s.Finish(t.Context(), last[i].Ref(), idempotency.Completed(idempotency.Result{})); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 8 {
			want := idempotency.DecisionNew
			if i >= 5 {
				want = idempotency.DecisionOverQuota
			}
			claim(t, s, claimOf(fmt.Sprint("again", i)), want)
		}
	})
}

// After a store has counted the unfinished operations, it may begin some operations without
// another count. It counts again after a claim in a caller's transaction and after a failed
// transaction, and then sees the operations of other stores.
func TestLargeQuotaCountsAgain(t *testing.T) {
	for name, event := range map[string]func(*testing.T, *hooks, *sql.DB, *sqlstore.Store){
		"ClaimTx": func(t *testing.T, _ *hooks, db *sql.DB, s *sqlstore.Store) {
			tx, err := db.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer tx.Rollback()
			if out, err := s.ClaimTx(t.Context(), tx, claimOf("in a transaction")); err != nil || out.Decision != idempotency.DecisionNew {
				t.Fatalf("got %v, %v", out.Decision, err)
			}
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
		},
		"failed transaction": func(t *testing.T, h *hooks, _ *sql.DB, s *sqlstore.Store) {
			commit := func(func() error) error { return io.ErrUnexpectedEOF }
			h.commit.Store(&commit)
			if _, err := s.Claim(t.Context(), claimOf("failed")); !errors.Is(err, idempotency.ErrAmbiguous) {
				t.Fatalf("got %v, want ErrAmbiguous", err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, d database) {
				const quota, rest = 600, 8
				h := new(hooks)
				db := h.open(t, d)
				s, other := d.store(t, sqlstore.Config{DB: db, Quota: quota}), d.store(t, sqlstore.Config{})
				var batches [][]idempotency.Claim
				for n := range quota - rest {
					if n%idempotency.MaxBatch == 0 {
						batches = append(batches, nil)
					}
					last := &batches[len(batches)-1]
					*last = append(*last, claimOf(fmt.Sprint(n)))
				}
				claim(t, s, batches[0][0], idempotency.DecisionNew)
				for _, batch := range batches {
					if _, err := other.ClaimBatch(t.Context(), batch); err != nil {
						t.Fatal(err)
					}
				}
				event(t, h, db, s)
				for i := range 2 * rest {
					if _, err := s.Claim(t.Context(), claimOf(fmt.Sprint("rest", i))); err != nil {
						t.Fatal(err)
					}
				}
				var n int
				if err := db.QueryRow(`SELECT count(*) FROM idempotency_keys`).Scan(&n); err != nil || n != quota {
					t.Errorf("%d operations, %v, want %d", n, err, quota)
				}
			})
		})
	}
}

// lines collects log records.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func (l *lines) count(s string) int { return strings.Count(l.text(), s) }
