package systemtest

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/kansas-frontier-matrix/sqsfifo/consumer"
)

// consume runs a process with a consumer of package consumer. It returns when the process
// is dead, or when w.finished is true and the consumer has shut down.
func (w *world) consume(p *process) {
	config := consumer.Config[event]{
		QueueURL: w.queue.URL(), Visibility: 30 * time.Second, Effect: "effect",
		Handle: func(ctx context.Context, m consumer.Message[event]) error { return w.handle(ctx, p, m) },
		Store:  p.store, Guarantee: consumer.GuaranteeAtMostOnce, Probe: w.probe,
		Failure: consumer.Failure{Action: consumer.ActionBlock},
	}
	if w.sabotage == "no store at the consumer" {
		config.Store, config.Guarantee, config.Probe = nil, consumer.GuaranteeAtLeastOnce, nil
	}
	c, err := consumer.New[event](&receiver{&network{p}}, config)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	for !w.finished() && p.sleep(5*time.Second) {
	}
	cancel()
	if !p.dead() { // a dead process's goroutines end later, without effect
		var denied *consumer.DeniedError
		if err := <-ended; errors.As(err, &denied) {
			w.fail("", "%s: %v", p.name, err)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.totals.redelivered += int(c.Stats().Duplicates)
}

// handle is the consumer's handler. It adds the event to w.effects.
func (w *world) handle(ctx context.Context, p *process, m consumer.Message[event]) error {
	if !p.sleep(w.span(25*time.Second)) || p.crash("crash before an effect") {
		return errDead
	}
	// After the end of ctx, another consumer may handle the event, so the effect must not
	// happen here.
	if ctx.Err() != nil {
		return consumer.NotDone(ctx.Err())
	}
	w.note(m.Payload.key(), "%s: the effect happens", p.name)
	w.mu.Lock()
	w.effects[m.Payload.Group] = append(w.effects[m.Payload.Group], m.Payload.Number)
	w.mu.Unlock()
	if p.crash("crash after an effect") {
		return errDead
	}
	return nil
}

func (w *world) probe(_ context.Context, m consumer.Message[event]) (happened bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.totals.resolved++
	return slices.Contains(w.effects[m.Payload.Group], m.Payload.Number), nil
}

// receiver is the SQS client of a consumer. Its methods receive and delete messages
// through the network.
type receiver struct{ *network }

// reach makes one request of a consumer to SQS through the simulated network. The request
// or the answer may get lost.
func reach[O any](r *receiver, call func() (*O, error)) (*O, error) {
	w := r.p.w
	if r.p.crash("crash before a request") {
		return nil, errDead
	}
	if w.happens("request is dropped") {
		return nil, errors.New("connection reset")
	}
	if w.happens("throttled") {
		return nil, throttled()
	}
	r.p.sleep(w.span(100 * time.Millisecond))
	out, err := call()
	switch {
	case r.p.crash("crash after a request"):
		return nil, errDead
	case err != nil:
		return nil, err
	case w.happens("answer is lost"):
		return nil, errors.New("connection reset after the request")
	}
	return out, nil
}

func (r *receiver) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, _ ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	return reach(r, func() (*sqs.ReceiveMessageOutput, error) { return r.p.w.queue.ReceiveMessage(ctx, in) })
}

func (r *receiver) ChangeMessageVisibilityBatch(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	return reach(r, func() (*sqs.ChangeMessageVisibilityBatchOutput, error) {
		return r.p.w.queue.ChangeMessageVisibilityBatch(ctx, in)
	})
}

func (r *receiver) DeleteMessageBatch(ctx context.Context, in *sqs.DeleteMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	if r.p.crash("crash before a deletion") || r.p.w.happens("deletion is lost") {
		return nil, errors.New("connection reset")
	}
	out, err := reach(r, func() (*sqs.DeleteMessageBatchOutput, error) { return r.p.w.queue.DeleteMessageBatch(ctx, in) })
	if r.p.crash("crash after a deletion") {
		return nil, errDead
	}
	return out, err
}
