package sqlstoretest

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/ledger"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/sqlstore"
)

func sealer(t testing.TB, l *sqlstore.Ledger, change ...func(*sqlstore.SealerConfig)) *sqlstore.Sealer {
	t.Helper()
	config := sqlstore.SealerConfig{Ledger: l}
	for _, f := range change {
		f(&config)
	}
	k, err := sqlstore.NewSealer(config)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func seal(t testing.TB, k *sqlstore.Sealer) ledger.Head {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	h, err := k.Seal(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func verify(t testing.TB, l *sqlstore.Ledger, anchors ...ledger.Head) ledger.Report {
	t.Helper()
	report, err := l.Verify(context.Background(), anchors...)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// events returns the events of the sealed entries in a short form.
func events(t testing.TB, l *sqlstore.Ledger) (out []string) {
	t.Helper()
	for line, err := range l.Lines(context.Background(), ledger.Head{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e := line.Entry; e != nil {
			out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", e.Key.Value, e.Event, e.Status, e.Note)))
		}
	}
	return out
}

// Each change of a key is an entry, in the order of the changes; answers that change
// nothing are none.
func TestLedgerEvents(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		advance, clock := advancing(t, migrated(t, d))
		db := d.open(t)
		s := d.store(t, sqlstore.Config{DB: db, Ledger: true, Clock: clock})
		l := s.Ledger()
		ctx := t.Context()
		do := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		a := claimOf("a")
		a.Dataset = idempotency.Dataset{ID: "noaa", Version: "v1.0.0", SourceURI: "https://example.org", ArtifactChecksum: "sha256:00", CARELabel: "restricted", ReplaySafe: true}
		out := claim(t, s, a, idempotency.New)
		claim(t, s, a, idempotency.Renewed)
		claim(t, s, claimOf("a"), idempotency.InProgress)
		do(s.Fail(ctx, out.Ref(), idempotency.Failure{Reason: "timed out"}))
		claim(t, s, claimOf("a"), idempotency.Indeterminate)
		again := a
		again.Token, again.RunAgain = idempotency.NewToken(), true
		out = claim(t, s, again, idempotency.Reclaimed)
		do(l.Append(ctx,
			ledger.Remark{Event: ledger.Masked, Key: a.Key, Fence: out.Record.Fence, Dataset: a.Dataset, Note: "coordinates to 0.1 degrees"},
			ledger.Remark{Event: ledger.ReplayTriggered, Key: a.Key, Note: "run 7"}))
		do(s.Complete(ctx, out.Ref(), idempotency.Result{Response: []byte("r")}))
		do(s.Complete(ctx, out.Ref(), idempotency.Result{Response: []byte("r")})) // an answer was lost
		claim(t, s, claimOf("a"), idempotency.Duplicate)
		conflict := claimOf("a")
		conflict.Fingerprint.Sum[0]++
		claim(t, s, conflict, idempotency.Conflict)
		if err := s.Complete(ctx, idempotency.Ref{Key: a.Key, Fence: 1}, idempotency.Result{}); !errors.Is(err, idempotency.ErrStaleClaim) {
			t.Error(err)
		}
		out = claim(t, s, claimOf("b"), idempotency.New)
		do(s.Fail(ctx, out.Ref(), idempotency.Failure{Proof: idempotency.ProvenForClaim, Reason: "refused"}))
		out = claim(t, s, claimOf("b"), idempotency.New)
		do(s.Release(ctx, out.Ref()))
		out = claim(t, s, claimOf("c"), idempotency.New)
		do(s.Release(ctx, out.Ref()))

		// A transaction of the caller, which commits, and one that does not.
		for _, value := range []string{"rolled back", "in a transaction"} {
			tx, err := db.BeginTx(ctx, nil)
			do(err)
			c := claimOf(value)
			out, err := s.ClaimTx(ctx, tx, c)
			do(err)
			do(l.AppendTx(ctx, tx, ledger.Remark{Event: ledger.CAREEnforced, Key: c.Key, Fence: out.Record.Fence}))
			do(s.CompleteTx(ctx, tx, out.Ref(), idempotency.Result{}))
			if value == "rolled back" {
				do(tx.Rollback())
			} else {
				do(tx.Commit())
			}
		}
		advance(48 * time.Hour)
		if n, err := s.Purge(ctx); err != nil || n != 4 {
			t.Errorf("purged %d, %v, want 4", n, err)
		}
		head := seal(t, sealer(t, l))
		want := []string{
			"a claimed in_progress", "a renewed in_progress", "a in_doubt in_progress timed out", "a reclaimed in_progress",
			"a masked  coordinates to 0.1 degrees", "a replay_triggered  run 7", "a completed succeeded",
			"b claimed in_progress", "b failed failed refused", "b claimed in_progress", "b released failed",
			"c claimed in_progress", "c released released",
			"in a transaction claimed in_progress", "in a transaction care_enforced", "in a transaction completed succeeded",
			"a purged absent", "b purged absent", "c purged absent", "in a transaction purged absent",
		}
		got := events(t, l)
		slices.Sort(got[len(got)-4:])
		if !slices.Equal(got, want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if report := verify(t, l, head); report.Entries != int64(len(want)) || report.Anchored != head.N {
			t.Errorf("%+v", report)
		}
		for line := range l.Lines(ctx, ledger.Head{}) {
			e := line.Entry
			if e == nil || e.Event != ledger.Completed || e.Key.Value != "a" {
				continue
			}
			result := idempotency.Result{Response: []byte("r")}
			if e.Dataset != a.Dataset || e.Fingerprint != a.Fingerprint || e.Body != ledger.Hash(a.Seal) || e.Response != result.Hash() || e.Attempts != 3 || e.Generation != 1 || e.Fence == 0 || e.At.IsZero() {
				t.Errorf("the completion is %+v", e)
			}
		}
	})
}

func migrated(t testing.TB, d database) database {
	t.Helper()
	if err := sqlstore.Migrate(context.Background(), d.open(t), d.dialect); err != nil {
		t.Fatal(err)
	}
	return d
}

// A store that would not write the ledger is refused; an auditor needs no store.
func TestLedgerIsKept(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		s := d.store(t, sqlstore.Config{})
		if s.Ledger() != nil {
			t.Error("a store without a ledger has one")
		}
		claim(t, s, claimOf("before"), idempotency.New)
		s = d.store(t, sqlstore.Config{Ledger: true})
		claim(t, s, claimOf("after"), idempotency.New)
		var setting *sqlstore.SettingError
		if _, err := sqlstore.Open(t.Context(), sqlstore.Config{DB: d.open(t), Dialect: d.dialect}); !errors.As(err, &setting) || setting.Setting != "Config.Ledger" {
			t.Errorf("got %v, want a SettingError", err)
		}
		seal(t, sealer(t, s.Ledger()))
		l, err := sqlstore.OpenLedger(t.Context(), d.open(t), d.dialect)
		if err != nil {
			t.Fatal(err)
		}
		if got := events(t, l); !slices.Equal(got, []string{"after claimed in_progress"}) {
			t.Errorf("got %q", got)
		}
		if _, err := sqlstore.OpenLedger(t.Context(), d.open(t), 9); err == nil {
			t.Error("an unknown dialect was accepted")
		}
		if err := s.Ledger().Append(t.Context(), ledger.Remark{Event: "forged"}); err == nil {
			t.Error("a remark with an unknown event was accepted")
		}
	})
}

// What 64 callers change in groups is in the ledger once, and what Export writes in parts
// verifies as one file.
func TestLedgerOfGroups(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		s := d.store(t, sqlstore.Config{Ledger: true})
		k := sealer(t, s.Ledger())
		var file bytes.Buffer
		var head ledger.Head
		const writers, each = 64, 10
		for range 3 {
			var wg sync.WaitGroup
			for w := range writers {
				wg.Go(func() {
					for i := range each {
						out, err := s.Claim(t.Context(), claimOf(fmt.Sprint(head.N, w, i)))
						if err == nil {
							err = s.Complete(t.Context(), out.Ref(), idempotency.Result{})
						}
						if err != nil {
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
			seal(t, k)
			var err error
			if head, err = s.Ledger().Export(t.Context(), &file, head); err != nil {
				t.Fatal(err)
			}
		}
		want := int64(3 * writers * each * 2)
		if report := verify(t, s.Ledger(), head); report.Entries != want || report.Head != head {
			t.Errorf("%+v, want %d entries", report, want)
		}
		report, err := ledger.Verify(ledger.Read(&file), head)
		if err != nil || report.Entries != want || report.Anchored != head.N {
			t.Errorf("the file: %+v, %v", report, err)
		}
		once := map[string]int{}
		for _, e := range events(t, s.Ledger()) {
			once[e]++
		}
		if int64(len(once)) != want {
			t.Errorf("%d different entries, want %d", len(once), want)
		}
	})
}

// Of an export that is interrupted, the head says how far it came.
func TestInterruptedExport(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		s := d.store(t, sqlstore.Config{Ledger: true})
		k := sealer(t, s.Ledger())
		var heads []ledger.Head
		for i := range 3 {
			for j := range 3 {
				claim(t, s, claimOf(fmt.Sprint(i, j)), idempotency.New)
			}
			heads = append(heads, seal(t, k))
		}
		var whole bytes.Buffer
		last, err := s.Ledger().Export(t.Context(), &whole, ledger.Head{})
		if err != nil || last != heads[2] {
			t.Fatalf("got %v, %v", last, err)
		}
		for limit := range whole.Len() {
			if limit%97 != 0 {
				continue
			}
			w := &limited{left: limit}
			head, err := s.Ledger().Export(t.Context(), w, ledger.Head{})
			if !errors.Is(err, errFull) {
				t.Fatalf("%d bytes: got %v", limit, err)
			}
			if head.N > 0 {
				_, err := ledger.Verify(ledger.Read(&w.Buffer), head)
				tampered := new(ledger.TamperError)
				if err != nil && (!errors.As(err, &tampered) || tampered.Kind == ledger.Truncated || tampered.Seal != 0 && tampered.Seal <= head.N) {
					t.Errorf("%d bytes, head %v: %v", limit, head, err)
				}
			}
		}
	})
}

var errFull = errors.New("the disk is full")

// limited takes so many bytes.
type limited struct {
	bytes.Buffer
	left int
}

func (w *limited) Write(b []byte) (int, error) {
	n := min(len(b), w.left)
	w.left -= n
	w.Buffer.Write(b[:n])
	if n < len(b) {
		return n, errFull
	}
	return n, nil
}

// Raw SQL can neither change nor delete an entry or a seal, as long as the triggers are
// there, not even in the guise of an INSERT.
func TestLedgerIsAppendOnly(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		s := d.store(t, sqlstore.Config{Ledger: true})
		claim(t, s, claimOf("a"), idempotency.New)
		seal(t, sealer(t, s.Ledger()))
		statements := []string{
			`UPDATE idempotency_ledger SET note = 'x'`, `DELETE FROM idempotency_ledger`,
			`UPDATE idempotency_seals SET fence = 9`, `DELETE FROM idempotency_seals`,
		}
		if d.dialect == sqlstore.PostgreSQL {
			statements = append(statements, `TRUNCATE idempotency_ledger`, `TRUNCATE idempotency_seals`)
		} else {
			statements = append(statements, `REPLACE INTO idempotency_ledger SELECT * FROM idempotency_ledger`, `REPLACE INTO idempotency_seals SELECT * FROM idempotency_seals`)
		}
		db := d.open(t)
		for _, statement := range statements {
			if _, err := db.Exec(statement); err == nil || !strings.Contains(err.Error(), "append-only") {
				t.Errorf("%s: got %v, want it refused", statement, err)
			}
		}
	})
}

// dropTriggers does what somebody with all rights would do first.
func dropTriggers(t testing.TB, d database, db *sql.DB) {
	t.Helper()
	statements := []string{
		`DROP TRIGGER idempotency_ledger_append_only ON idempotency_ledger`, `DROP TRIGGER idempotency_seals_append_only ON idempotency_seals`,
		`ALTER TABLE idempotency_ledger ALTER COLUMN seq SET GENERATED BY DEFAULT`,
	}
	if d.dialect == sqlstore.SQLite {
		statements = nil
		for _, table := range []string{"ledger", "seals"} {
			for _, event := range []string{"update", "delete", "replace"} {
				statements = append(statements, fmt.Sprintf(`DROP TRIGGER idempotency_%s_%s`, table, event))
			}
		}
	}
	for _, statement := range statements {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
}

// Somebody with all rights alters, drops, inserts, swaps and cuts. Each table has three
// seals: of 3, 3 and 3 entries.
func TestLedgerTampering(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		s := d.store(t, sqlstore.Config{Ledger: true})
		k := sealer(t, s.Ledger())
		var heads []ledger.Head
		for i := range 3 {
			var batch []idempotency.Claim
			for j := range 3 {
				c := claimOf(fmt.Sprint(i, j))
				c.Dataset = idempotency.Dataset{ID: "id", Version: "v", SourceURI: "s", ArtifactChecksum: "c", CARELabel: "l"}
				batch = append(batch, c)
			}
			if _, err := s.ClaimBatch(t.Context(), batch); err != nil {
				t.Fatal(err)
			}
			heads = append(heads, seal(t, k))
		}
		db := d.open(t)
		dropTriggers(t, d, db)
		var seqs []int64
		for line := range s.Ledger().Lines(t.Context(), ledger.Head{}) {
			if line.Entry != nil {
				seqs = append(seqs, line.Entry.Seq)
			}
		}
		if len(seqs) != 9 || heads[2].N != 3 {
			t.Fatalf("entries %v, head %v", seqs, heads[2])
		}
		verify(t, s.Ledger(), heads...)

		// tampered runs statements, which may name seqs as {0} to {8}, expects an error of the
		// verification, and puts everything back.
		copies := []string{`idempotency_ledger`, `idempotency_seals`}
		for _, table := range copies {
			if _, err := db.Exec(fmt.Sprintf(`CREATE TABLE copy_of_%[1]s AS SELECT * FROM %[1]s`, table)); err != nil {
				t.Fatal(err)
			}
		}
		restore := func() {
			for _, table := range copies {
				into := table
				if d.dialect == sqlstore.PostgreSQL && table == `idempotency_ledger` {
					into += ` OVERRIDING SYSTEM VALUE`
				}
				for _, statement := range []string{`DELETE FROM ` + table, fmt.Sprintf(`INSERT INTO %s SELECT * FROM copy_of_%s`, into, table)} {
					if _, err := db.Exec(statement); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		tampered := func(name string, want ledger.TamperError, anchors []ledger.Head, statements ...string) {
			t.Helper()
			for _, statement := range statements {
				for i, seq := range seqs {
					statement = strings.ReplaceAll(statement, fmt.Sprintf("{%d}", i), fmt.Sprint(seq))
				}
				if _, err := db.Exec(statement); err != nil {
					t.Fatalf("%s: %s: %v", name, statement, err)
				}
			}
			_, err := s.Ledger().Verify(t.Context(), anchors...)
			got := new(ledger.TamperError)
			if want.Kind == 0 {
				if err != nil {
					t.Errorf("%s: got %v, want nothing to be seen", name, err)
				}
			} else if !errors.As(err, &got) || got.Kind != want.Kind || got.Seal != want.Seal || got.Seq != want.Seq || got.Other != want.Other {
				t.Errorf("%s: got %+v, %v, want %v of seal %d, entries %d and %d", name, *got, err, want.Kind, want.Seal, want.Seq, want.Other)
			}
			restore()
		}
		// Each column of an entry and of a seal.
		for _, table := range []string{"idempotency_ledger", "idempotency_seals"} {
			rows, err := db.Query(`SELECT * FROM ` + table + ` WHERE false`)
			if err != nil {
				t.Fatal(err)
			}
			columns, err := rows.ColumnTypes()
			if err != nil {
				t.Fatal(err)
			}
			rows.Close()
			if want := map[string]int{"idempotency_ledger": 25, "idempotency_seals": 9}[table]; len(columns) != want && (d.dialect != sqlstore.SQLite || len(columns) != want-2 && table == "idempotency_ledger") {
				t.Errorf("%s has %d columns, want %d", table, len(columns), want)
			}
			for _, c := range columns {
				var values []string
				switch kind := strings.ToUpper(c.DatabaseTypeName()); {
				case strings.Contains(kind, "INT"):
					values = []string{c.Name() + ` + 1000`, c.Name() + ` + 1`, `-1 - ` + c.Name()}
				case kind == "TEXT":
					values = []string{c.Name() + ` || 'x'`}
				case d.dialect == sqlstore.PostgreSQL:
					values = []string{c.Name() + ` || '\x00'::bytea`, `set_byte(` + c.Name() + `, 0, 1 + get_byte(` + c.Name() + `, 0) % 200)`, `substring(` + c.Name() + ` FROM 2)`}
				default:
					values = []string{`CAST(` + c.Name() + ` || x'00' AS BLOB)`, `substr(` + c.Name() + `, 2)`}
				}
				want := ledger.TamperError{Kind: ledger.Altered, Seal: 2, Seq: seqs[4]}
				where := `seq = {4}`
				if table == "idempotency_seals" {
					want.Seq, where = 0, `n = 2`
				}
				for _, v := range values {
					if c.Name() == "response_hash" {
						v = `hash` // which is NULL before
					}
					name := fmt.Sprintf("%s.%s = %s", table, c.Name(), v)
					switch c.Name() {
					case "n":
						want.Kind = ledger.Dropped // the row with its number
						tampered(name, want, nil, `UPDATE idempotency_seals SET n = n + 10 WHERE n = 2`)
					case "epoch", "xid", "seq":
						if table == "idempotency_ledger" { // elsewhere, so it is not where it was
							tamperedPlace(t, s.Ledger(), name, db, restore, strings.ReplaceAll(fmt.Sprintf(`UPDATE %s SET %s = %s WHERE seq = {4}`, table, c.Name(), v), "{4}", fmt.Sprint(seqs[4])))
							continue
						}
						fallthrough
					default:
						tampered(name, want, nil, fmt.Sprintf(`UPDATE %s SET %s = %s WHERE %s`, table, c.Name(), v, where))
					}
				}
			}
		}
		tampered("drop an entry", ledger.TamperError{Kind: ledger.Dropped, Seal: 2, Seq: seqs[4]}, nil, `DELETE FROM idempotency_ledger WHERE seq = {4}`)
		tampered("drop the last entry", ledger.TamperError{Kind: ledger.Dropped, Seal: 3, Seq: seqs[8]}, nil, `DELETE FROM idempotency_ledger WHERE seq = {8}`)
		tampered("drop a seal", ledger.TamperError{Kind: ledger.Dropped, Seal: 2}, nil, `DELETE FROM idempotency_seals WHERE n = 2`)
		tampered("drop a seal and its entries", ledger.TamperError{Kind: ledger.Dropped, Seal: 2}, nil, `DELETE FROM idempotency_seals WHERE n = 2`, `DELETE FROM idempotency_ledger WHERE seq IN ({3}, {4}, {5})`)
		tampered("swap two entries", ledger.TamperError{Kind: ledger.Swapped, Seal: 2, Seq: seqs[3], Other: seqs[5]}, nil,
			`UPDATE idempotency_ledger SET seq = -1 WHERE seq = {3}`, `UPDATE idempotency_ledger SET seq = {3} WHERE seq = {5}`, `UPDATE idempotency_ledger SET seq = {5} WHERE seq = -1`)
		tampered("swap two entries of two seals", ledger.TamperError{Kind: ledger.Altered, Seal: 1, Seq: seqs[0]}, nil, swapAcross()...)
		tampered("swap two seals", ledger.TamperError{Kind: ledger.Altered, Seal: 2}, nil,
			`UPDATE idempotency_seals SET n = -1 WHERE n = 2`, `UPDATE idempotency_seals SET n = 2 WHERE n = 3`, `UPDATE idempotency_seals SET n = 3 WHERE n = -1`)
		sealOfForged := int64(2)
		if d.dialect == sqlstore.SQLite {
			sealOfForged = 3
		}
		tampered("forge an entry", ledger.TamperError{Kind: ledger.Inserted, Seal: sealOfForged, Seq: seqs[5] + 1000}, nil, forge(d))
		cut := []string{`DELETE FROM idempotency_seals WHERE n = 3`, `DELETE FROM idempotency_ledger WHERE seq IN ({6}, {7}, {8})`}
		tampered("cut the tail, with its head", ledger.TamperError{Kind: ledger.Truncated, Seal: 3}, heads, cut...)
		tampered("cut the tail, with an older head", ledger.TamperError{}, heads[:2], cut...)
		tampered("cut the tail, without a head", ledger.TamperError{}, nil, cut...)
		verify(t, s.Ledger(), heads...)
		_, err := s.Ledger().Export(t.Context(), new(bytes.Buffer), ledger.Head{N: 9, Hash: ledger.Hash{1}})
		if tampered := new(ledger.TamperError); !errors.As(err, &tampered) || tampered.Kind != ledger.Truncated || tampered.Seal != 4 {
			t.Errorf("an export after a head that is not there: got %v", err)
		}
	})
}

// tamperedPlace gives an entry another place and expects that it, or one of its
// neighbours in the seal, is named.
func tamperedPlace(t *testing.T, l *sqlstore.Ledger, name string, db *sql.DB, restore func(), statement string) {
	t.Helper()
	defer restore()
	if _, err := db.Exec(statement); err != nil {
		if strings.Contains(strings.ToUpper(err.Error()), "UNIQUE") || strings.Contains(err.Error(), "duplicate key") {
			return // the place is taken
		}
		t.Fatalf("%s: %v", name, err)
	}
	_, err := l.Verify(t.Context())
	if tampered := new(ledger.TamperError); !errors.As(err, &tampered) || tampered.Seq == 0 {
		t.Errorf("%s: got %v, want a TamperError with an entry", name, err)
	}
}

// swapAcross returns statements that swap the contents of an entry of the first and one
// of the third seal.
func swapAcross() []string {
	statements := []string{`CREATE TABLE two AS SELECT * FROM idempotency_ledger WHERE seq IN ({0}, {8})`}
	for _, pair := range [][2]string{{"{0}", "{8}"}, {"{8}", "{0}"}} {
		statements = append(statements, fmt.Sprintf(`UPDATE idempotency_ledger SET recorded_at = o.recorded_at, key = o.key, fence = o.fence, hash = o.hash FROM two AS o WHERE idempotency_ledger.seq = %s AND o.seq = %s`, pair[0], pair[1]))
	}
	return append(statements, `DROP TABLE two`)
}

// forge returns a statement that adds an entry whose hash is right: on PostgreSQL in the
// middle of what is sealed, on SQLite, where there is no room, after it.
func forge(d database) string {
	if d.dialect == sqlstore.SQLite {
		return `INSERT INTO idempotency_ledger SELECT ` + forged(`{5} + 1000`) + ` FROM idempotency_ledger WHERE seq = {5}`
	}
	return `INSERT INTO idempotency_ledger OVERRIDING SYSTEM VALUE SELECT epoch, xid, ` + forged(`{5} + 1000`) + ` FROM idempotency_ledger WHERE seq = {5}`
}

func forged(seq string) string {
	return seq + `, recorded_at, event, scope, operation_type, key, generation, fence, attempts, status, fingerprint_spec, request_hash, body_hash, response_hash, dataset_id, version, source_uri, artifact_checksum, care_label, replay_safe, run_again, note, hash`
}
