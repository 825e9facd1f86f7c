package sqlstoretest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/sqlstore"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/sqldb"
)

// ground returns a schema with the given migration steps for an imaginary package named
// ground. The tests use it in place of the schema of a real package.
func ground(steps ...sqldb.Step) *sqldb.Schema {
	return &sqldb.Schema{Name: "ground", Meta: "ground_meta", Lock: 42, Steps: steps, Tables: map[string]string{"ground": "id, text"}}
}

var (
	firstStep  = sqldb.Step{Both: "CREATE TABLE ground (\n  id   {int} PRIMARY KEY,\n  text {text} NOT NULL\n){strict};\n\nINSERT INTO ground (id, text) VALUES (1, 'one')"}
	secondStep = sqldb.Step{Both: "ALTER TABLE ground ADD COLUMN more {text} NOT NULL DEFAULT ''", SQLite: "UPDATE ground SET more = 'SQLite'", PostgreSQL: "UPDATE ground SET more = 'PostgreSQL'"}
)

// A migration from version 1 to version 2 runs only the second step and keeps all rows.
// If the second step stops older programs, programs of version 1 can no longer write, open
// or migrate; otherwise they continue to work.
func TestUpgrade(t *testing.T) {
	for name, stops := range map[string]bool{"a step that adds": false, "a step that stops older programs": true} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, d database) {
				second := secondStep
				second.StopsOlder = stops
				v1, v2 := ground(firstStep), ground(firstStep, second)
				db, ctx := d.open(t), t.Context()
				if err := v1.Migrate(ctx, db, d.dialect); err != nil {
					t.Fatal(err)
				}
				if _, err := v1.Open(ctx, db, d.dialect, false); err != nil {
					t.Fatal(err)
				}
				var invalid *idempotency.InvalidError
				if _, err := v2.Open(ctx, db, d.dialect, false); !errors.As(err, &invalid) || invalid.Found != "version 1" {
					t.Errorf("version 2 opens version 1: got %v, want an InvalidError", err)
				}
				for range 2 {
					if err := v2.Migrate(ctx, db, d.dialect); err != nil {
						t.Fatal(err)
					}
				}
				var text, more string
				if err := db.QueryRowContext(ctx, "SELECT text, more FROM ground WHERE id = 1").Scan(&text, &more); err != nil || text != "one" || more != d.dialect.String() {
					t.Errorf("got %q, %q, %v", text, more, err)
				}
				if _, err := v2.Open(ctx, db, d.dialect, false); err != nil {
					t.Error(err)
				}
				var oldest int64
				if err := db.QueryRowContext(ctx, "SELECT "+v1.Oldest()).Scan(&oldest); err != nil {
					t.Fatal(err)
				}
				_, opened := v1.Open(ctx, db, d.dialect, false)
				for what, err := range map[string]error{"a write": v1.CheckOldest(oldest), "open": opened, "migrate": v1.Migrate(ctx, db, d.dialect)} {
					if errors.As(err, &invalid) != stops || err != nil != stops {
						t.Errorf("%s of version 1: got %v", what, err)
					}
				}
			})
		})
	}
}

// A migration waits for a transaction of an older program that has already checked the
// schema's version. The next transaction of the older program is refused.
func TestUpgradeWaitsForWriters(t *testing.T) {
	d := newPostgreSQL(t)
	second := secondStep
	second.StopsOlder = true
	v1, v2 := ground(firstStep), ground(firstStep, second)
	db, ctx := d.open(t), t.Context()
	if err := v1.Migrate(ctx, db, d.dialect); err != nil {
		t.Fatal(err)
	}
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	var oldest int64
	if err := tx.QueryRow("SELECT " + v1.Oldest()).Scan(&oldest); err != nil || v1.CheckOldest(oldest) != nil {
		t.Fatal(oldest, err)
	}
	brief, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	if err := v2.Migrate(brief, db, d.dialect); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v, want a migration that waits", err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := v2.Migrate(ctx, db, d.dialect); err != nil {
		t.Fatal(err)
	}
}

