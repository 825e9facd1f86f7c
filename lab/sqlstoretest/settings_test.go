package sqlstoretest

import (
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/sqlstore"
)

// Open refuses settings that may lose acknowledged writes. With AllowLoss, Open accepts
// most of these settings, and Weaknesses lists the accepted ones.
func TestSettings(t *testing.T) {
	file := func(pragmas string) func(t *testing.T) database {
		return func(t *testing.T) database {
			return database{dialect: sqlstore.SQLite, driver: "sqlite", source: "file:" + filepath.Join(t.TempDir(), "keys.db") + "?" + pragmas}
		}
	}
	postgreSQL := func(settings string) func(*testing.T) database {
		return func(t *testing.T) database {
			d := newPostgreSQL(t)
			d.source += settings
			return d
		}
	}
	for _, tc := range []struct {
		name    string
		open    func(t *testing.T) database
		setting string // the setting that Open refuses, or ""
		names   string // Weaknesses with AllowLoss, joined; "" without any, or if Open still refuses
	}{
		{"SQLite as advised", newSQLiteFor, "", ""},
		{"SQLite, rollback journal", file("_pragma=synchronous(FULL)&_pragma=busy_timeout(10000)"), "", ""},
		{"SQLite, synchronous normal", file("_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_pragma=busy_timeout(10000)"), "synchronous", "synchronous is 1"},
		{"SQLite, synchronous off", file("_pragma=synchronous(OFF)&_pragma=busy_timeout(10000)"), "synchronous", "synchronous is 0"},
		{"SQLite, journal off", file("_pragma=journal_mode(OFF)&_pragma=synchronous(FULL)&_pragma=busy_timeout(10000)"), "journal_mode", "journal_mode is off"},
		{"SQLite, journal in memory", file("_pragma=journal_mode(MEMORY)&_pragma=synchronous(FULL)&_pragma=busy_timeout(10000)"), "journal_mode", "journal_mode is memory"},
		{"SQLite, no busy timeout", file("_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"), "busy_timeout", ""},
		{"SQLite in memory", func(*testing.T) database {
			return database{dialect: sqlstore.SQLite, driver: "sqlite", source: "file:volatile?mode=memory&cache=shared&_pragma=synchronous(FULL)&_pragma=busy_timeout(10000)"}
		}, "database", "database is in memory"},
		{"PostgreSQL as installed", newPostgreSQLFor, "", ""},
		{"PostgreSQL, asynchronous commit", postgreSQL("&synchronous_commit=off"), "synchronous_commit", "synchronous_commit is off"},
		{"PostgreSQL, commit without replicas", postgreSQL("&synchronous_commit=local"), "", ""},
		{"PostgreSQL, read-only", postgreSQL("&default_transaction_read_only=on"), "transaction_read_only", ""},
		{"PostgreSQL, array_nulls off", postgreSQL("&array_nulls=off"), "array_nulls", ""},
		{"PostgreSQL, bytes as escapes and the simple protocol", postgreSQL("&bytea_output=escape&default_query_exec_mode=simple_protocol"), "bytea_output", ""},
		{"PostgreSQL, bytes as escapes and the extended protocol", postgreSQL("&bytea_output=escape"), "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := tc.open(t)
			db := d.open(t)
			if tc.setting != "transaction_read_only" {
				if err := sqlstore.Migrate(t.Context(), db, d.dialect); err != nil {
					t.Fatal(err)
				}
			}
			s, err := sqlstore.Open(t.Context(), sqlstore.Config{DB: db, Dialect: d.dialect})
			if tc.setting == "" {
				if err != nil || len(s.Weaknesses()) > 0 {
					t.Fatalf("got %v, %v, want a store", s, err)
				}
				return
			}
			var setting *idempotency.InvalidError
			if !errors.As(err, &setting) || setting.Field != tc.setting {
				t.Fatalf("got %v, want a InvalidError about %s", err, tc.setting)
			}
			s, err = sqlstore.Open(t.Context(), sqlstore.Config{DB: db, Dialect: d.dialect, AllowLoss: true})
			if tc.names == "" {
				if err == nil {
					t.Fatal("AllowLoss let it pass, though it is not about loss")
				}
				return
			}
			if err != nil || strings.Join(s.Weaknesses(), ", ") != tc.names {
				t.Fatalf("with AllowLoss: got %v, %v, want %q", s.Weaknesses(), err, tc.names)
			}
		})
	}
}

func newSQLiteFor(t *testing.T) database     { return newSQLite(t) }
func newPostgreSQLFor(t *testing.T) database { return newPostgreSQL(t) }

// Several processes may migrate at the same time. A store refuses an unknown schema. The
// printed schema is the schema that Migrate makes.
func TestMigrate(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		db := d.open(t)
		if _, err := sqlstore.Open(t.Context(), sqlstore.Config{DB: db, Dialect: d.dialect}); err == nil || !strings.Contains(err.Error(), "Migrate") {
			t.Errorf("without a schema: got %v, want an error that names Migrate", err)
		}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if err := sqlstore.Migrate(t.Context(), db, d.dialect); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if _, err := sqlstore.Open(t.Context(), sqlstore.Config{DB: db, Dialect: d.dialect}); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec(`UPDATE idempotency_meta SET value = 99 WHERE name IN ('schema', 'oldest')`); err != nil {
			t.Fatal(err)
		}
		var setting *idempotency.InvalidError
		if _, err := sqlstore.Open(t.Context(), sqlstore.Config{DB: db, Dialect: d.dialect}); !errors.As(err, &setting) || setting.Field != "schema" {
			t.Errorf("a later schema: got %v, want a InvalidError", err)
		}
		if err := sqlstore.Migrate(t.Context(), db, d.dialect); !errors.As(err, &setting) {
			t.Errorf("migration of a later schema: got %v, want a InvalidError", err)
		}
	})
	each(t, func(t *testing.T, d database) {
		text, err := sqlstore.Schema(d.dialect)
		if err != nil {
			t.Fatal(err)
		}
		db := d.open(t)
		if _, err := db.Exec(text); err != nil {
			t.Fatal(err)
		}
		s, err := sqlstore.Open(t.Context(), sqlstore.Config{DB: db, Dialect: d.dialect})
		if err != nil {
			t.Fatal(err)
		}
		claim(t, s, claimOf("a"), 1)
	})
}
