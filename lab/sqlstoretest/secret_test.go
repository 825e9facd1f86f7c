package sqlstoretest

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/ledger"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/sqlstore"
)

// With a secret, the ledger shows no scope and no key value in clear text. Verify accepts
// the ledger, and an operator with the secret finds a key's entries. Entries under two
// secrets have nothing in common.
func TestLedgerSecret(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		scopes := map[string]string{}
		for _, secret := range []string{"the first secret of all", "the second secret of all"} {
			d := d
			if d.dialect == sqlstore.PostgreSQL {
				d = newPostgreSQL(t)
			} else {
				d = newSQLite(t)
			}
			advance, clock := advancing(t, migrated(t, d))
			db := d.open(t)
			given := []byte(secret)
			s := d.store(t, sqlstore.Config{DB: db, Ledger: true, LedgerSecret: given, Clock: clock})
			if len(scopes) == 0 {
				clear(given) // the store has a copy
			}
			ctx := t.Context()
			do := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			of := func(value string) idempotency.Claim { return claimIn("tenant-7", "order-"+value) }
			finish := func(value string, e idempotency.Ending) {
				t.Helper()
				do(s.Finish(ctx, claim(t, s, of(value), idempotency.DecisionNew).Ref(), e))
			}
			finish("a", idempotency.Completed(idempotency.Result{MessageID: "m"}))
			finish("b", idempotency.FailedWith(idempotency.Failure{Proof: idempotency.ProofForAll, Reason: "no"}))
			finish("c", idempotency.FailedWith(idempotency.Failure{Reason: "time-out"}))
			finish("d", idempotency.Released())
			do(s.Ledger().Append(ctx, ledger.Annotation{Event: ledger.EventMasked, Key: of("a").Key}))
			tx, err := db.BeginTx(ctx, nil)
			do(err)
			out, err := s.ClaimTx(ctx, tx, of("e"))
			do(err)
			do(s.CompleteTx(ctx, tx, out.Ref(), idempotency.Result{}))
			do(tx.Commit())
			claim(t, s, of("f"), idempotency.DecisionNew)
			advance(48 * time.Hour)
			n, err := s.Purge(ctx)
			if do(err); n != 4 {
				t.Errorf("purged %d, want 4", n)
			}
			advance(-time.Hour)
			// The clock was set back, so the store cannot know how long ago the operations
			// in progress, order-c and order-f, began. The next claim detects the change
			// and makes them unresolved.
			claim(t, s, of("g"), idempotency.DecisionNew)

			head := seal(t, sealer(t, s.Ledger()))
			report := verify(t, s.Ledger(), head)
			var file bytes.Buffer
			_, err = s.Ledger().Export(ctx, &file, ledger.Head{})
			do(err)
			if _, err := ledger.Verify(ledger.Read(bytes.NewReader(file.Bytes())), head); err != nil {
				t.Error(err)
			}
			found := map[ledger.Event]int{}
			want := ledger.Hide([]byte(secret), of("a").Key)
			for line, err := range ledger.Read(bytes.NewReader(file.Bytes())) {
				do(err)
				if e := line.Entry; e != nil {
					if e.Key.Scope != ledger.HideScope([]byte(secret), "tenant-7") {
						t.Errorf("%s has the scope %q", e.Event, e.Key.Scope)
					}
					scopes[e.Key.Scope] = secret
					if e.Key == want {
						found[e.Event]++
					}
				}
			}
			if got := fmt.Sprint(found); got != "map[claimed:1 completed:1 masked:1 purged:1]" || report.Entries != 19 {
				t.Errorf("found %s of %d entries", got, report.Entries)
			}
			do(s.Close()) // end the store's goroutines before formatting reads its fields
			shown := file.String() + fmt.Sprintf("%v %+v %#v %+v %#v", s, s, s, *s.Ledger(), *s.Ledger())
			for _, text := range []string{"tenant-7", "order-", secret, fmt.Sprint([]byte(secret)), fmt.Sprintf("%#v", []byte(secret))} {
				if strings.Contains(shown, text) {
					t.Errorf("%q is shown", text)
				}
			}
			var clearRows int
			do(db.QueryRow(`SELECT count(*) FROM idempotency_ledger WHERE scope = ` + map[sqlstore.Dialect]string{sqlstore.SQLite: `CAST('tenant-7' AS BLOB)`, sqlstore.PostgreSQL: `'tenant-7'::bytea`}[d.dialect]).Scan(&clearRows))
			if clearRows > 0 {
				t.Errorf("%d rows in clear", clearRows)
			}
		}
		if len(scopes) != 2 {
			t.Errorf("the scope has %d hidden forms under two secrets, want 2", len(scopes))
		}
	})
}

// Once a store with a secret has been opened, a store or a ledger without a secret cannot
// add entries in clear text. Earlier entries stay, and the whole ledger verifies.
func TestLedgerSecretIsKept(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		db, secret := d.open(t), []byte("sixteen letters!")
		before := d.store(t, sqlstore.Config{DB: db, Ledger: true})
		claim(t, before, claimOf("in clear"), idempotency.DecisionNew)
		s := d.store(t, sqlstore.Config{DB: db, Ledger: true, LedgerSecret: secret})
		claim(t, s, claimOf("hidden"), idempotency.DecisionNew)

		_, err := sqlstore.Open(t.Context(), sqlstore.Config{DB: db, Dialect: d.dialect, Ledger: true})
		wantField(t, "a store without a secret", err, "Config.LedgerSecret")
		_, err = sqlstore.Open(t.Context(), sqlstore.Config{DB: db, Dialect: d.dialect, Ledger: true, LedgerSecret: []byte("another secret of all")})
		wantField(t, "a store with another secret", err, "Config.LedgerSecret")
		annotation := ledger.Annotation{Event: ledger.EventMasked, Key: claimOf("annotation").Key}
		wantField(t, "an annotation by an earlier store", before.Ledger().Append(t.Context(), annotation), "Config.LedgerSecret")
		l, err := sqlstore.OpenLedger(t.Context(), db, d.dialect)
		if err != nil {
			t.Fatal(err)
		}
		wantField(t, "an annotation without a store", l.Append(t.Context(), annotation), "Config.LedgerSecret")
		if err := s.Ledger().Append(t.Context(), annotation); err != nil {
			t.Error(err)
		}
		if report := verify(t, l, seal(t, sealer(t, l))); report.Entries != 3 {
			t.Errorf("%d entries, want 3", report.Entries)
		}
		for name, c := range map[string]sqlstore.Config{
			"short":          {Ledger: true, LedgerSecret: []byte("fifteen letters")},
			"empty":          {Ledger: true, LedgerSecret: []byte{}},
			"without ledger": {LedgerSecret: secret},
		} {
			c.DB, c.Dialect = db, d.dialect
			_, err := sqlstore.Open(t.Context(), c)
			wantField(t, name, err, "Config.LedgerSecret")
			if err != nil && strings.Contains(err.Error(), "letters") {
				t.Errorf("%s: the error shows the secret: %v", name, err)
			}
		}
	})
}

func wantField(t *testing.T, doing string, err error, field string) {
	t.Helper()
	if invalid := (*idempotency.InvalidError)(nil); !errors.As(err, &invalid) || invalid.Field != field {
		t.Errorf("%s: got %v, want an InvalidError of %s", doing, err, field)
	}
}
