package consumer_test

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/kansas-frontier-matrix/sqsfifo/consumer"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

var errKilled = errors.New("the process was killed")

// process is a process for kill tests: after a kill, its calls have no effect.
type process struct {
	consumer.Client
	killed atomic.Bool
	cancel context.CancelFunc // lets Run return
	ended  chan error
}

// start runs a consumer in a new process.
func (w *world) start(c consumer.Config[job]) *process {
	w.Helper()
	p := &process{Client: w.server, ended: make(chan error, 1)}
	if c.Store != nil {
		c.Store = mortalStore{c.Store, p}
	}
	handle := c.Handle
	c.Handle = func(ctx context.Context, m consumer.Message[job]) error {
		if p.killed.Load() {
			return errKilled
		}
		return handle(context.WithValue(ctx, processKey{}, p), m)
	}
	running, err := consumer.New(p, c)
	if err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	go func() { p.ended <- running.Run(ctx) }()
	return p
}

type processKey struct{}

// kill ends a process without a shutdown: all later calls of its client and handler fail.
// The consumer's goroutines end later.
func (p *process) kill() {
	p.killed.Store(true)
	p.cancel()
}

// killSelf kills the process of a handler.
func killSelf(ctx context.Context) error {
	ctx.Value(processKey{}).(*process).kill()
	return errKilled
}

func alive[I, O any](p *process, call func(context.Context, *I, ...func(*sqs.Options)) (*O, error), ctx context.Context, in *I, options []func(*sqs.Options)) (*O, error) {
	if p.killed.Load() {
		return nil, errKilled
	}
	out, err := call(ctx, in, options...)
	if p.killed.Load() {
		return nil, errKilled
	}
	return out, err
}

func (p *process) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, o ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	return alive(p, p.Client.ReceiveMessage, ctx, in, o)
}

func (p *process) DeleteMessageBatch(ctx context.Context, in *sqs.DeleteMessageBatchInput, o ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	return alive(p, p.Client.DeleteMessageBatch, ctx, in, o)
}

func (p *process) ChangeMessageVisibilityBatch(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput, o ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	return alive(p, p.Client.ChangeMessageVisibilityBatch, ctx, in, o)
}

func (p *process) GetQueueAttributes(ctx context.Context, in *sqs.GetQueueAttributesInput, o ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	return alive(p, p.Client.GetQueueAttributes, ctx, in, o)
}

func (p *process) SendMessage(ctx context.Context, in *sqs.SendMessageInput, o ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	return alive(p, p.Client.SendMessage, ctx, in, o)
}

// mortalStore is a process's store. Its calls fail after the process was killed.
type mortalStore struct {
	idempotency.Store
	p *process
}

func (s mortalStore) Claim(ctx context.Context, c idempotency.Claim) (idempotency.Outcome, error) {
	if s.p.killed.Load() {
		return idempotency.Outcome{}, errKilled
	}
	return s.Store.Claim(ctx, c)
}

func (s mortalStore) Finish(ctx context.Context, ref idempotency.Ref, e idempotency.Ending) error {
	if s.p.killed.Load() {
		return errKilled
	}
	return s.Store.Finish(ctx, ref, e)
}
