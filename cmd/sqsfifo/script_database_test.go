package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/sqlstore"
	"github.com/kansas-frontier-matrix/sqsfifo/outbox"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// outboxAge is the age of makeOutbox's messages.
const outboxAge = 10 * time.Minute

// scriptEvent is the payload of makeOutbox's messages.
type scriptEvent struct {
	Scene string `json:"scene"`
}

// makeOutbox makes an outbox in a database. For each element GROUP:N of the parameter
// `groups`, it adds N messages to message group GROUP. The recorded time of the addition is
// ten minutes ago.
func makeOutbox(ctx context.Context, source string, groups ...string) (err error) {
	db, dialect, err := rawDatabase(source)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := outbox.Migrate(ctx, db, dialect); err != nil {
		return err
	}
	box, err := outbox.Open(ctx, outbox.Config{DB: db, Dialect: dialect})
	if err != nil {
		return err
	}
	queue, err := sqstest.NewQueue(sqstest.Config{})
	if err != nil {
		return err
	}
	var group string
	producer, err := sqsfifo.NewProducer(queue, sqsfifo.Config[scriptEvent]{
		QueueURL: queue.URL(), Source: "kfm.remote-sensing.landsat",
		Identify: func(e scriptEvent) (sqsfifo.Identity, error) {
			return sqsfifo.Identity{DedupeKey: "landsat|" + e.Scene, Group: group, Time: time.Unix(1764806400, 0)}, nil
		},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, producer.Close(ctx)) }()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit there is nothing to roll back
	for _, text := range groups {
		name, number, _ := strings.Cut(text, ":")
		n, err := strconv.Atoi(number)
		if err != nil {
			return fmt.Errorf("%s: want GROUP:N", text)
		}
		group = name
		for i := range n {
			m, err := producer.Build(scriptEvent{fmt.Sprintf("%s-%d", group, i+1)})
			if err != nil {
				return err
			}
			if err := box.Add(ctx, tx, m); err != nil {
				return err
			}
		}
	}
	if _, err := tx.ExecContext(ctx, `UPDATE outbox SET added_at = added_at - $1`, outboxAge.Microseconds()); err != nil {
		return err
	}
	return tx.Commit()
}

// markTried records in the outbox an attempt to send the messages of a group, up to the
// message at the position `last`. The parameter `ago` is the time since the attempt.
func markTried(ctx context.Context, source, group string, last int, ago time.Duration) (err error) {
	db, _, err := rawDatabase(source)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	_, err = db.ExecContext(ctx, `INSERT INTO outbox_attempts (message_group, from_position, to_position, first_attempt) VALUES ($1, 1, $2, $3)`,
		group, last, time.Now().Add(-ago).UnixMicro())
	return err
}

// makeKeys makes an idempotency store in a database. The elements of `keys` are
//   - STATE:KEY, a key in the state unresolved, running or in_doubt
//   - message:KEY, an unresolved key with a producer's message
//   - many:N, N unresolved keys
//   - ledger, for a store with a ledger
func makeKeys(ctx context.Context, source string, keys ...string) (err error) {
	db, dialect, err := rawDatabase(source)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	kind := sqlstore.SQLite
	if dialect == outbox.PostgreSQL {
		kind = sqlstore.PostgreSQL
	}
	if err := sqlstore.Migrate(ctx, db, kind); err != nil {
		return err
	}
	store, err := sqlstore.Open(ctx, sqlstore.Config{DB: db, Dialect: kind, Ledger: slices.Contains(keys, "ledger")})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	var all []idempotency.Claim
	for _, text := range keys {
		state, key, _ := strings.Cut(text, ":")
		c := idempotency.Claim{
			Key: idempotency.Key{Scope: "tenant-7", Operation: "payments.create", Value: key}, Token: idempotency.NewToken(),
			Fingerprint: idempotency.FingerprintOf("test/1", []byte(key)), Group: "g", Body: []byte(`{}`),
			Terms: idempotency.Terms{Lease: time.Millisecond, TTL: idempotency.Forever},
		}
		switch state {
		case "ledger":
			continue
		case "unresolved":
		case "running":
			c.Terms.Lease = time.Hour
		case "in_doubt":
			c.Terms.ResendFor = idempotency.Forever
		case "message":
			c.Key.Scope = idempotency.JoinScope("", "arn:aws:sqs:us-east-1:000000000000:events.fifo", "kfm.a.b")
			c.Key.Operation, c.Body = "sqs.send", []byte(`{"key":"`+key+`"}`)
		case "many":
			n, err := strconv.Atoi(key)
			if err != nil {
				return err
			}
			for i := range n {
				c.Key.Value, c.Token = fmt.Sprintf("pay-%d", i), idempotency.NewToken()
				all = append(all, c)
			}
			continue
		default:
			return fmt.Errorf("%s: want unresolved, running, in_doubt, message or many", text)
		}
		all = append(all, c)
	}
	for part := range slices.Chunk(all, idempotency.MaxBatch) {
		if _, err := store.ClaimBatch(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

// rawDatabase opens a PostgreSQL database, if `source` is a URL, or else a SQLite file. A
// missing SQLite file is created.
func rawDatabase(source string) (*sql.DB, outbox.Dialect, error) {
	if strings.Contains(source, "://") {
		db, err := sql.Open("pgx", source)
		return db, outbox.PostgreSQL, err
	}
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: source}).EscapedPath()+"?_txlock=immediate&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(30000)")
	return db, outbox.SQLite, err
}

