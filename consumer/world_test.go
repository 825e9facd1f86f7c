package consumer_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/consumer"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// job is the event of these tests.
type job struct {
	Group string
	N     int
}

func (j job) String() string { return fmt.Sprintf("%s%d", j.Group, j.N) }

// world is a queue with its parking queue and dead-letter queue, and a record of the
// handler's calls.
type world struct {
	*testing.T
	queue, parking, dead *sqstest.Queue
	server               *sqstest.Server

	mu    sync.Mutex
	calls []string // every call of a handler
	done  []string // every successful call
}

// bubble runs the function `test` with a world on virtual time. If maxReceives is 0, the
// queue has no redrive policy.
func bubble(t *testing.T, maxReceives int, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t}
		make := func(c sqstest.Config) *sqstest.Queue {
			q, err := sqstest.NewQueue(c)
			require.NoError(t, err)
			return q
		}
		w.parking, w.dead = make(sqstest.Config{Name: "parking.fifo"}), make(sqstest.Config{Name: "dead.fifo"})
		c := sqstest.Config{Name: "jobs.fifo"}
		if maxReceives > 0 {
			c.DeadLetterQueue, c.MaxReceiveCount = w.dead, maxReceives
		}
		w.queue = make(c)
		w.server = sqstest.NewServer(w.queue, w.parking, w.dead)
		test(w)
	})
}

func (w *world) send(group string, numbers ...int) {
	w.Helper()
	for _, n := range numbers {
		body, err := json.Marshal(job{group, n})
		require.NoError(w, err)
		_, err = w.queue.SendMessage(w.Context(), &sqs.SendMessageInput{
			QueueUrl: aws.String(w.queue.URL()), MessageBody: aws.String(string(body)), MessageGroupId: &group,
		})
		require.NoError(w, err)
	}
}

// config returns a configuration that parks failed messages and records the calls of the
// handler. If the function `handle` is nil, every call succeeds.
func (w *world) config(handle func(ctx context.Context, m consumer.Message[job]) error) consumer.Config[job] {
	return consumer.Config[job]{
		QueueURL: w.queue.URL(),
		Decode:   consumer.JSON(job.String),
		Handle: func(ctx context.Context, m consumer.Message[job]) error {
			w.note(&w.calls, m.Payload)
			if handle != nil {
				if err := handle(ctx, m); err != nil {
					return err
				}
			}
			w.note(&w.done, m.Payload)
			return nil
		},
		Failure:   consumer.Failure{Action: consumer.ActionPark, ParkingQueue: w.parking.URL()},
		Telemetry: consumer.Telemetry{Logger: slog.New(slog.DiscardHandler)},
	}
}

func (w *world) note(list *[]string, j job) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*list = append(*list, j.String())
}

func (w *world) noted(list *[]string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), *list...)
}

// running starts a consumer. The result `stop` is a function that ends the consumer and
// returns Run's error.
func (w *world) running(c consumer.Config[job]) (running *consumer.Consumer[job], stop func() error) {
	w.Helper()
	running, err := consumer.New(w.server, c)
	require.NoError(w, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- running.Run(ctx) }()
	var once sync.Once
	var result error
	stop = func() error {
		once.Do(func() {
			cancel()
			result = <-ended
		})
		return result
	}
	w.Cleanup(func() { _ = stop() })
	return running, stop
}

// run runs a consumer for d and requires a complete shutdown.
func (w *world) run(c consumer.Config[job], d time.Duration) *consumer.Consumer[job] {
	w.Helper()
	running, stop := w.running(c)
	time.Sleep(d)
	require.NoError(w, stop())
	return running
}

// left returns the undeleted messages of a queue.
func left(q *sqstest.Queue) (out []sqstest.Message) {
	for _, m := range q.Messages() {
		if !m.Deleted {
			out = append(out, m)
		}
	}
	return out
}

func mostReceives(q *sqstest.Queue) (most int) {
	for _, m := range q.Messages() {
		most = max(most, m.Receives)
	}
	return most
}
