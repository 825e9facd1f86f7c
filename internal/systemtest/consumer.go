package systemtest

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// consume is a process that handles each event once, by its guard, and deletes the
// message after.
func (w *world) consume(p *process) {
	policy, err := idempotency.NewPolicy(idempotency.PolicyConfig{TTL: 24 * time.Hour, Retry: 12 * time.Hour, Lease: 20 * time.Second})
	if err != nil {
		w.t.Fatal(err)
	}
	guard, err := idempotency.NewGuard(idempotency.GuardConfig{Store: p.store, Policy: policy})
	if err != nil {
		w.t.Fatal(err)
	}
	url := w.queue.URL()
	for !p.dead() && !w.finished() {
		out, err := w.queue.ReceiveMessage(context.Background(), &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 1})
		if err != nil {
			w.fail("", "receive: %v", err)
			return
		}
		if len(out.Messages) == 0 {
			p.sleep(time.Second)
			continue
		}
		m := out.Messages[0]
		e, err := sqsfifo.DecodeEnvelope[event](*m.Body)
		if err != nil {
			w.fail("", "decode: %v", err)
			return
		}
		if !w.handleOnce(p, guard, e) {
			continue // SQS delivers it again, and nothing of its group before
		}
		if p.crash("crash before a deletion") || w.happens("deletion is lost") {
			continue
		}
		_, err = w.queue.DeleteMessage(context.Background(), &sqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: m.ReceiptHandle})
		if err != nil {
			w.note(e.DedupeKey, "%s: delete: %v", p.name, err)
		}
		p.crash("crash after a deletion")
	}
}

// handleOnce reports whether the effect of the event has happened, now or earlier.
func (w *world) handleOnce(p *process, guard *idempotency.Guard, e sqsfifo.Envelope[event]) bool {
	if w.sabotage == "no guard" {
		w.effect(p, e.Payload)
		return !p.dead()
	}
	payload, err := json.Marshal(e.Payload)
	if err != nil {
		w.fail(e.DedupeKey, "%v", err)
		return false
	}
	key := idempotency.Key{Scope: e.EventSource, Operation: "effect", Value: e.DedupeKey}
	answer, err := guard.Do(context.Background(), idempotency.Request{
		Key: key, Fingerprint: idempotency.FingerprintOf("effect/1", []byte(e.EventSource), []byte(e.DedupeKey), payload),
	}, func(ctx context.Context, _ idempotency.Outcome) (idempotency.Result, error) {
		if !p.sleep(w.span(25*time.Second)) || p.crash("crash before an effect") {
			return idempotency.Result{}, errDead
		}
		if ctx.Err() != nil { // the lease is over: somebody else may have the event
			return idempotency.Result{}, idempotency.NotDone(ctx.Err())
		}
		w.effect(p, e.Payload)
		if p.crash("crash after an effect") {
			return idempotency.Result{}, errDead
		}
		return idempotency.Result{}, nil
	})
	if p.dead() {
		return false
	}
	w.note(e.DedupeKey, "%s: handled, duplicate %v, %v", p.name, answer.Duplicate, err)
	if answer.Duplicate {
		w.count(&w.totals.redelivered)
	}
	var held *idempotency.IndeterminateError
	if errors.As(err, &held) {
		w.settleByTruth(key, func(idempotency.Record) (bool, idempotency.Result) {
			w.mu.Lock()
			defer w.mu.Unlock()
			for _, n := range w.effects[e.Payload.Group] {
				if n == e.Payload.Number {
					return true, idempotency.Result{}
				}
			}
			return false, idempotency.Result{}
		})
	}
	return err == nil
}

// effect is what cannot be taken back.
func (w *world) effect(p *process, e event) {
	w.note(e.key(), "%s: the effect happens", p.name)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.effects[e.Group] = append(w.effects[e.Group], e.Number)
}
