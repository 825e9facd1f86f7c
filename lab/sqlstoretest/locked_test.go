package sqlstoretest

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/sqlstore"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

type reading struct{ Station string }

// If another process has locked the SQLite file of a producer, the producer's error and
// log contain the database's own message.
func TestLockedFileInTheWordsOfTheDatabase(t *testing.T) {
	d := newSQLite(t)
	d.source = strings.Replace(d.source, "busy_timeout(30000)", "busy_timeout(1000)", 1)
	store := d.store(t, sqlstore.Config{})
	q, err := sqstest.NewQueue(sqstest.Config{})
	must(t, err)
	other := d.open(t)
	connection, err := other.Conn(t.Context())
	must(t, err)
	_, err = connection.ExecContext(t.Context(), "BEGIN IMMEDIATE")
	must(t, err)

	var log strings.Builder
	c := sqsfifo.Config[reading]{
		QueueURL: q.URL(), Source: "kfm.climate.stations",
		Identify: func(r reading) (sqsfifo.Identity, error) {
			return sqsfifo.Identity{DedupeKey: r.Station, Group: r.Station, Time: time.Unix(1, 0)}, nil
		},
	}
	c.Store.Store, c.Store.Timeout, c.Delivery.StartFor = store, 500*time.Millisecond, 3*time.Second
	c.Telemetry.Logger = slog.New(slog.NewTextHandler(&log, nil))
	p, err := sqsfifo.NewProducer(q, c)
	must(t, err)
	_, err = p.Send(t.Context(), reading{"KTOP"})
	if err == nil || !strings.Contains(err.Error(), "database is locked") {
		t.Errorf("the error has not the words of the database: %v", err)
	}

	t.Log(err)
	_, err = connection.ExecContext(t.Context(), "ROLLBACK")
	must(t, err)
	_, err = p.Send(t.Context(), reading{"KTOP"})
	must(t, err)
	must(t, p.Close(context.Background()))
	if !strings.Contains(log.String(), "none has been answered yet") {
		t.Errorf("the log has no record of the fault:\n%s", log.String())
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
