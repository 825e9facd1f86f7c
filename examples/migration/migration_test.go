package migration_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/consumer"
	"github.com/kansas-frontier-matrix/sqsfifo/examples/migration"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest/compliance"
)

// sender sends one order with the producer of a step.
type sender func(ctx context.Context, o migration.Order) error

// step is a step of the migration: the producer (sender) and the consumers' decoder.
type step struct {
	name   string
	sender func(t *testing.T, q *sqstest.Queue) sender
	decode func(string) (sqsfifo.Envelope[migration.Order], error)
}

func legacy(_ *testing.T, q *sqstest.Queue) sender {
	return func(ctx context.Context, o migration.Order) error { return migration.SendLegacy(ctx, q, q.URL(), o) }
}

// legacyBodies returns a function that sends legacy bodies with the new producer. Each
// receipt must have findings, because a legacy body breaks rules.
func legacyBodies(t *testing.T, q *sqstest.Queue) sender {
	p := newProducer(t, q, sqsfifo.EnforcementWarn)
	return func(ctx context.Context, o migration.Order) error {
		receipt, err := migration.SendLegacyWith(ctx, p, o)
		if err == nil && len(receipt.Findings) == 0 {
			return errors.New("the legacy body has no findings")
		}
		return err
	}
}

// envelopes returns a function that sends envelopes with the new producer. The receipts
// must have no findings.
func envelopes(enforcement sqsfifo.Enforcement) func(*testing.T, *sqstest.Queue) sender {
	return func(t *testing.T, q *sqstest.Queue) sender {
		p := newProducer(t, q, enforcement)
		return func(ctx context.Context, o migration.Order) error {
			receipt, err := p.Send(ctx, o)
			if len(receipt.Findings) > 0 {
				return fmt.Errorf("findings: %v", receipt.Findings)
			}
			return err
		}
	}
}

func newProducer(t *testing.T, q *sqstest.Queue, enforcement sqsfifo.Enforcement) *sqsfifo.Producer[migration.Order] {
	p, err := migration.NewProducer(q, q.URL(), enforcement)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, p.Close(context.Background())) })
	return p
}

var steps = []step{
	{"1 legacy", legacy, migration.DecodeLegacy},
	{"2 dual reading", legacy, migration.DecodeBoth},
	{"3 new producer, legacy body, Warn", legacyBodies, migration.DecodeBoth},
	{"4 new producer, envelope, Warn", envelopes(sqsfifo.EnforcementWarn), migration.DecodeBoth},
	{"5 new producer, envelope, Enforce", envelopes(sqsfifo.EnforcementRefuse), migration.DecodeBoth},
	{"5 envelope alone", envelopes(sqsfifo.EnforcementRefuse), sqsfifo.DecodeEnvelope[migration.Order]},
}

const (
	ordersPerStep = 30
	resent        = 4 // number of a step's last orders, sent again in the next step
)

// The migration goes forward and back through its steps. In each step, some answers of SQS
// are lost, and the last orders of the previous step are sent again. Every event is handled
// exactly once.
func TestNoEventIsLostOrDoubledAtAnyStep(t *testing.T) {
	// The steps in the order 1, 2, 3, 4, 5, 4, 3, 2, 3, 4, 5, 6.
	way := append(slices.Clone(steps[:5]), steps[3], steps[2], steps[1])
	way = append(way, steps[2:]...)
	q, err := sqstest.NewQueue(sqstest.Config{})
	require.NoError(t, err)
	handled := map[string]int{}
	store := &idempotency.Memory{}
	n := 0
	var before []migration.Order
	for i, s := range way {
		t.Run(fmt.Sprint(i+1, ": step ", s.name), func(t *testing.T) {
			send := s.sender(t, q)
			orders := slices.Clone(before)
			for range ordersPerStep {
				n++
				orders = append(orders, migration.Order{ID: fmt.Sprint(n), Customer: fmt.Sprint("customer-", n%5), Placed: time.Date(2025, 12, 4, 12, 0, n, 0, time.UTC)})
			}
			stored, suppressed := len(q.Messages()), len(q.Suppressed())
			for j, o := range orders {
				if j%7 == 3 {
					q.Inject(sqstest.LoseAnswer(), 1)
				}
				require.NoError(t, send(t.Context(), o))
			}
			before = orders[len(orders)-resent:]

			c, err := consumer.New(q, consumer.Config[migration.Order]{
				QueueURL: q.URL(), Decode: s.decode, Store: store, Failure: consumer.Failure{Action: consumer.ActionBlock},
				Handle: func(_ context.Context, m consumer.Message[migration.Order]) error {
					handled[m.DedupeKey]++
					return nil
				},
			})
			require.NoError(t, err)
			deliveries := drain(t, q, c)
			require.Len(t, handled, n, "no event is lost")
			for key, times := range handled {
				require.Equal(t, 1, times, "%s is handled once", key)
			}
			t.Logf("%d sends, %d retries and resends suppressed by SQS, %d messages delivered, %d new events handled once, %d copies recognised by their key",
				len(orders), len(q.Suppressed())-suppressed, deliveries, ordersPerStep, deliveries-ordersPerStep)
			assert.Equal(t, len(q.Messages())-stored, deliveries)
		})
	}
}

