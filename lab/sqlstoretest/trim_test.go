package sqlstoretest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/url"
	"testing"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/ledger"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/sqlstore"
)

// annotation appends n annotations to the ledger l as entries, seals them with the sealer k, and
// returns the ledger's head.
func annotation(t *testing.T, l *sqlstore.Ledger, k *sqlstore.Sealer, n int) ledger.Head {
	t.Helper()
	for n > 0 {
		batch := make([]ledger.Annotation, min(n, ledger.MaxSealed))
		for i := range batch {
			batch[i] = ledger.Annotation{Event: ledger.EventMasked, Key: claimOf(fmt.Sprint(n - i)).Key, Note: "rule 7"}
		}
		if err := l.Append(t.Context(), batch...); err != nil {
			t.Fatal(err)
		}
		n -= len(batch)
	}
	return seal(t, k)
}

// After an export, Trim deletes the entries up to the last seal, and Verify reads only
// later entries. A later export continues the first one: Verify accepts the two files
// together.
func TestTrim(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		entries := 20_000
		if !testing.Short() && d.dialect == sqlstore.SQLite {
			entries = 1_000_000
		}
		db := d.open(t)
		l := d.store(t, sqlstore.Config{DB: db, Ledger: true}).Ledger()
		k := sealer(t, l)
		early := annotation(t, l, k, 1000)
		last := annotation(t, l, k, entries-1000)
		var first, second bytes.Buffer
		exported, err := l.Export(t.Context(), &first, ledger.Head{})
		if err != nil || exported != last {
			t.Fatalf("exported to %v, %v, want %v", exported, err, last)
		}
		begin := time.Now()
		verify(t, l, early, last)
		before := time.Since(begin)

		for table, allowed := range map[string]string{"idempotency_ledger": "seq = 1", "idempotency_seals": "n = 1"} {
			if _, err := db.Exec("DELETE FROM " + table + " WHERE " + allowed); err == nil {
				t.Errorf("a row of %s could be deleted before Trim", table)
			}
		}
		begin = time.Now()
		n, err := l.Trim(t.Context(), exported)
		trim := time.Since(begin)
		if err != nil || n != int64(entries) {
			t.Fatalf("trimmed %d entries, %v, want %d", n, err, entries)
		}
		if n, err := l.Trim(t.Context(), exported); err != nil || n != 0 {
			t.Errorf("a second time: trimmed %d entries, %v", n, err)
		}
		if _, err := db.Exec(fmt.Sprintf("DELETE FROM idempotency_seals WHERE n = %d", exported.N)); err == nil {
			t.Error("the seal to which the ledger was trimmed could be deleted")
		}
		rest := entries / 100
		end := annotation(t, l, k, rest)
		begin = time.Now()
		report := verify(t, l, last, end)
		after := time.Since(begin)
		if report.Entries != int64(rest) || report.Trimmed != last.N || report.Confirmed != end.N {
			t.Errorf("got %+v, want %d entries after seal %d", report, rest, last.N)
		}
		t.Logf("%d entries: verified in %v, trimmed to the last seal in %v; %d more: verified in %v", entries, before, trim, rest, after)

		var invalid *idempotency.InvalidError
		for _, head := range []ledger.Head{{}, early} {
			if _, err := l.Export(t.Context(), io.Discard, head); !errors.As(err, &invalid) {
				t.Errorf("export of trimmed entries: got %v, want an InvalidError", err)
			}
		}
		if _, err := l.Export(t.Context(), &second, exported); err != nil {
			t.Fatal(err)
		}
		whole, err := ledger.Verify(ledger.Read(io.MultiReader(&first, &second)), early, last, end)
		if err != nil || whole.Entries != int64(entries+rest) {
			t.Errorf("the exports together: got %+v, %v", whole, err)
		}

		// The head of a seal before the trim is not compared, and Verify says so.
		var uncompared *ledger.TamperError
		if report, err := l.Verify(t.Context(), early, last, end); !errors.As(err, &uncompared) || uncompared.Kind != ledger.FaultUncompared || uncompared.Seal != early.N || len(report.Faults) != 1 {
			t.Errorf("a head before the trim: got %v", err)
		}

		// A forged ledger may look like a trimmed ledger. A head that was stored elsewhere
		// reveals the forgery.
		other := last
		other.Hash[0]++
		if _, err := l.Verify(t.Context(), other); err == nil {
			t.Error("another head at the trimmed seal was accepted")
		}
		if rest > 1 {
			if d.dialect == sqlstore.SQLite {
				_, err = db.Exec(`DROP TRIGGER idempotency_ledger_delete`)
			} else {
				_, err = db.Exec(`DROP TRIGGER idempotency_ledger_delete ON idempotency_ledger`)
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := db.Exec(`DELETE FROM idempotency_ledger WHERE seq = (SELECT min(seq) FROM idempotency_ledger)`); err != nil {
				t.Fatal(err)
			}
			var tampered *ledger.TamperError
			if report, err := l.Verify(t.Context()); !errors.As(err, &tampered) || tampered.Kind != ledger.FaultDropped || len(report.Faults) != 1 {
				t.Errorf("an entry after the trimmed seal is missing: got %v", err)
			}
		}
	})
}

