package outboxtest

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/outbox"
)

// Order is a purchase of a customer.
type Order struct {
	ID       string    `json:"id"`
	Customer string    `json:"customer"`
	Cents    int64     `json:"cents"`
	Placed   time.Time `json:"placed"`
}

// shop is the service of the guide docs/guide/outbox.md. It stores orders and sends an
// event for each.
type shop struct {
	db       *sql.DB
	box      *outbox.Outbox
	producer *sqsfifo.Producer[Order]
	relay    *outbox.Relay
}

func openShop(ctx context.Context, source string, client sqsfifo.Client, queueURL string) (*shop, error) {
	db, err := sql.Open("pgx", source) // import _ "github.com/jackc/pgx/v5/stdlib"
	if err != nil {
		return nil, err
	}
	if err := outbox.Migrate(ctx, db, outbox.PostgreSQL); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	box, err := outbox.Open(ctx, outbox.Config{DB: db, Dialect: outbox.PostgreSQL})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	producer, err := sqsfifo.NewProducer(client, sqsfifo.Config[Order]{
		QueueURL: queueURL, Organization: "acme", Source: "acme.shop.orders",
		Identify: func(o Order) (sqsfifo.Identity, error) {
			key, err := sqsfifo.JoinKey("order", o.ID)
			return sqsfifo.Identity{DedupeKey: key, Group: o.Customer, Time: o.Placed}, err
		},
	})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	relay, err := outbox.NewRelay(box, outbox.RelayConfig{Sender: producer, Logger: slog.Default()})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &shop{db, box, producer, relay}, nil
}

// place stores the order and its message, or neither.
func (s *shop) place(ctx context.Context, o Order) error {
	msg, err := s.producer.Build(o)
	if err != nil {
		return err // Build refused the order; nothing is stored
	}
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, `INSERT INTO orders VALUES ($1, $2, $3)`, o.ID, o.Customer, o.Cents); err != nil {
		return err
	}
	if err := s.box.Add(ctx, tx, msg); err != nil { // last: Add locks the message group until the commit
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	s.relay.Wake() // without Wake, the relay finds the message up to 200 ms later
	return nil
}

// close ends the relay before the producer, because the relay sends with the producer.
func (s *shop) close(limit context.Context) error {
	return errors.Join(s.relay.Close(limit), s.producer.Close(limit), s.db.Close())
}

// Each stored order leads to one message, and a rolled back order to no message.
func TestOrdersOfTheGuide(t *testing.T) {
	d := newPostgreSQL(t)
	queue := newQueue(t)
	ctx := t.Context()
	s, err := openShop(ctx, d.source, queue, queue.URL())
	require.NoError(t, err)
	_, err = s.db.ExecContext(ctx, `CREATE TABLE orders (id text PRIMARY KEY, customer text, cents bigint)`)
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- s.relay.Run(ctx) }()

	order := Order{"o-1", "ada", 1999, time.Date(2025, 12, 4, 12, 0, 0, 0, time.UTC)}
	require.NoError(t, s.place(ctx, order))
	require.Error(t, s.place(ctx, order), "the order exists")
	order.ID = "o-2"
	require.NoError(t, s.place(ctx, order))
	eventually(t, "the outbox is empty", empty(t, s.box))
	require.NoError(t, s.close(ctx))
	require.NoError(t, <-ended)

	var ids []string
	for _, m := range queue.Messages() {
		e, err := sqsfifo.DecodeEnvelope[Order](m.Body)
		require.NoError(t, err)
		ids = append(ids, e.Payload.ID)
	}
	assert.Equal(t, []string{"o-1", "o-2"}, ids)
}