// scriptSource returns the database that a script names: a URL, or the absolute path of a
// file.
func scriptSource(ts *testscript.TestScript, name string) string {
	if strings.Contains(name, "://") {
		return name
	}
	return ts.MkAbs(name)
}

func scriptOutbox(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 1 {
		ts.Fatalf("usage: outbox DATABASE [GROUP:N ...]")
	}
	ts.Check(makeOutbox(context.Background(), scriptSource(ts, args[0]), args[1:]...))
}

func scriptKeys(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 1 {
		ts.Fatalf("usage: keys DATABASE [STATE:KEY ...]")
	}
	ts.Check(makeKeys(context.Background(), scriptSource(ts, args[0]), args[1:]...))
}

func scriptTried(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 4 {
		ts.Fatalf("usage: tried DATABASE GROUP POSITION TIME")
	}
	to, err := strconv.Atoi(args[2])
	ts.Check(err)
	ago, err := time.ParseDuration(args[3])
	ts.Check(err)
	ts.Check(markTried(context.Background(), scriptSource(ts, args[0]), args[1], to, ago))
}

// postgresServer returns the URL of the PostgreSQL server for tests.
func postgresServer() string {
	return cmp.Or(os.Getenv("OUTBOX_POSTGRES"), "postgres://postgres@127.0.0.1:5432/test")
}

// interpreters returns the paths of python and node, if installed. The python3 in PATH may
// be a wrapper that needs a home folder, which scripts do not have, so Python itself
// reports its path.
var interpreters = sync.OnceValue(func() map[string]string {
	found := map[string]string{}
	if out, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output(); err == nil {
		found["python"] = strings.TrimSpace(string(out))
	}
	if program, err := exec.LookPath("node"); err == nil {
		found["node"] = program
	}
	return found
})

// scriptCondition implements the conditions of the scripts: "postgres" is true if a
// server answers, "python" and "node" if the interpreter is installed.
func scriptCondition(name string) (bool, error) {
	if name == "python" || name == "node" {
		return interpreters()[name] != "", nil
	}
	if name != "postgres" {
		return false, fmt.Errorf("no condition %q", name)
	}
	db, err := sql.Open("pgx", postgresServer())
	if err != nil {
		return false, err
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return db.PingContext(ctx) == nil, nil
}

func scriptPostgres(ts *testscript.TestScript, _ bool, _ []string) {
	db, err := sql.Open("pgx", postgresServer())
	ts.Check(err)
	schema := fmt.Sprintf("sqsfifo_%d_%x", os.Getpid(), rand.Uint64())
	_, err = db.Exec("CREATE SCHEMA " + schema)
	ts.Check(err)
	ts.Defer(func() {
		if _, err := db.Exec("DROP SCHEMA " + schema + " CASCADE"); err != nil {
			ts.Logf("drop the schema: %v", err)
		}
		db.Close()
	})
	u, err := url.Parse(postgresServer())
	ts.Check(err)
	q := u.Query()
	q.Set("search_path", schema)
	u.RawQuery = q.Encode()
	ts.Setenv("POSTGRES", u.String())
}