// If a later schema forbids writes by older programs, the store of an older program refuses
// to write, in its own transactions and in a caller's.
func TestOldProcessStopsWriting(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		db := d.open(t)
		s := d.store(t, sqlstore.Config{DB: db})
		claim(t, s, claimOf("before"), 1)
		if _, err := db.Exec(`UPDATE idempotency_meta SET value = 99 WHERE name IN ('schema', 'oldest')`); err != nil {
			t.Fatal(err)
		}
		_, err := s.Claim(t.Context(), claimOf("after"))
		tx, txErr := db.Begin()
		if txErr != nil {
			t.Fatal(txErr)
		}
		defer tx.Rollback()
		_, inTx := s.ClaimTx(t.Context(), tx, claimOf("in a transaction"))
		for _, err := range []error{err, inTx} {
			if invalid := (*idempotency.InvalidError)(nil); !errors.As(err, &invalid) || invalid.Field != "schema" {
				t.Errorf("got %v, want an InvalidError about the schema", err)
			}
		}
	})
}

// Open refuses a database with changed tables, without permission to write, or with an
// unlogged table, which PostgreSQL empties after a crash. With AllowLoss, Open accepts the
// unlogged table.
func TestOpenChecks(t *testing.T) {
	open := func(t *testing.T, d database) error {
		_, err := sqlstore.Open(t.Context(), sqlstore.Config{DB: d.open(t), Dialect: d.dialect})
		return err
	}
	each(t, func(t *testing.T, d database) {
		d.store(t, sqlstore.Config{})
		if _, err := d.open(t).Exec(`ALTER TABLE idempotency_keys DROP COLUMN care_label`); err != nil {
			t.Fatal(err)
		}
		if err := open(t, d); err == nil || !strings.Contains(err.Error(), "idempotency_keys") || !strings.Contains(err.Error(), "care_label") {
			t.Errorf("a column is missing: got %v", err)
		}
	})
	t.Run("unlogged", func(t *testing.T) {
		d := newPostgreSQL(t)
		d.store(t, sqlstore.Config{})
		if _, err := d.open(t).Exec(`ALTER TABLE idempotency_keys SET UNLOGGED`); err != nil {
			t.Fatal(err)
		}
		invalid := (*idempotency.InvalidError)(nil)
		if err := open(t, d); !errors.As(err, &invalid) || invalid.Field != "idempotency_keys" || invalid.Found != "unlogged" {
			t.Errorf("got %v, want an InvalidError about the table", err)
		}
		s, err := sqlstore.Open(t.Context(), sqlstore.Config{DB: d.open(t), Dialect: d.dialect, AllowLoss: true})
		if err != nil || strings.Join(s.Weaknesses(), ", ") != "idempotency_keys is unlogged" {
			t.Errorf("with AllowLoss: got %v, %v", s, err)
		}
	})
	t.Run("read-only", func(t *testing.T) {
		d := newSQLite(t)
		d.store(t, sqlstore.Config{})
		for change, want := range map[string]string{"&mode=ro": "refuses writes", "&_pragma=query_only(1)": "query_only"} {
			other := d
			other.source += change
			if err := open(t, other); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want an error with %q", change, err, want)
			}
		}
	})
}

// A new SQLite file is restricted to its owner. A file with other tables keeps its
// permissions.
func TestRightsOfNewFile(t *testing.T) {
	for name, tc := range map[string]struct {
		before string
		want   os.FileMode
	}{"new": {"", 0o600}, "of an application": {"CREATE TABLE orders (id INTEGER)", 0o644}} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "keys.db")
			if err := os.WriteFile(path, nil, 0o644); err != nil {
				t.Fatal(err)
			}
			d := database{dialect: sqlstore.SQLite, driver: "sqlite", source: sqliteSource(path)}
			if _, err := d.open(t).Exec(tc.before); err != nil {
				t.Fatal(err)
			}
			claim(t, d.store(t, sqlstore.Config{}), claimOf("a"), 1)
			for _, suffix := range []string{"", "-wal", "-shm"} {
				info, err := os.Stat(path + suffix)
				if err != nil || info.Mode().Perm() != tc.want {
					t.Errorf("%s: got %v, %v, want %v", suffix, info.Mode(), err, tc.want)
				}
			}
		})
	}
}
