// Command bench measures the effect of the storage parameters of the outbox's PostgreSQL
// tables. It runs the same load twice: with the parameters of the schema and without them.
// Each run prints the transactions per second, the share of counter updates without a new
// index entry (HOT updates), the sizes of the tables, and the duration of a commit of the
// relay.
//
//	go run ./bench/outbox -postgres postgres://postgres@127.0.0.1:5432/test -for 10s
package main

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/outbox"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

type event struct {
	ID    int64  `json:"id"`
	Group string `json:"group"`
	Text  string `json:"text"`
}

var variants = []struct {
	name       string
	statements []string
}{
	{"as in the schema", nil},
	{"fillfactor 100 for the counters", []string{
		`ALTER TABLE outbox_groups SET (fillfactor = 100)`, `ALTER TABLE outbox_attempts SET (fillfactor = 100)`, `ALTER TABLE outbox_leader SET (fillfactor = 100)`,
	}},
	{"fillfactor 25 for the counters", []string{
		`ALTER TABLE outbox_groups SET (fillfactor = 25)`, `ALTER TABLE outbox_attempts SET (fillfactor = 25)`, `ALTER TABLE outbox_leader SET (fillfactor = 25)`,
	}},
	{"autovacuum of the server", []string{`ALTER TABLE outbox RESET (autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold)`}},
	{"no autovacuum", []string{`ALTER TABLE outbox SET (autovacuum_enabled = off)`}},
}

func main() {
	source := flag.String("postgres", "postgres://postgres@127.0.0.1:5432/test", "server and database; each variant has a schema, which is dropped")
	length := flag.Duration("for", 10*time.Second, "how long each variant runs")
	writers := flag.Int("writers", 8, "transactions at once")
	groups := flag.Int("groups", 200, "message groups")
	flag.Parse()
	for _, v := range variants {
		if err := measure(context.Background(), *source, v.name, v.statements, *length, *writers, *groups); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func measure(ctx context.Context, source, name string, statements []string, length time.Duration, writers, groups int) (err error) {
	admin, err := sql.Open("pgx", source)
	if err != nil {
		return err
	}
	defer admin.Close()
	schema := fmt.Sprintf("outbox_bench_%d", os.Getpid())
	if _, err := admin.ExecContext(ctx, "CREATE SCHEMA "+schema); err != nil {
		return err
	}
	defer func() { _, _ = admin.Exec("DROP SCHEMA " + schema + " CASCADE") }()
	u, err := url.Parse(source)
	if err != nil {
		return err
	}
	q := u.Query()
	q.Set("search_path", schema)
	u.RawQuery = q.Encode()
	db, err := sql.Open("pgx", u.String())
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxIdleConns(writers + 4)
	if err := outbox.Migrate(ctx, db, outbox.PostgreSQL); err != nil {
		return err
	}
	for _, s := range statements {
		if _, err := db.ExecContext(ctx, s); err != nil {
			return err
		}
	}
	box, err := outbox.Open(ctx, outbox.Config{DB: db, Dialect: outbox.PostgreSQL})
	if err != nil {
		return err
	}
	queue, err := sqstest.NewQueue(sqstest.Config{})
	if err != nil {
		return err
	}
	producer, err := sqsfifo.NewProducer(queue, sqsfifo.Config[event]{
		QueueURL: queue.URL(), Source: "kfm.bench.outbox",
		Identify: func(e event) (sqsfifo.Identity, error) {
			return sqsfifo.Identity{DedupeKey: fmt.Sprint(e.ID), Group: e.Group, Time: time.Unix(1, 0)}, nil
		},
	})
	if err != nil {
		return err
	}
	relay, err := outbox.NewRelay(box, outbox.RelayConfig{Sender: producer})
	if err != nil {
		return err
	}
	go func() { _ = relay.Run(ctx) }()
	var made atomic.Int64
	var wg sync.WaitGroup
	begin := time.Now()
	failed := make(chan error, writers)
	for range writers {
		wg.Go(func() {
			for time.Since(begin) < length {
				id := made.Add(1)
				if err := write(ctx, db, box, producer, event{id, fmt.Sprint("group-", id%int64(groups)), fmt.Sprintf("%0300d", id)}); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	wg.Wait()
	took := time.Since(begin)
	stats := relay.Stats()
	if err := relay.Close(ctx); err != nil {
		return err
	}
	select {
	case err := <-failed:
		return err
	default:
	}
	fmt.Printf("%s\n  %.0f transactions/s, %d of them sent; %d commits of %v\n", name, float64(made.Load())/took.Seconds(), stats.Sent,
		stats.Commits, (stats.Database / time.Duration(max(stats.Commits, 1))).Round(10*time.Microsecond))
	return sizes(ctx, db)
}

func write(ctx context.Context, db *sql.DB, box *outbox.Outbox, producer *sqsfifo.Producer[event], e event) error {
	msg, err := producer.Build(e)
	if err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit there is nothing to roll back
	if err := box.Add(ctx, tx, msg); err != nil {
		return err
	}
	return tx.Commit()
}

func sizes(ctx context.Context, db *sql.DB) error {
	if _, err := db.ExecContext(ctx, `SELECT pg_sleep(1.5)`); err != nil { // PostgreSQL sessions report their counts once a second
		return err
	}
	rows, err := db.QueryContext(ctx, `SELECT relname, n_tup_upd, n_tup_hot_upd, n_dead_tup, autovacuum_count, pg_relation_size(relid) / 1024, pg_indexes_size(relid) / 1024
		FROM pg_stat_user_tables WHERE schemaname = current_schema() AND relname IN ('outbox', 'outbox_groups', 'outbox_attempts') ORDER BY relname`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		var updates, hot, dead, vacuums, table, index int64
		if err := rows.Scan(&name, &updates, &hot, &dead, &vacuums, &table, &index); err != nil {
			return err
		}
		fmt.Printf("  %-16s %d updates, %.0f %% HOT; %d dead rows, vacuumed %d times; table %d KiB, indexes %d KiB\n",
			name, updates, 100*float64(hot)/float64(max(updates, 1)), dead, vacuums, table, index)
	}
	return rows.Err()
}
