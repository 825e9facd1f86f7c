package systemtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// network is a process's connection to SQS. A request that has left the process may
// arrive even after the process's death.
type network struct{ p *process }

func (n *network) GetQueueAttributes(ctx context.Context, in *sqs.GetQueueAttributesInput, o ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	return n.p.w.queue.GetQueueAttributes(ctx, in, o...)
}

func (n *network) SendMessage(ctx context.Context, in *sqs.SendMessageInput, _ ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	key := keyOfBody(n.p.w.t, *in.MessageBody)
	var out *sqs.SendMessageOutput
	err := n.send(ctx, []string{key}, func() (err error) {
		out, err = n.p.w.queue.SendMessage(context.Background(), in)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (n *network) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	keys := make([]string, len(in.Entries))
	for i, e := range in.Entries {
		keys[i] = keyOfBody(n.p.w.t, *e.MessageBody)
	}
	var out *sqs.SendMessageBatchOutput
	err := n.send(ctx, keys, func() (err error) {
		out, err = n.p.w.queue.SendMessageBatch(context.Background(), in)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// send makes one request through a network with faults. If the request arrives at SQS, send
// calls the function `deliver`, perhaps after send has returned an error. So after an error
// the caller must not read variables that `deliver` sets.
func (n *network) send(ctx context.Context, keys []string, deliver func() error) error {
	w := n.p.w
	if n.p.crash("crash before a request") {
		return errDead
	}
	w.count(&w.totals.requests)
	note := func(what string) {
		for _, key := range keys {
			w.note(key, "%s: request %s", n.p.name, what)
		}
	}
	out, answer, arrives := w.span(100*time.Millisecond), w.span(100*time.Millisecond), true
	var fault error
	switch {
	case w.happens("request is dropped"):
		arrives, fault = false, errors.New("connection reset")
	case w.happens("answer is lost"):
		fault = errors.New("connection reset after the request")
	case w.happens("request is late"): // the client may stop waiting before the request arrives
		out = w.span(19 * time.Second)
		if w.sabotage == "late network" {
			out += 310 * time.Second
		}
		answer = -w.span(out)
		fault = errors.New("timeout")
	case w.happens("throttled"):
		arrives, fault = false, throttled()
	case w.happens("black hole"):
		out, answer, arrives = w.span(19*time.Second), time.Hour, w.span(2) == 0
	case w.happens("fails and stores"):
		fault = &smithyhttp.ResponseError{Response: &smithyhttp.Response{Response: &http.Response{StatusCode: http.StatusInternalServerError}}, Err: errors.New("internal error")}
	}
	if fault != nil {
		w.count(&w.totals.lost)
	}
	note(fmt.Sprintf("leaves, arrives %v after %v, fault %v", arrives, out, fault))
	arrived := make(chan struct{})
	if arrives {
		go func() {
			defer close(arrived)
			time.Sleep(out)
			if err := deliver(); err != nil {
				w.fail("", "SQS refuses: %v", err)
			}
			note("has arrived")
		}()
	}
	if n.p.crash("crash during a request") {
		return errDead
	}
	timer := time.NewTimer(out + answer)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return fmt.Errorf("no answer: %w", context.Cause(ctx))
	case <-n.p.alive.Done():
		return errDead
	}
	if n.p.crash("crash after a request") {
		return errDead
	}
	if fault == nil {
		<-arrived
	}
	return fault
}

func throttled() error {
	return &smithy.OperationError{ServiceID: "SQS", OperationName: "SendMessageBatch", Err: &smithy.GenericAPIError{Code: "ThrottlingException", Fault: smithy.FaultClient}}
}

// produce sends the events of a process's source in group order, and marks each event as
// sent after its receipt. It returns after the last event or when the process dies.
func (w *world) produce(p *process, rng *rand.Rand) {
	version := rng.IntN(3) // version of the encoder: each version writes other bytes for the same event
	config := sqsfifo.Config[event]{
		QueueURL: w.queue.URL(), Source: "kfm.test.system",
		Identify: func(e event) (sqsfifo.Identity, error) {
			//sqsfifo:ignore SF002 -- deliberate: each encoder version writes other bytes for the same event, and the store must handle this
			return sqsfifo.Identity{DedupeKey: e.key(), Group: e.Group, Time: time.Unix(1e9+int64(version), 0)}, nil
		},
		Delivery: sqsfifo.Delivery{OnGroupFailure: sqsfifo.GroupFailure(rng.IntN(2)), RetryFor: []time.Duration{0, 20 * time.Second}[rng.IntN(2)]},
		Store:    sqsfifo.StoreConfig{Store: p.store},
	}
	if w.sabotage == "no store" {
		config.Store = sqsfifo.StoreConfig{}
	}
	//sqsfifo:ignore SF020 -- this package is a test
	producer, err := sqsfifo.NewProducer(&network{p}, config)
	if err != nil {
		w.t.Fatal(err)
	}
	var groups sync.WaitGroup
	for _, g := range w.groups {
		groups.Go(func() { w.sendGroup(p, producer, g) })
	}
	groups.Wait()
	_ = producer.Close(p.alive) // ends the goroutines of a dead process
}

func (w *world) sendGroup(p *process, producer *sqsfifo.Producer[event], group string) {
	last := 0
	for !p.dead() && !w.finished() {
		w.mu.Lock()
		from := w.done[group]
		w.mu.Unlock()
		// A failed event pauses its group. If another process has sent the event, resume
		// the group.
		if from != last {
			producer.Resume(group)
			last = from
		}
		if from == w.length {
			return
		}
		events := make([]event, 0, 3)
		for n := from; n < min(from+1+int(w.span(3)), w.length); n++ {
			events = append(events, event{group, n})
		}
		ctx, cancel := context.WithTimeout(p.alive, time.Minute)
		results := producer.SendBatch(ctx, events)
		cancel()
		if p.dead() || !w.acknowledge(events, results, p) && !p.sleep(w.span(20*time.Second)) {
			return
		}
	}
}

// acknowledge marks events as sent, in order, up to the first event without a receipt. It
// reports whether all events have receipts.
func (w *world) acknowledge(events []event, results sqsfifo.Results, p *process) bool {
	for i, r := range results {
		key := events[i].key()
		w.note(key, "%s: %v, duplicate %v, %v", p.name, sqsfifo.FateOf(r.Err), r.Receipt.Duplicate, r.Err)
		if r.Err != nil {
			if sqsfifo.FateOf(r.Err) == sqsfifo.FateInDoubt {
				w.count(&w.totals.inDoubt)
			}
			var held *idempotency.UnresolvedError
			if errors.As(r.Err, &held) {
				w.resolveSend(key)
			}
			return false
		}
		w.mu.Lock()
		if r.Receipt.Duplicate {
			w.totals.duplicates++
		}
		if id := r.Receipt.MessageID; id != "" {
			if old := w.receipts[key]; old != "" && old != id {
				w.wrong = append(w.wrong, key+"\x00two receipts, of "+old+" and of "+id)
			}
			w.receipts[key] = id
		}
		w.done[events[i].Group] = max(w.done[events[i].Group], events[i].Number+1)
		w.mu.Unlock()
	}
	return true
}

// resolveSend resolves an unresolved send in the store, like an operator: the send took
// effect if the queue has a message with the key.
func (w *world) resolveSend(key string) {
	for r, err := range w.store.Scan(context.Background(), idempotency.Filter{Operation: "sqs.send"}) {
		if err != nil {
			w.fail(key, "the operator cannot scan: %v", err)
			return
		}
		if r.Key.Value != key {
			continue
		}
		w.resolveByTruth(r.Key, func(r idempotency.Record) (bool, idempotency.Result) {
			for _, m := range w.queue.Messages() {
				if keyOfBody(w.t, m.Body) == key {
					return true, idempotency.Result{MessageID: m.MessageID, SequenceNumber: m.SequenceNumber}
				}
			}
			return false, idempotency.Result{}
		})
		return
	}
}