// drain handles the messages of the queue, deletes each one and returns their number.
func drain(t *testing.T, q *sqstest.Queue, c *consumer.Consumer[migration.Order]) (n int) {
	t.Helper()
	for ; ; n++ {
		out, err := q.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String(q.URL())})
		require.NoError(t, err)
		if len(out.Messages) == 0 {
			return n
		}
		require.NoError(t, c.Attempt(t.Context(), out.Messages[0]))
		_, err = q.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: aws.String(q.URL()), ReceiptHandle: out.Messages[0].ReceiptHandle})
		require.NoError(t, err)
	}
}

// A new release adds a field to the payload. The old and the new release send the same
// order, and SQS stores two messages with one dedupe key. If both use the same
// [sqsfifo.Queue], the second send fails.
func TestAFieldMoreIsAnotherBody(t *testing.T) {
	type orderV2 struct {
		migration.Order
		Currency string `json:"currency"`
	}
	q, err := sqstest.NewQueue(sqstest.Config{})
	require.NoError(t, err)
	o := migration.Order{ID: "17", Customer: "ada", Placed: time.Date(2025, 12, 4, 12, 0, 0, 0, time.UTC)}
	identify := func(o orderV2) (sqsfifo.Identity, error) {
		key, err := sqsfifo.JoinKey("order", o.ID)
		return sqsfifo.Identity{DedupeKey: key, Group: o.Customer, Time: o.Placed}, err
	}

	old := newProducer(t, q, sqsfifo.EnforcementRefuse)
	_, err = old.Send(t.Context(), o)
	require.NoError(t, err)
	next, err := sqsfifo.NewProducer(q, sqsfifo.Config[orderV2]{QueueURL: q.URL(), Source: "kfm.shop.orders", Identify: identify})
	require.NoError(t, err)
	receipt, err := next.Send(t.Context(), orderV2{o, "EUR"})
	require.NoError(t, err)
	assert.False(t, receipt.Duplicate)
	messages := q.Messages()
	require.Len(t, messages, 2, "SQS takes them for two events")
	first, err := sqsfifo.DecodeEnvelope[migration.Order](messages[0].Body)
	require.NoError(t, err)
	second, err := sqsfifo.DecodeEnvelope[migration.Order](messages[1].Body)
	require.NoError(t, err)
	assert.Equal(t, first.DedupeKey, second.DedupeKey)
	assert.Equal(t, first.EventID, second.EventID)

	same, err := sqsfifo.NewProducerOn(old.Queue(), sqsfifo.Config[orderV2]{Source: "kfm.shop.orders", Identify: identify})
	require.NoError(t, err)
	_, err = same.Send(t.Context(), orderV2{o, "EUR"})
	var conflict *sqsfifo.ConflictError
	require.ErrorAs(t, err, &conflict)
}

func TestCompliance(t *testing.T) {
	at := time.Date(2025, 12, 4, 12, 0, 0, 0, time.UTC)
	compliance.TestProducer(t, compliance.Suite[migration.Order]{
		Send: func(ctx context.Context, client *sqs.Client, queueURL string, o migration.Order) error {
			producer, err := migration.NewProducer(client, queueURL, sqsfifo.EnforcementRefuse)
			if err != nil {
				return err
			}
			defer producer.Close(ctx)
			_, err = producer.Send(ctx, o)
			return err
		},
		Events: []migration.Order{{ID: "1", Customer: "ada", Placed: at}, {ID: "2", Customer: "ada", Placed: at}, {ID: "3", Customer: "bob", Placed: at}},
	})
}
