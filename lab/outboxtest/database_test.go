// Package outboxtest tests package outbox with the drivers modernc.org/sqlite and
// github.com/jackc/pgx/v5. Module lab keeps the drivers out of the root module.
//
// The tests use the PostgreSQL server at OUTBOX_POSTGRES, by default
// postgres://postgres@127.0.0.1:5432/test. Each test creates a schema and drops it. Without
// a server, the tests for PostgreSQL are skipped.
package outboxtest

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/outbox"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// database is the database of one test.
type database struct {
	dialect outbox.Dialect
	source  string // data source name
}

func (d database) connect() (*sql.DB, error) {
	if d.dialect == outbox.SQLite {
		return sql.Open("sqlite", d.source)
	}
	return sql.Open("pgx", d.source)
}

func (d database) open(t testing.TB) *sql.DB {
	t.Helper()
	db, err := d.connect()
	require.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	return db
}

// box creates the outbox's tables and opens the outbox.
func (d database) box(t testing.TB, change ...func(*outbox.Config)) (*outbox.Outbox, *sql.DB) {
	t.Helper()
	c := outbox.Config{DB: d.open(t), Dialect: d.dialect}
	for _, f := range change {
		f(&c)
	}
	require.NoError(t, outbox.Migrate(context.Background(), c.DB, c.Dialect))
	box, err := outbox.Open(context.Background(), c)
	require.NoError(t, err)
	return box, c.DB
}

// sqliteSource returns the data source name as a URI, because the path contains the name of
// the test, which may have a "#".
func sqliteSource(path string) string {
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?_txlock=immediate&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(30000)"
}

func newSQLite(t testing.TB) database {
	return database{outbox.SQLite, sqliteSource(filepath.Join(t.TempDir(), "outbox.db"))}
}

// newPostgreSQL makes a schema for the test. If there is no server, newPostgreSQL skips the
// test.
func newPostgreSQL(t testing.TB) database {
	t.Helper()
	return postgresAt(t, cmp.Or(os.Getenv("OUTBOX_POSTGRES"), "postgres://postgres@127.0.0.1:5432/test"))
}

func postgresAt(t testing.TB, server string) database {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a PostgreSQL server")
	}
	admin, err := sql.Open("pgx", server)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := admin.PingContext(ctx); err != nil {
		admin.Close()
		t.Skipf("no PostgreSQL at %s: %v", server, err)
	}
	schema := fmt.Sprintf("outbox_%d_%x", os.Getpid(), rand.Uint64())
	_, err = admin.ExecContext(ctx, "CREATE SCHEMA "+schema)
	require.NoError(t, err)
	t.Cleanup(func() {
		if _, err := admin.Exec("DROP SCHEMA " + schema + " CASCADE"); err != nil {
			t.Logf("drop the schema: %v", err)
		}
		admin.Close()
	})
	u, err := url.Parse(server)
	require.NoError(t, err)
	q := u.Query()
	q.Set("search_path", schema)
	u.RawQuery = q.Encode()
	return database{outbox.PostgreSQL, u.String()}
}

// The function `each` runs the test for both dialects.
func each(t *testing.T, test func(t *testing.T, d database)) {
	t.Run("SQLite", func(t *testing.T) { test(t, newSQLite(t)) })
	t.Run("PostgreSQL", func(t *testing.T) { test(t, newPostgreSQL(t)) })
}

// Event is the payload of the tests.
type Event struct {
	ID    string `json:"id"`
	Group string `json:"group"`
}

func newProducer(t testing.TB, client sqsfifo.Client, queueURL string, change ...func(*sqsfifo.Config[Event])) *sqsfifo.Producer[Event] {
	t.Helper()
	c := sqsfifo.Config[Event]{
		QueueURL: queueURL,
		Source:   "kfm.test.outbox",
		Identify: func(e Event) (sqsfifo.Identity, error) {
			return sqsfifo.Identity{DedupeKey: e.ID, Group: e.Group, Time: time.Unix(1764806400, 0)}, nil
		},
	}
	for _, f := range change {
		f(&c)
	}
	p, err := sqsfifo.NewProducer(client, c)
	require.NoError(t, err)
	return p
}

func newQueue(t testing.TB) *sqstest.Queue {
	t.Helper()
	q, err := sqstest.NewQueue(sqstest.Config{})
	require.NoError(t, err)
	return q
}

// builder builds messages. It never sends.
var builder = func() *sqsfifo.Producer[Event] {
	p, err := sqsfifo.NewProducer[Event](new(sqstest.Queue), sqsfifo.Config[Event]{
		QueueURL: "https://sqs.us-east-1.amazonaws.com/000000000000/events.fifo",
		Source:   "kfm.test.outbox",
		Identify: func(e Event) (sqsfifo.Identity, error) {
			return sqsfifo.Identity{DedupeKey: e.ID, Group: e.Group, Time: time.Unix(1764806400, 0)}, nil
		},
	})
	if err != nil {
		panic(err)
	}
	return p
}()

func build(t testing.TB, id, group string) *sqsfifo.Message {
	t.Helper()
	m, err := builder.Build(Event{id, group})
	require.NoError(t, err)
	return m
}

// add commits the messages in one transaction.
func add(t testing.TB, box *outbox.Outbox, db *sql.DB, msgs ...*sqsfifo.Message) {
	t.Helper()
	tx, err := db.Begin()
	require.NoError(t, err)
	defer tx.Rollback()
	require.NoError(t, box.Add(t.Context(), tx, msgs...))
	require.NoError(t, tx.Commit())
}

// addMany adds n events of group g.
func addMany(t testing.TB, box *outbox.Outbox, db *sql.DB, g string, n int) {
	t.Helper()
	var msgs []*sqsfifo.Message
	for i := range n {
		msgs = append(msgs, build(t, fmt.Sprintf("%s-%04d", g, i), g))
	}
	add(t, box, db, msgs...)
}

// start runs a relay until the test ends or the test calls the returned function.
func start(t testing.TB, box *outbox.Outbox, sender outbox.Sender, change ...func(*outbox.RelayConfig)) (*outbox.Relay, func()) {
	t.Helper()
	c := outbox.RelayConfig{Sender: sender, Poll: 10 * time.Millisecond}
	for _, f := range change {
		f(&c)
	}
	r, err := outbox.NewRelay(box, c)
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- r.Run(context.Background()) }()
	stopped := false
	stop := func() {
		if !stopped {
			stopped = true
			require.NoError(t, r.Close(context.Background()))
			require.NoError(t, <-ended)
		}
	}
	t.Cleanup(stop)
	return r, stop
}

// eventually waits until the condition holds.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

func empty(t testing.TB, box *outbox.Outbox) func() bool {
	return func() bool {
		s, err := box.Stats(context.Background())
		require.NoError(t, err)
		return s.Messages == 0
	}
}

// sent returns the IDs of the events in the queue, by group.
func sent(t testing.TB, q *sqstest.Queue) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for _, m := range q.Messages() {
		e, err := sqsfifo.DecodeEnvelope[Event](m.Body)
		require.NoError(t, err)
		out[m.GroupID] = append(out[m.GroupID], e.Payload.ID)
	}
	return out
}