// Somebody edits an entry and marks the ledger as trimmed after it. Verify finds an entry
// that is left before the trim. If these entries were deleted, Verify names the kept heads
// that it cannot compare.
func TestMarkedAsTrimmed(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		db := d.open(t)
		l := d.store(t, sqlstore.Config{DB: db, Ledger: true}).Ledger()
		k := sealer(t, l)
		heads := []ledger.Head{annotation(t, l, k, 3), annotation(t, l, k, 3), annotation(t, l, k, 3)}
		verify(t, l, heads...)
		triggers := []string{`DROP TRIGGER idempotency_ledger_update`, `DROP TRIGGER idempotency_ledger_delete`}
		if d.dialect == sqlstore.PostgreSQL {
			triggers = []string{`DROP TRIGGER idempotency_ledger_append_only ON idempotency_ledger`, `DROP TRIGGER idempotency_ledger_delete ON idempotency_ledger`}
		}
		exec := func(statements ...string) {
			for _, statement := range statements {
				if _, err := db.Exec(statement); err != nil {
					t.Fatal(err)
				}
			}
		}
		exec(triggers...)
		exec(`UPDATE idempotency_ledger SET note = 'rule 8' WHERE seq = (SELECT min(seq) FROM idempotency_ledger)`,
			fmt.Sprintf(`UPDATE idempotency_meta SET value = %d WHERE name = 'trimmed'`, heads[2].N))
		for _, kept := range [][]ledger.Head{nil, heads[2:]} {
			var left *ledger.TamperError
			if report, err := l.Verify(t.Context(), kept...); !errors.As(err, &left) || left.Kind != ledger.FaultInserted || len(report.Faults) != 1 {
				t.Errorf("with entries before the trim: got %v", err)
			}
		}
		exec(`DELETE FROM idempotency_ledger`)
		report, err := l.Verify(t.Context(), heads...)
		if err == nil || len(report.Faults) != 2 {
			t.Fatalf("got %v and %d faults, want one for each head before the trim", err, len(report.Faults))
		}
		for i, fault := range report.Faults {
			if fault.Kind != ledger.FaultUncompared || fault.Seal != heads[i].N {
				t.Errorf("got %v, want the head of seal %d", fault, heads[i].N)
			}
		}
	})
}

