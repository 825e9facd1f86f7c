// Command outbox stores events in the transaction that makes them true and sends
// them later: a transactional outbox, on SQLite and a fake queue in this process.
//
// Problem: a program that writes to its database and then sends a message can die
// between the two. The scene is stored and nobody hears of it, or, the other way
// round, everybody hears of a scene that was rolled back. Storing the message in
// the same transaction mends that, but then it is sent again after a crash: if it
// is built anew by then, with another clock or another release of the program, SQS
// takes it for another event and delivers both.
//
// Guarantee: there is an event if and only if its transaction committed. What
// Build returned is stored and sent byte for byte, body and attributes, so that SQS
// recognises a resend; each event is in the queue exactly once and in the order of
// its group, wherever the process is killed, as long as the outbox is drained
// again within four and a half minutes. A test kills it fifty times
// (crash_test.go).
//
// Limits: SQS remembers for five minutes. When nobody drained for longer, a message
// that was under way in the crash may be stored or not, and nothing can tell: the
// row knows the time of its first attempt, and Drain stops its group with a
// LateError or, with ResendLate, sends it again, which is at least once. Consumers
// that must not act twice remember dedupe keys for longer than SQS does. Messages
// that were never tried are never late. The clock of the machine must not be set
// back meanwhile. One process drains at a time. With a database that has several
// writers at once, numbers are given out before the commit: there, transactions
// that write events of one group have to take a lock of that group first.
//
//	outbox             in a database that is deleted afterwards
//	outbox events.db   in this one
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// Scene is what the pipeline stores and tells of.
type Scene struct {
	ID       string    `json:"id"`
	PathRow  string    `json:"path_row"`
	Acquired time.Time `json:"acquired"`
}

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, w io.Writer) (err error) {
	var path string
	if len(args) > 0 {
		path = args[0]
	} else {
		folder, err := os.MkdirTemp("", "outbox")
		if err != nil {
			return err
		}
		defer os.RemoveAll(folder)
		path = filepath.Join(folder, "events.db")
	}
	db, err := open(ctx, path)
	if err != nil {
		return err
	}
	defer db.Close()
	box, err := New(ctx, db)
	if err != nil {
		return err
	}
	queue, err := sqstest.NewQueue(sqstest.Config{Name: "scenes.fifo"})
	if err != nil {
		return err
	}
	producer, err := newProducer(queue, queue.URL())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, producer.Close(ctx)) }()

	for _, s := range scenes {
		if err := announce(ctx, box, producer, s); err != nil {
			return err
		}
	}
	fmt.Fprintf(w, "%d scenes are stored, each with its event; the queue has %d messages\n", len(scenes), len(queue.Messages()))

	if err := announce(ctx, box, producer, scenes[0]); err == nil {
		return errors.New("a scene was stored twice")
	}
	n, err := box.Len(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "a transaction that fails leaves no event: %d are in the outbox\n", n)

	if _, err := box.Drain(ctx, crash{producer}); err == nil {
		return errors.New("the drain did not crash")
	}
	if n, err = box.Len(ctx); err != nil {
		return err
	}
	fmt.Fprintf(w, "the drain dies after a send in each group: the queue has %d messages, the outbox still %d\n", len(queue.Messages()), n)

	drained, err := box.Drain(ctx, producer)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "the next one sends all %d; SQS knows %d of them and has %d messages\n", drained.Sent, len(queue.Suppressed()), len(queue.Messages()))
	return nil
}

// open opens a database. FULL makes each commit survive a power failure, too.
func open(ctx context.Context, path string) (*sql.DB, error) {
	options := url.Values{"_pragma": {"journal_mode(WAL)", "synchronous(FULL)", "busy_timeout(10000)"}}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Opaque: url.PathEscape(path), RawQuery: options.Encode()}).String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1) // SQLite has one writer; others would only wait
	_, err = db.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS scenes (id TEXT PRIMARY KEY, path_row TEXT NOT NULL, acquired TEXT NOT NULL)`)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

func newProducer(client sqsfifo.Client, queueURL string) (*sqsfifo.Producer[Scene], error) {
	return sqsfifo.NewProducer(client, sqsfifo.Config[Scene]{
		QueueURL: queueURL,
		Source:   "kfm.remote-sensing.landsat-refresh",
		Identify: func(s Scene) (sqsfifo.Identity, error) {
			key, err := sqsfifo.JoinKey("landsat", s.ID)
			return sqsfifo.Identity{DedupeKey: key, Group: s.PathRow, Time: s.Acquired}, err
		},
		Attributes: func(s Scene) map[string]string { return map[string]string{"path_row": s.PathRow} },
	})
}

// announce stores a scene and its event, or neither.
func announce(ctx context.Context, box *Outbox, producer *sqsfifo.Producer[Scene], s Scene) error {
	msg, err := producer.Build(s)
	if err != nil {
		return err
	}
	tx, err := box.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	_, err = tx.ExecContext(ctx, `INSERT INTO scenes VALUES (?, ?, ?)`, s.ID, s.PathRow, s.Acquired.Format(time.RFC3339Nano))
	if err != nil {
		return err
	}
	if err := box.Add(ctx, tx, msg); err != nil {
		return err
	}
	return tx.Commit()
}

// crash is a producer that dies when SQS has stored the message and nobody has
// noted it yet.
type crash struct{ Sender }

func (c crash) SendMessage(ctx context.Context, msg *sqsfifo.Message) (sqsfifo.Receipt, error) {
	if _, err := c.Sender.SendMessage(ctx, msg); err != nil {
		return sqsfifo.Receipt{}, err
	}
	return sqsfifo.Receipt{}, &sqsfifo.InDoubtError{DedupeKey: msg.DedupeKey, Attempts: 1, Err: errors.New("the process died")}
}

var scenes = []Scene{
	{"LC08_L2SP_047027_20201204_20210313_02_T1", "047027", time.Date(2020, 12, 4, 19, 2, 11, 194_000_000, time.UTC)},
	{"LC08_L2SP_028033_20210602_20210608_02_T1", "028033", time.Date(2021, 6, 2, 17, 2, 40, 0, time.UTC)},
	{"LC08_L2SP_047027_20201220_20210310_02_T1", "047027", time.Date(2020, 12, 20, 19, 2, 7, 0, time.UTC)},
	{"LC09_L2SP_028033_20220613_20230411_02_T1", "028033", time.Date(2022, 6, 13, 17, 3, 1, 0, time.UTC)},
	{"LC09_L2SP_028033_20220629_20230408_02_T1", "028033", time.Date(2022, 6, 29, 17, 3, 9, 0, time.UTC)},
}
