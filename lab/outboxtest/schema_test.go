package outboxtest

import (
	"context"
	"database/sql"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/outbox"
)

// definitions returns the database's definition of the tables.
func definitions(t *testing.T, d database) (out []string) {
	t.Helper()
	query := `SELECT coalesce(sql, name) FROM sqlite_master`
	if d.dialect == outbox.PostgreSQL {
		query = `SELECT concat(c.relname, ' ', a.attname, ' ', format_type(a.atttypid, a.atttypmod), ' ', a.attnotnull, ' ', a.attcollation, ' ', c.reloptions)
			FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid WHERE c.relnamespace = current_schema()::regnamespace AND a.attnum > 0`
	}
	rows, err := d.open(t).Query(query)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var s string
		require.NoError(t, rows.Scan(&s))
		out = append(out, strings.ReplaceAll(s, "IF NOT EXISTS ", ""))
	}
	require.NoError(t, rows.Err())
	slices.Sort(out)
	return out
}

// Processes that start at the same time call Migrate for a new SQLite file. Each opens its own
// connection, which changes journal_mode.
func TestMigrateNewFileConcurrently(t *testing.T) {
	for range 20 {
		path := filepath.Join(t.TempDir(), "new.db")
		var wg sync.WaitGroup
		start := make(chan struct{})
		for range 8 {
			db, err := sql.Open("sqlite", sqliteSource(path))
			require.NoError(t, err)
			t.Cleanup(func() { db.Close() })
			wg.Go(func() {
				<-start
				assert.NoError(t, outbox.Migrate(t.Context(), db, outbox.SQLite))
			})
		}
		close(start)
		wg.Wait()
	}
}

// Migrate and the SQL text of Schema make equal tables, even after concurrent and
// repeated calls of Migrate.
func TestSchema(t *testing.T) {
	each(t, func(t *testing.T, migrated database) {
		db := migrated.open(t)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() { assert.NoError(t, outbox.Migrate(context.Background(), db, migrated.dialect)) })
		}
		wg.Wait()
		printed := newSQLite(t)
		if migrated.dialect == outbox.PostgreSQL {
			printed = newPostgreSQL(t)
		}
		text, err := outbox.Schema(printed.dialect)
		require.NoError(t, err)
		db = printed.open(t)
		for statement := range strings.SplitSeq(text, ";\n") {
			if strings.TrimSpace(statement) != "" {
				_, err := db.Exec(statement)
				require.NoError(t, err, statement)
			}
		}
		assert.Equal(t, definitions(t, migrated), definitions(t, printed))
		require.NoError(t, outbox.Migrate(t.Context(), db, printed.dialect))
		_, err = outbox.Open(t.Context(), outbox.Config{DB: db, Dialect: printed.dialect})
		require.NoError(t, err)

		_, err = db.Exec(`UPDATE outbox_meta SET value = 99`)
		require.NoError(t, err)
		var setting *idempotency.InvalidError
		require.ErrorAs(t, outbox.Migrate(t.Context(), db, printed.dialect), &setting)
		_, err = outbox.Open(t.Context(), outbox.Config{DB: db, Dialect: printed.dialect})
		require.ErrorAs(t, err, &setting)
		assert.Equal(t, "schema", setting.Field)
	})
}

// Open refuses settings with which the outbox could lose or reorder messages. The error
// names the setting.
func TestSettings(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		box, db := d.box(t)
		c := outbox.Config{DB: db, Dialect: d.dialect}
		for setting, change := range map[string]func(*outbox.Config){
			"Config.DB":        func(c *outbox.Config) { c.DB = nil },
			"Config.Dialect":   func(c *outbox.Config) { c.Dialect = 0 },
			"Config.ResendFor": func(c *outbox.Config) { c.ResendFor = 5 * time.Minute },
			"Config.Late":      func(c *outbox.Config) { c.Late = 9 },
			"Config.Sent":      func(c *outbox.Config) { c.Sent = 9 },
		} {
			wrong := c
			change(&wrong)
			_, err := outbox.Open(t.Context(), wrong)
			var found *idempotency.InvalidError
			require.ErrorAs(t, err, &found)
			assert.Equal(t, setting, found.Field)
		}
		q := newQueue(t)
		p := newProducer(t, q, q.URL())
		for setting, config := range map[string]outbox.RelayConfig{
			"RelayConfig.Sender":    {},
			"RelayConfig.Lease":     {Sender: p, Lease: 61 * time.Second},
			"RelayConfig.Poll":      {Sender: p, Poll: -1},
			"RelayConfig.Groups":    {Sender: p, Groups: -1},
			"RelayConfig.GroupRows": {Sender: p, GroupRows: 1001},
		} {
			_, err := outbox.NewRelay(box, config)
			var found *idempotency.InvalidError
			require.ErrorAs(t, err, &found)
			assert.Equal(t, setting, found.Field)
		}
		_, err := outbox.NewRelay(nil, outbox.RelayConfig{Sender: p})
		require.Error(t, err)
	})
}

func TestDurability(t *testing.T) {
	refusedBy := func(t *testing.T, source string, d outbox.Dialect, setting string) {
		t.Helper()
		db, err := database{d, source}.connect()
		require.NoError(t, err)
		defer db.Close()
		c := outbox.Config{DB: db, Dialect: d}
		_, err = outbox.Open(t.Context(), c)
		var found *idempotency.InvalidError
		require.ErrorAs(t, err, &found)
		assert.Equal(t, setting, found.Field)
		if setting != "busy_timeout" && setting != "transaction_read_only" {
			c.AllowLoss = true
			_, err = outbox.Open(t.Context(), c)
			require.NotErrorAs(t, err, &found)
		}
	}
	t.Run("SQLite", func(t *testing.T) {
		d := newSQLite(t)
		refusedBy(t, strings.Replace(d.source, "synchronous(FULL)", "synchronous(NORMAL)", 1), d.dialect, "synchronous")
		refusedBy(t, strings.Replace(d.source, "journal_mode(WAL)", "journal_mode(MEMORY)", 1), d.dialect, "journal_mode")
		refusedBy(t, strings.Replace(d.source, "busy_timeout(30000)", "busy_timeout(10)", 1), d.dialect, "busy_timeout")
		refusedBy(t, "file::memory:?_pragma=busy_timeout(10000)", d.dialect, "database")
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		d := newPostgreSQL(t)
		d.box(t)
		refusedBy(t, d.source+"&synchronous_commit=off", d.dialect, "synchronous_commit")
		refusedBy(t, d.source+"&default_transaction_read_only=on", d.dialect, "transaction_read_only")
	})
	t.Run("no schema", func(t *testing.T) {
		db, err := sql.Open("sqlite", sqliteSource(filepath.Join(t.TempDir(), "new.db")))
		require.NoError(t, err)
		defer db.Close()
		_, err = outbox.Open(t.Context(), outbox.Config{DB: db, Dialect: outbox.SQLite})
		require.ErrorContains(t, err, "call Migrate")
	})
}