// A role with the right to insert can write a row that is not a valid entry. The row is not
// sealed. Verify reports the row, and Export omits it; both process all other entries.
func TestRowThatIsNotAnEntry(t *testing.T) {
	d := newPostgreSQL(t)
	db := d.open(t)
	l := d.store(t, sqlstore.Config{DB: db, Ledger: true}).Ledger()
	k := sealer(t, l)
	annotation(t, l, k, 3)
	const insert = `INSERT INTO idempotency_ledger (epoch, recorded_at, event, scope, operation_type, key, generation, fence, attempts, status, fingerprint_spec,
		dataset_id, version, source_uri, artifact_checksum, care_label, replay_safe, resend, note, hash)
		SELECT epoch, recorded_at, event, scope, operation_type, key, generation, fence, attempts, status, fingerprint_spec,
		dataset_id, version, source_uri, artifact_checksum, care_label, %d, resend, 'forged', %s FROM idempotency_ledger LIMIT 1`
	for _, values := range []struct {
		safe int
		hash string
	}{{0, `hash || '\x00'::bytea`}, {7, "hash"}} {
		if _, err := db.Exec(fmt.Sprintf(insert, values.safe, values.hash)); err == nil {
			t.Errorf("the schema accepts replay_safe %d and hash %s", values.safe, values.hash)
		}
	}
	// Insert a copy of an entry with another note, but with the same hash. The hash is now
	// wrong, but the schema cannot check this.
	if _, err := db.Exec(fmt.Sprintf(insert, 0, "hash")); err != nil {
		t.Fatal(err)
	}
	end := annotation(t, l, k, 2)
	report, err := l.Verify(t.Context(), end)
	var tampered *ledger.TamperError
	if !errors.As(err, &tampered) || tampered.Kind != ledger.FaultInserted || tampered.Seq == 0 {
		t.Errorf("got %v, want the forged row", err)
	}
	if len(report.Faults) != 1 || report.Entries != 5 || report.Head != end {
		t.Errorf("got %+v, want one fault and all five entries", report)
	}
}

// The documented database rights suffice for a store with a ledger, even for the first store
// opened after a restore of the database into another server. This store begins a new epoch
// of the ledger.
func TestLeastPrivilege(t *testing.T) {
	d := newPostgreSQL(t)
	admin := d.open(t)
	d.store(t, sqlstore.Config{DB: admin, Ledger: true})
	role := fmt.Sprintf("sqlstore_app_%d", time.Now().UnixNano())
	var schema string
	if err := admin.QueryRow("SELECT current_schema()").Scan(&schema); err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		"CREATE ROLE " + role + " LOGIN",
		"GRANT USAGE ON SCHEMA " + schema + " TO " + role,
		"GRANT SELECT, INSERT, UPDATE, DELETE ON idempotency_keys, idempotency_meta, idempotency_population TO " + role,
		"GRANT SELECT, INSERT ON idempotency_ledger, idempotency_seals TO " + role,
		"GRANT SELECT ON idempotency_sealer TO " + role,
		"GRANT USAGE ON SEQUENCE idempotency_draws TO " + role,
		"UPDATE idempotency_sealer SET server = server + 1", // as after a restore from another server
	} {
		if _, err := admin.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _, _ = admin.Exec("DROP OWNED BY " + role + "; DROP ROLE " + role) })
	app := d
	app.source = asRole(t, d.source, role)
	s, err := sqlstore.Open(t.Context(), sqlstore.Config{DB: app.open(t), Dialect: d.dialect, Ledger: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	out := claim(t, s, claimOf("a"), idempotency.DecisionNew)
	if err := s.Finish(t.Context(), out.Ref(), idempotency.Released()); err != nil {
		t.Fatal(err)
	}
	var epoch int64
	if err := admin.QueryRow("SELECT epoch FROM idempotency_sealer").Scan(&epoch); err != nil || epoch != 2 {
		t.Errorf("the epoch is %d, %v, want 2", epoch, err)
	}
}

func asRole(t *testing.T, source, role string) string {
	t.Helper()
	u, err := url.Parse(source)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User(role)
	return u.String()
}
