package consumer_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/examples/consumer"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// Order is an order of a shop.
type Order struct {
	ID       string    `json:"id"`
	Customer string    `json:"customer"`
	Placed   time.Time `json:"placed"`
}

func identify(o Order) (sqsfifo.Identity, error) {
	key, err := sqsfifo.JoinKey("order", o.ID)
	return sqsfifo.Identity{DedupeKey: key, Group: o.Customer, Time: o.Placed}, err
}

func order(id, customer string) Order {
	return Order{ID: id, Customer: customer, Placed: time.Date(2025, 12, 4, 12, 0, 0, 0, time.UTC)}
}

// shop is a queue with a producer, a consumer and the order in which events were
// handled.
type shop struct {
	queue    *sqstest.Queue
	producer *sqsfifo.Producer[Order]
	consumer consumer.Consumer[Order]
	handled  []string
	fail     map[string]int // how often the handler of an order still fails
	trace    trace.TraceID  // of the last handler's context
}

func newShop(t *testing.T, config sqstest.Config) *shop {
	t.Helper()
	queue, err := sqstest.NewQueue(config)
	require.NoError(t, err)
	s := &shop{queue: queue, fail: map[string]int{}}
	//sqsfifo:ignore SF020 -- the package under test is a consumer
	s.producer, err = sqsfifo.NewProducer(queue, sqsfifo.Config[Order]{
		QueueURL: queue.URL(), Source: "kfm.shop.orders", Identify: identify,
		Telemetry: sqsfifo.Telemetry{TracerProvider: sdktrace.NewTracerProvider(), Propagator: propagation.TraceContext{}},
	})
	require.NoError(t, err)
	memory := &consumer.Memory{}
	s.consumer = consumer.Consumer[Order]{
		Client: queue, QueueURL: queue.URL(), Decode: sqsfifo.DecodeEnvelope[Order], Once: memory.Once,
		Handle: func(ctx context.Context, e sqsfifo.Envelope[Order]) error {
			s.trace = trace.SpanContextFromContext(ctx).TraceID()
			if s.fail[e.Payload.ID] > 0 {
				s.fail[e.Payload.ID]--
				return errors.New("the database is down")
			}
			s.handled = append(s.handled, e.Payload.ID)
			return nil
		},
	}
	return s
}

func (s *shop) send(t *testing.T, orders ...Order) {
	t.Helper()
	require.NoError(t, s.producer.SendBatch(t.Context(), orders).Err())
}

// An event that is stored twice, because it is sent again after the deduplication
// interval, is handled once, and both copies are deleted.
func TestAnEventThatIsStoredTwiceIsHandledOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, sqstest.Config{})
		for range 2 {
			s.send(t, order("17", "ada"))
			require.NoError(t, s.consumer.Poll(t.Context()))
			time.Sleep(6 * time.Minute)
		}
		assert.Len(t, s.queue.Messages(), 2)
		assert.Equal(t, []string{"17"}, s.handled)
		out, err := s.queue.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String(s.queue.URL())})
		require.NoError(t, err)
		assert.Empty(t, out.Messages)
	})
}

// A handler that fails holds its own group back, in order, and no other.
func TestAFailureHoldsItsGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, sqstest.Config{})
		s.send(t, order("1", "ada"), order("2", "ada"), order("3", "bob"))
		s.fail["1"] = 1
		require.ErrorContains(t, s.consumer.Poll(t.Context()), "the database is down")
		require.NoError(t, s.consumer.Poll(t.Context()))
		require.NoError(t, s.consumer.Poll(t.Context())) // waits for 20 s
		assert.Equal(t, []string{"3"}, s.handled)

		time.Sleep(11 * time.Second) // the visibility timeout is over
		require.NoError(t, s.consumer.Poll(t.Context()))
		require.NoError(t, s.consumer.Poll(t.Context()))
		assert.Equal(t, []string{"3", "1", "2"}, s.handled)
	})
}

// The handler's context continues the trace of the call that sent the event.
func TestTheTraceGoesOn(t *testing.T) {
	s := newShop(t, sqstest.Config{})
	ctx, span := sdktrace.NewTracerProvider().Tracer("").Start(t.Context(), "place order")
	defer span.End()
	_, err := s.producer.Send(ctx, order("17", "ada"))
	require.NoError(t, err)
	require.NoError(t, s.consumer.Poll(t.Context()))
	assert.Equal(t, span.SpanContext().TraceID(), s.trace)
}

// A body that is not an envelope ends in the dead-letter queue, and the rest of
// its group is handled.
func TestABodyThatIsNotAnEnvelope(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dead, err := sqstest.NewQueue(sqstest.Config{Name: "dead.fifo"})
		require.NoError(t, err)
		s := newShop(t, sqstest.Config{DeadLetterQueue: dead, MaxReceiveCount: 3})
		_, err = s.queue.SendMessage(t.Context(), &sqs.SendMessageInput{
			QueueUrl: aws.String(s.queue.URL()), MessageGroupId: aws.String("ada"), MessageBody: aws.String(`{"hello":"world"}`),
		})
		require.NoError(t, err)
		s.send(t, order("1", "ada"))
		for range 5 {
			if err := s.consumer.Poll(t.Context()); err != nil {
				var envelope *sqsfifo.EnvelopeError
				require.ErrorAs(t, err, &envelope)
			}
			time.Sleep(31 * time.Second)
		}
		assert.Equal(t, []string{"1"}, s.handled)
		require.Len(t, dead.Messages(), 1)
		assert.JSONEq(t, `{"hello":"world"}`, dead.Messages()[0].Body)
	})
}
