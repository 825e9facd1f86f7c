package outboxtest

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/outbox"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

var throughputEvents = flag.Int("throughput.events", 3000, "events of TestThroughput")

const latency = 5 * time.Millisecond

// slowQueue returns a queue that delays each answer by the constant `latency`.
func slowQueue(t testing.TB) *sqstest.Queue {
	q := newQueue(t)
	q.InjectRandomly(sqstest.DelayAnswer(latency), 1, 1)
	return q
}

// The relay sends at least ten times as many messages a second as a simple hand-written
// relay: read the oldest row, send it, delete it.
func TestThroughput(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		const groups = 200
		byHand := d.handWritten(t, *throughputEvents/20, groups)
		rate, share, commits := d.relay(t, *throughputEvents, groups)
		t.Logf("%d groups, %v latency: one row at a time %.0f/s, the relay %.0f/s, which is %.0f times as fast; %.0f%% of the time in the database, %d commits",
			groups, latency, byHand, rate, rate/byHand, 100*share, commits)
		if rate < 10*byHand {
			t.Errorf("the relay is %.1f times as fast as a hand-written one, want 10", rate/byHand)
		}
	})
}

func (d database) relay(t *testing.T, events, groups int) (rate, share float64, commits int64) {
	box, db := d.box(t)
	for i := 0; i < events; i += 1000 {
		var msgs []*sqsfifo.Message
		for j := i; j < min(i+1000, events); j++ {
			msgs = append(msgs, build(t, fmt.Sprint("event-", j), fmt.Sprint("group-", j%groups)))
		}
		add(t, box, db, msgs...)
	}
	q := slowQueue(t)
	client := func(c *sqsfifo.Config[Event]) { c.Delivery.InFlight = 32 }
	producer := newProducer(t, q, q.URL(), client)
	r, err := outbox.NewRelay(box, outbox.RelayConfig{Sender: producer})
	require.NoError(t, err)
	begin := time.Now()
	go func() { _ = r.Run(context.Background()) }()
	for r.Stats().Sent < int64(events) {
		time.Sleep(time.Millisecond)
	}
	took := time.Since(begin)
	require.NoError(t, r.Close(context.Background()))
	require.True(t, empty(t, box)())
	require.Len(t, q.Messages(), events)
	s := r.Stats()
	return float64(events) / took.Seconds(), s.Database.Seconds() / took.Seconds(), s.Commits
}

func (d database) handWritten(t *testing.T, events, groups int) float64 {
	db := d.open(t)
	key := "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
	if d.dialect == outbox.SQLite {
		key = "INTEGER PRIMARY KEY"
	}
	_, err := db.Exec(`CREATE TABLE by_hand (id ` + key + `, message_group TEXT NOT NULL, body TEXT NOT NULL)`)
	require.NoError(t, err)
	tx, err := db.Begin()
	require.NoError(t, err)
	for i := range events {
		m := build(t, fmt.Sprint("event-", i), fmt.Sprint("group-", i%groups))
		_, err := tx.Exec(`INSERT INTO by_hand (message_group, body) VALUES ($1, $2)`, m.Group, m.Body)
		require.NoError(t, err)
	}
	require.NoError(t, tx.Commit())
	q := slowQueue(t)
	begin := time.Now()
	for {
		var id int64
		var group, body string
		err := db.QueryRow(`SELECT id, message_group, body FROM by_hand ORDER BY id LIMIT 1`).Scan(&id, &group, &body)
		if err == sql.ErrNoRows {
			break
		}
		require.NoError(t, err)
		_, err = q.SendMessage(t.Context(), &sqs.SendMessageInput{
			QueueUrl: aws.String(q.URL()), MessageGroupId: &group, MessageBody: &body,
			MessageAttributes: map[string]types.MessageAttributeValue{},
		})
		require.NoError(t, err)
		_, err = db.Exec(`DELETE FROM by_hand WHERE id = $1`, id)
		require.NoError(t, err)
	}
	took := time.Since(begin)
	require.Len(t, q.Messages(), events)
	return float64(events) / took.Seconds()
}
