package producertest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// event is the payload of the tests.
type event struct {
	ID    string `json:"id"`
	Value int    `json:"value"`
}

const (
	storeTimeout      = time.Second      // limit of a call to the store; also determines the lease
	pastLease         = time.Minute      // longer than the lease of a claim
	pastDeduplication = 10 * time.Minute // longer than the deduplication interval of SQS
)

// process is a producer connected to the storage. After its crash it can change neither
// queue nor storage.
type process struct {
	*sqsfifo.Producer[event]
	*wire
	store   idempotency.Store
	alive   context.Context
	kill    context.CancelFunc
	stopped bool
}

var errCrashed = errors.New("the process has crashed")

// begin starts a process. Processes with different versions encode the same events as
// different bytes and use different message groups.
func (w *world) begin(version int, change ...func(*sqsfifo.StoreConfig)) (*process, error) {
	store, err := w.Open()
	if err != nil {
		return nil, fmt.Errorf("open the storage: %w", err)
	}
	p := &process{store: store}
	p.alive, p.kill = context.WithCancel(context.Background())
	p.wire = &wire{Queue: w.queue, process: p}
	config := sqsfifo.Config[event]{
		QueueURL: w.queue.URL(), Source: "kfm.test.store",
		Identify: func(e event) (sqsfifo.Identity, error) {
			return sqsfifo.Identity{DedupeKey: e.ID, Group: fmt.Sprintf("%s-%d", e.ID, version), Time: time.Unix(1e9+int64(version), 0)}, nil
		},
		Store: sqsfifo.StoreConfig{Store: connection{store, p}, Timeout: storeTimeout},
	}
	for _, f := range change {
		f(&config.Store)
	}
	if p.Producer, err = sqsfifo.NewProducer(p.wire, config); err != nil {
		return nil, errors.Join(err, closeStore(store))
	}
	w.processes = append(w.processes, p)
	return p, nil
}

func (p *process) crash() { p.kill() }

func (p *process) stop() error {
	if p.stopped {
		return nil
	}
	p.stopped = true
	err := p.Close(p.alive)
	p.kill()
	return errors.Join(err, closeStore(p.store))
}

// send sends the event, for at most half a minute or until the process crashes.
func (p *process) send(e event) (sqsfifo.Receipt, error) {
	ctx, cancel := context.WithTimeout(p.alive, 30*time.Second)
	defer cancel()
	return p.Send(ctx, e)
}

// crashAt is the point at which a process crashes: before its next request, after it, or
// never.
type crashAt uint8

const (
	nowhere crashAt = iota
	beforeRequest
	afterRequest // SQS has stored the event; the answer is lost
)

// stored returns the number of messages stored by the crashed request.
func (at crashAt) stored() int {
	if at == afterRequest {
		return 1
	}
	return 0
}

// wire is the SQS client of a process. A producer passes options with each request, to
// observe whether the request leaves the machine. The wire ignores these options. After a
// failed request the producer must therefore assume that SQS may have stored the event.
type wire struct {
	*sqstest.Queue
	process     *process
	crashes     crashAt
	requests    atomic.Int64
	body, group string // content of the request during which the process crashed
}

func (c *wire) SendMessage(ctx context.Context, in *sqs.SendMessageInput, _ ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	if c.crashes != nowhere && c.process.alive.Err() == nil {
		c.body, c.group = *in.MessageBody, *in.MessageGroupId
	}
	return request(c, func() (*sqs.SendMessageOutput, error) { return c.Queue.SendMessage(ctx, in) })
}

func (c *wire) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	return request(c, func() (*sqs.SendMessageBatchOutput, error) { return c.Queue.SendMessageBatch(ctx, in) })
}

// request calls the function `do`, which sends one message or batch to the queue. If the
// process has crashed, or must crash before it sends, request returns errCrashed without a
// call of `do`. If the process must crash after it has sent, request drops the result of
// `do` and returns errCrashed.
func request[T any](c *wire, do func() (*T, error)) (*T, error) {
	if c.crashes == beforeRequest {
		c.process.crash()
	}
	if c.process.alive.Err() != nil {
		return nil, errCrashed
	}
	c.requests.Add(1)
	out, err := do()
	if c.crashes == afterRequest {
		c.process.crash()
		return nil, errCrashed
	}
	return out, err
}

// connection is the store as one process sees it. After a crash of the process, its calls
// fail.
type connection struct {
	idempotency.Store
	process *process
}

func (c connection) ClaimBatch(ctx context.Context, claims []idempotency.Claim) ([]idempotency.Outcome, error) {
	if c.process.alive.Err() != nil {
		return nil, errCrashed
	}
	return c.Store.ClaimBatch(ctx, claims)
}

func (c connection) Lookup(ctx context.Context, keys ...idempotency.Key) ([]idempotency.Record, error) {
	if c.process.alive.Err() != nil {
		return nil, errCrashed
	}
	return c.Store.Lookup(ctx, keys...)
}

func (c connection) Finish(ctx context.Context, ref idempotency.Ref, t idempotency.Ending) error {
	if c.process.alive.Err() != nil {
		return errCrashed
	}
	return c.Store.Finish(ctx, ref, t)
}
