// Package outbox stores Landsat scenes in a database, and the event of each scene in the
// same transaction. A relay later sends the events to a fake queue in this process.
//
// A program can die after the commit to its database and before the send. With an outbox,
// an event exists if and only if its transaction committed. Each event enters the queue
// exactly once, in group order, even if the process is killed.
//
// This package imports no database driver. Folder lab/outboxexample runs the example on
// SQLite, and a test there kills the relay fifty times.
package outbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/outbox"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// Scene is a satellite image. The program stores a scene and announces it with an event.
type Scene struct {
	ID       string    `json:"id"`
	PathRow  string    `json:"path_row"`
	Acquired time.Time `json:"acquired"`
}

// Run stores five scenes in db, with their events, and sends the events. The first relay
// dies halfway. Run prints each step to w.
func Run(ctx context.Context, db *sql.DB, w io.Writer) (err error) {
	box, err := outbox.Open(ctx, outbox.Config{DB: db, Dialect: outbox.SQLite})
	if err != nil {
		return err
	}
	queue, err := sqstest.NewQueue(sqstest.Config{Name: "scenes.fifo"})
	if err != nil {
		return err
	}
	producer, err := NewProducer(queue, queue.URL())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, producer.Close(ctx)) }()

	for _, s := range scenes {
		if err := Announce(ctx, db, box, producer, s); err != nil {
			return err
		}
	}
	fmt.Fprintf(w, "%d scenes are stored, each with its event; the queue has %d messages\n", len(scenes), len(queue.Messages()))

	if err := Announce(ctx, db, box, producer, scenes[0]); err == nil {
		return errors.New("a scene was stored twice")
	}
	stats, err := box.Stats(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "a transaction that fails leaves no event: %d are in the outbox\n", stats.Messages)

	err = Relay(ctx, box, deaf{producer}, func() (bool, error) { return len(queue.Messages()) == 2, nil })
	if err != nil {
		return err
	}
	if stats, err = box.Stats(ctx); err != nil {
		return err
	}
	fmt.Fprintf(w, "the relay dies after a send in each group: the queue has %d messages, the outbox still %d\n", len(queue.Messages()), stats.Messages)

	if err := Relay(ctx, box, producer, IsEmpty(ctx, box)); err != nil {
		return err
	}
	fmt.Fprintf(w, "the next one sends all %d; SQS knows %d of them and has %d messages\n", len(scenes), len(queue.Suppressed()), len(queue.Messages()))
	return nil
}

// Relay sends the messages of the outbox until the function `done` returns true or an
// error, or until ctx ends. Only the example needs Relay: the relay of a service runs until
// the process ends.
func Relay(ctx context.Context, box *outbox.Outbox, sender outbox.Sender, done func() (bool, error)) error {
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

// IsEmpty returns a function that reports whether the outbox is empty.
func IsEmpty(ctx context.Context, box *outbox.Outbox) func() (bool, error) {
	return func() (bool, error) {
		stats, err := box.Stats(ctx)
		return stats.Messages == 0, err
	}
}

// Migrate creates the program's table and the outbox's tables in a SQLite database.
func Migrate(ctx context.Context, db *sql.DB) error {
	_, err := db.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS scenes (id TEXT PRIMARY KEY, path_row TEXT NOT NULL, acquired TEXT NOT NULL)`)
	if err != nil {
		return err
	}
	return outbox.Migrate(ctx, db, outbox.SQLite)
}

// NewProducer returns a producer of scenes. The dedupe key is the scene's ID, and the
// message group is its path and row.
func NewProducer(client sqsfifo.Client, queueURL string) (*sqsfifo.Producer[Scene], error) {
	//sqsfifo:ignore SF020 -- this package has no tests; lab/outboxexample tests the producer with a database
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

// Announce stores a scene and its event in one transaction: both or neither.
func Announce(ctx context.Context, db *sql.DB, box *outbox.Outbox, producer *sqsfifo.Producer[Scene], s Scene) error {
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

// deaf is a producer that dies before it reads SQS's answer.
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
