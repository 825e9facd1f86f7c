// Command outbox stores events in the transaction that makes them true and sends
// them later: package outbox on SQLite, with a fake queue in this process.
//
// A program that writes to its database and then sends a message can die between the
// two. Here there is an event if and only if its transaction committed, and each one is
// in the queue exactly once, in the order of its group, wherever the process is
// killed. A test kills it fifty times (crash_test.go). Package outbox says how, and
// where that ends.
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
	"github.com/kansas-frontier-matrix/sqsfifo/outbox"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// Scene is what the pipeline stores and announces.
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
	box, err := outbox.Open(ctx, outbox.Config{DB: db, Dialect: outbox.SQLite})
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
		if err := announce(ctx, db, box, producer, s); err != nil {
			return err
		}
	}
	fmt.Fprintf(w, "%d scenes are stored, each with its event; the queue has %d messages\n", len(scenes), len(queue.Messages()))

	if err := announce(ctx, db, box, producer, scenes[0]); err == nil {
		return errors.New("a scene was stored twice")
	}
	stats, err := box.Stats(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "a transaction that fails leaves no event: %d are in the outbox\n", stats.Messages)

	err = relay(ctx, box, deaf{producer}, func() (bool, error) { return len(queue.Messages()) == 2, nil })
	if err != nil {
		return err
	}
	if stats, err = box.Stats(ctx); err != nil {
		return err
	}
	fmt.Fprintf(w, "the relay dies after a send in each group: the queue has %d messages, the outbox still %d\n", len(queue.Messages()), stats.Messages)

	if err := relay(ctx, box, producer, isEmpty(ctx, box)); err != nil {
		return err
	}
	fmt.Fprintf(w, "the next one sends all %d; SQS knows %d of them and has %d messages\n", len(scenes), len(queue.Suppressed()), len(queue.Messages()))
	return nil
}

// relay sends what the outbox holds until done says so. A service has no done: its
// relay runs as long as the process.
func relay(ctx context.Context, box *outbox.Outbox, sender outbox.Sender, done func() (bool, error)) error {
	r, err := outbox.NewRelay(box, outbox.RelayConfig{Sender: sender})
	if err != nil {
		return err
	}
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- r.Run(running) }()
	for {
		switch ok, err := done(); {
		case err != nil || ok:
			cancel()
			<-ended
			return err
		}
		select {
		case err := <-ended:
			return err
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// isEmpty reports whether everything was sent.
func isEmpty(ctx context.Context, box *outbox.Outbox) func() (bool, error) {
	return func() (bool, error) {
		stats, err := box.Stats(ctx)
		return stats.Messages == 0, err
	}
}

// open opens a database with the tables of the program and of the outbox. FULL makes
// each commit survive a power failure.
func open(ctx context.Context, path string) (*sql.DB, error) {
	options := url.Values{"_txlock": {"immediate"}, "_pragma": {"journal_mode(WAL)", "synchronous(FULL)", "busy_timeout(10000)"}}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Opaque: url.PathEscape(path), RawQuery: options.Encode()}).String())
	if err != nil {
		return nil, err
	}
	_, err = db.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS scenes (id TEXT PRIMARY KEY, path_row TEXT NOT NULL, acquired TEXT NOT NULL)`)
	if err == nil {
		err = outbox.Migrate(ctx, db, outbox.SQLite)
	}
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
func announce(ctx context.Context, db *sql.DB, box *outbox.Outbox, producer *sqsfifo.Producer[Scene], s Scene) error {
	msg, err := producer.Build(s)
	if err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
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

// deaf is a producer that never hears SQS's answer, because the process dies.
type deaf struct{ outbox.Sender }

func (d deaf) SendMessageAsync(ctx context.Context, msg *sqsfifo.Message, done func(sqsfifo.Receipt, error)) {
	key := msg.DedupeKey
	d.Sender.SendMessageAsync(ctx, msg, func(receipt sqsfifo.Receipt, err error) {
		if err != nil {
			done(receipt, err)
			return
		}
		context.AfterFunc(ctx, func() {
			done(sqsfifo.Receipt{}, &sqsfifo.InDoubtError{DedupeKey: key, Attempts: 1, Err: context.Cause(ctx)})
		})
	})
}

var scenes = []Scene{
	{"LC08_L2SP_047027_20201204_20210313_02_T1", "047027", time.Date(2020, 12, 4, 19, 2, 11, 194_000_000, time.UTC)},
	{"LC08_L2SP_028033_20210602_20210608_02_T1", "028033", time.Date(2021, 6, 2, 17, 2, 40, 0, time.UTC)},
	{"LC08_L2SP_047027_20201220_20210310_02_T1", "047027", time.Date(2020, 12, 20, 19, 2, 7, 0, time.UTC)},
	{"LC09_L2SP_028033_20220613_20230411_02_T1", "028033", time.Date(2022, 6, 13, 17, 3, 1, 0, time.UTC)},
	{"LC09_L2SP_028033_20220629_20230408_02_T1", "028033", time.Date(2022, 6, 29, 17, 3, 9, 0, time.UTC)},
}
