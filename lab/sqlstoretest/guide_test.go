package sqlstoretest

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/sqlstore"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// Export is an event of the guide: the export of a day is ready.
type Export struct {
	Day time.Time `json:"day"`
}

// exports holds a producer, its store and its database.
type exports struct {
	db       *sql.DB
	store    *sqlstore.Store
	producer *sqsfifo.Producer[Export]
}

func openExports(ctx context.Context, client sqsfifo.Client, queueURL, file string) (*exports, error) {
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(10000)")
	if err != nil {
		return nil, err
	}
	if err := sqlstore.Migrate(ctx, db, sqlstore.SQLite); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	store, err := sqlstore.Open(ctx, sqlstore.Config{DB: db, Dialect: sqlstore.SQLite})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	producer, err := sqsfifo.NewProducer(client, sqsfifo.Config[Export]{
		QueueURL: queueURL, Organization: "acme", Source: "acme.billing.export",
		Identify: func(e Export) (sqsfifo.Identity, error) {
			key, err := sqsfifo.JoinKey("export", e.Day.Format(time.DateOnly))
			return sqsfifo.Identity{DedupeKey: key, Group: "exports", Time: e.Day}, err
		},
		Store: sqsfifo.StoreConfig{Store: store, TTL: 30 * 24 * time.Hour},
	})
	if err != nil {
		return nil, errors.Join(err, store.Close(), db.Close())
	}
	return &exports{db, store, producer}, nil
}

// close ends the producer first, because the producer writes its last results to the store.
func (e *exports) close(limit context.Context) error {
	return errors.Join(e.producer.Close(limit), e.store.Close(), e.db.Close())
}

// If a second process repeats an export ten minutes later, its Send returns the first
// process's receipt, as a duplicate, and sends no message.
func TestExportsOfTheGuide(t *testing.T) {
	queue, err := sqstest.NewQueue(sqstest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "exports.db")
	var receipts []sqsfifo.Receipt
	for range 2 {
		e, err := openExports(t.Context(), queue, queue.URL(), file)
		if err != nil {
			t.Fatal(err)
		}
		receipt, err := e.producer.Send(t.Context(), Export{time.Date(2025, 12, 4, 0, 0, 0, 0, time.UTC)})
		if err != nil {
			t.Fatal(err)
		}
		receipts = append(receipts, receipt)
		if err := e.close(t.Context()); err != nil {
			t.Fatal(err)
		}
		queue.Advance(10 * time.Minute)
	}
	if receipts[0].Duplicate || !receipts[1].Duplicate || receipts[1].MessageID != receipts[0].MessageID || len(queue.Messages()) != 1 {
		t.Errorf("%d messages, receipts %+v", len(queue.Messages()), receipts)
	}
}
