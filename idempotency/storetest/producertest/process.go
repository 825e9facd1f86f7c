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

// event is what is sent.
type event struct {
	ID    string `json:"id"`
	Value int    `json:"value"`
}

// storeTimeout bounds a call of the store; passed is longer than the lease that follows
// from it, and forgotten is longer than SQS remembers a message.
const (
	storeTimeout = time.Second
	passed       = time.Minute
	forgotten    = 10 * time.Minute
)

// process is a producer with a connection to the storage. Once it has crashed, nothing
// that it does reaches anybody.
type process struct {
	*sqsfifo.Producer[event]
	*wire
	store   idempotency.Store
	alive   context.Context
	kill    context.CancelFunc
	stopped bool
}

var errCrashed = errors.New("the process has crashed")

// begin starts a process with the encoder of the version: other versions make other bytes
// of equal events, and put them into other message groups.
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

// crash cuts the process off.
func (p *process) crash() { p.kill() }

// stop closes the producer and its connection to the storage.
func (p *process) stop() error {
	if p.stopped {
		return nil
	}
	p.stopped = true
	err := p.Close(p.alive)
	p.kill()
	return errors.Join(err, closeStore(p.store))
}

// send sends the event, until the process crashes or half a minute is over.
func (p *process) send(e event) (sqsfifo.Receipt, error) {
	ctx, cancel := context.WithTimeout(p.alive, 30*time.Second)
	defer cancel()
	return p.Send(ctx, e)
}

// crashAt is where in its next request a process crashes.
type crashAt uint8

const (
	nowhere crashAt = iota
	beforeRequest
	afterRequest // SQS has stored the event, and the answer is lost
)

// stored is how many messages the request of a process that crashed there has left.
func (at crashAt) stored() int {
	if at == afterRequest {
		return 1
	}
	return 0
}

// wire is the way of a process to the queue. It does not pass the options on, so that
// a crash proves nothing to the producer.
type wire struct {
	*sqstest.Queue
	process     *process
	crashes     crashAt
	requests    atomic.Int64
	body, group string // of the last message that was to be sent alone
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

// request makes a request, unless the process crashes.
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

// connection is the store as a process reaches it.
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

func (c connection) settle(f func() error) error {
	if c.process.alive.Err() != nil {
		return errCrashed
	}
	return f()
}

func (c connection) Complete(ctx context.Context, ref idempotency.Ref, r idempotency.Result) error {
	return c.settle(func() error { return c.Store.Complete(ctx, ref, r) })
}

func (c connection) Fail(ctx context.Context, ref idempotency.Ref, f idempotency.Failure) error {
	return c.settle(func() error { return c.Store.Fail(ctx, ref, f) })
}

func (c connection) Release(ctx context.Context, ref idempotency.Ref) error {
	return c.settle(func() error { return c.Store.Release(ctx, ref) })
}
