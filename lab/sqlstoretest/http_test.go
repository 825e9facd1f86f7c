package sqlstoretest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/httpidem"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/sqlstore"
)

// Whatever the handler does, a payment, its key and its answer are committed together or
// not at all. A repeated request gets the stored answer or runs the handler again.
func TestHTTPInTransactions(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		db := d.open(t)
		s := d.store(t, sqlstore.Config{DB: db, Ledger: true})
		if _, err := db.Exec(`CREATE TABLE payments (key_text text)`); err != nil {
			t.Fatal(err)
		}
		var observed atomic.Pointer[httpidem.Observation]
		m, err := httpidem.New(httpidem.Config{
			Begin:     httpidem.InSQL(db, s, nil),
			Scope:     func(*http.Request) string { return "tenant" },
			Authorize: func(*http.Request, idempotency.Record) error { return nil },
			Observe:   func(_ *http.Request, o httpidem.Observation) { observed.Store(&o) },
		})
		if err != nil {
			t.Fatal(err)
		}
		insert := `INSERT INTO payments VALUES ($1)`
		fate := ""
		h := m.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			tx := httpidem.SQLTx(r.Context())
			if _, err := tx.ExecContext(r.Context(), insert, r.Header.Get("Idempotency-Key")); err != nil {
				t.Error(err)
			}
			switch fate {
			case "error":
				http.Error(w, "down", http.StatusBadGateway)
			case "panic":
				panic(http.ErrAbortHandler)
			case "rolled-back":
				_ = tx.Rollback() // a wrong handler; the client must not read that it has paid
				fallthrough
			default:
				w.WriteHeader(http.StatusCreated)
				fmt.Fprintf(w, "paid %s", r.Header.Get("Idempotency-Key"))
			}
		}))
		pay := func(key string) (got *httptest.ResponseRecorder) {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/payments", strings.NewReader(`{"amount":10}`))
			r.Header.Set("Idempotency-Key", key)
			got = httptest.NewRecorder()
			defer func() { _ = recover() }()
			h.ServeHTTP(got, r)
			return got
		}
		payments := func(key string) (n int) {
			if err := db.QueryRow(`SELECT count(*) FROM payments WHERE key_text = $1`, key).Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		status := func(key string) idempotency.Status {
			r, err := s.Lookup(t.Context(), idempotency.Key{Scope: "tenant", Operation: httpidem.DefaultOperation, Value: key})
			if err != nil {
				t.Fatal(err)
			}
			return r[0].Status
		}
		for _, first := range []string{"error", "panic", "rolled-back", ""} {
			key := "after-" + first
			fate = first
			got := pay(key)
			if first == "" {
				if got.Code != http.StatusCreated || payments(key) != 1 {
					t.Errorf("%d and %d payments, want 201 and 1", got.Code, payments(key))
				}
			} else if got.Code < 500 && first != "panic" || payments(key) != 0 || status(key) != idempotency.StatusAbsent {
				t.Errorf("%s: %d, %d payments, the key is %v; want a server error, and nothing in the database", first, got.Code, payments(key), status(key))
			}
			if err := observed.Load().Err; first == "rolled-back" && !errors.Is(err, sql.ErrTxDone) {
				t.Errorf("%s: observed %v", first, err)
			}
			fate = ""
			for range 2 {
				got = pay(key)
				if got.Code != http.StatusCreated || got.Body.String() != "paid "+key || payments(key) != 1 || status(key) != idempotency.StatusSucceeded {
					t.Errorf("%s, then repeated: %d %q, %d payments, the key is %v", first, got.Code, got.Body, payments(key), status(key))
				}
			}
			if got.Header().Get("Idempotency-Replayed") != "true" {
				t.Errorf("%s, repeated twice: not replayed", first)
			}
		}
		// Eight clients send the same payment concurrently. It is made once.
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
					if got := pay("raced"); got.Code == http.StatusCreated {
						return
					} else if got.Code != http.StatusConflict || time.Now().After(deadline) {
						t.Errorf("a racing client got %d %s", got.Code, got.Body)
						return
					}
				}
			})
		}
		wg.Wait()
		if n := payments("raced"); n != 1 {
			t.Errorf("%d payments of racing clients, want 1", n)
		}
		seal(t, sealer(t, s.Ledger()))
		if report := verify(t, s.Ledger()); report.Entries != 10 {
			t.Errorf("%d entries, want a claim and a completion of each of 5 payments", report.Entries)
		}
		if tx := httpidem.SQLTx(context.Background()); tx != nil {
			t.Error("a transaction outside of a run")
		}
	})
}
