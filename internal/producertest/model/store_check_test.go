package model

import (
	"cmp"
	"context"
	"errors"
	"io"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/clock"
)

// storeClient is the SQS client of one process, and simulates its network. A request
// arrives at SQS within modelDelivery or never. A crash of the process does not stop a
// request that has left.
type storeClient struct{ p *storeProcess }

// Clock returns the clock of a new process on the simulated machine.
func (c *storeClient) Clock() *clock.Clock { return c.p.w.on.newClock() }

func (c *storeClient) transmit(ctx context.Context, entries []types.SendMessageBatchRequestEntry) (*sqs.SendMessageBatchOutput, error) {
	w := c.p.w
	w.mu.Lock()
	if c.p.dead {
		w.mu.Unlock()
		return nil, errCrashed
	}
	if w.chance(w.crashy) {
		c.p.crash()
		w.mu.Unlock()
		return nil, errCrashed
	}
	out, answer, kind := w.millis(20), w.millis(20), ""
	if w.chance(w.lossy) {
		kind = []string{"lost", "late", "dropped", "throttled", "slow", "black hole"}[w.rng.IntN(6)]
	}
	arrives, deaf := true, time.Duration(0)
	if !w.calm {
		deaf = w.on.deafFor(w.rng)
	}
	switch kind {
	case "late":
		out = min(w.millis(20_000), modelDelivery)
		if *storeBreak == "late" {
			out += 310 * time.Second
		}
		answer = 0
	case "slow":
		out, answer = min(w.millis(20_000), modelDelivery), w.millis(5000)
	case "dropped", "throttled":
		arrives = false
	case "black hole":
		out, answer, arrives = w.millis(100), time.Hour, w.rng.IntN(2) == 0
	}
	dies := w.chance(w.crashy)
	for _, e := range entries {
		tag, _ := strconv.Atoi(*e.MessageAttributes[modelTag].StringValue)
		w.note(w.subs[tag].e.Key, "process %d sends submission %d: %s, deaf for %v", c.p.n, tag, cmp.Or(kind, "fair"), deaf)
	}
	w.mu.Unlock()

	arrived := make(chan *sqs.SendMessageBatchOutput, 1)
	if arrives {
		w.on.fly(out, func() { arrived <- w.arrive(entries) })
	}
	wait := out + answer
	if kind == "late" {
		wait = out / 2
	}
	ended := ctx.Done()
	if deaf > 0 && kind != "black hole" {
		wait, ended = max(wait, deaf), nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ended:
		return nil, ctx.Err()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if dies {
		c.p.crash()
	}
	if c.p.dead {
		return nil, errCrashed
	}
	switch kind {
	case "lost", "late", "dropped":
		return nil, io.ErrUnexpectedEOF
	case "throttled":
		return nil, &smithy.GenericAPIError{Code: "RequestThrottled", Fault: smithy.FaultClient}
	}
	w.mu.Unlock()
	defer w.mu.Lock()
	return <-arrived, nil
}

// arrive delivers a request to SQS.
func (w *storeWorld) arrive(entries []types.SendMessageBatchRequestEntry) *sqs.SendMessageBatchOutput {
	w.mu.Lock()
	defer w.mu.Unlock()
	out, err := w.q.SendMessageBatch(context.Background(), &sqs.SendMessageBatchInput{QueueUrl: aws.String(w.q.URL()), Entries: entries})
	if err != nil {
		w.addViolation("the queue refuses: %v", err)
		return nil
	}
	for _, ok := range out.Successful {
		i, _ := strconv.Atoi(*ok.Id)
		tag, _ := strconv.Atoi(*entries[i].MessageAttributes[modelTag].StringValue)
		w.note(w.subs[tag].e.Key, "SQS has submission %d: %s", tag, *ok.MessageId)
		if w.known[*ok.MessageId] != nil {
			continue
		}
		w.clock++
		a := &storeAccept{sub: w.subs[tag], at: w.on.now(), until: w.until[w.subs[tag].e.Key], id: *ok.MessageId, body: *entries[i].MessageBody}
		w.known[a.id] = a
		w.accepts = append(w.accepts, a)
	}
	return out
}

func (c *storeClient) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	return c.transmit(ctx, in.Entries)
}

func (c *storeClient) SendMessage(ctx context.Context, in *sqs.SendMessageInput, _ ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	return alone(in, func(entries []types.SendMessageBatchRequestEntry) (*sqs.SendMessageBatchOutput, error) {
		return c.transmit(ctx, entries)
	})
}

func (c *storeClient) GetQueueAttributes(ctx context.Context, in *sqs.GetQueueAttributesInput, _ ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	return c.p.w.q.GetQueueAttributes(ctx, in)
}

// check compares the messages stored by SQS with the producers' reports.
func (w *storeWorld) check(sum *storeTotals) {
	w.mu.Lock()
	defer w.mu.Unlock()
	byKey := map[string][]*storeAccept{}
	for _, a := range w.accepts {
		byKey[a.sub.e.Key] = append(byKey[a.sub.e.Key], a)
	}
	if n := len(w.q.Messages()); n != len(w.accepts) {
		w.addViolation("%d messages in the queue, %d accepted", n, len(w.accepts))
	}
	for _, as := range byKey {
		w.checkTwice(as)
	}
	for _, s := range w.subs {
		w.checkSub(s, byKey[s.e.Key], sum)
	}
	w.checkOrder()
	sum.submissions.Add(int64(len(w.subs)))
	sum.accepted.Add(int64(len(w.accepts)))
	sum.crashes.Add(int64(w.crashes))
	sum.faults.Add(int64(w.faults))
}

// checkTwice checks that SQS accepts no event twice before the store's record expires,
// unless the configuration permits it (mayStoreTwice).
func (w *storeWorld) checkTwice(as []*storeAccept) {
	for i := 1; i < len(as); i++ {
		if gap := as[i].at.Sub(as[i-1].at); as[i].at.Before(as[i-1].until) && !w.mayStoreTwice {
			w.addViolation("%s accepted twice, %v apart, TTL %v: by submission %d and by %d\n%s\n%s",
				as[i].sub.e.Key, gap, w.ttl, as[i-1].sub.id, as[i].sub.id, as[i-1].body, as[i].body)
		}
	}
}

func (w *storeWorld) checkSub(s *storeSub, as []*storeAccept, sum *storeTotals) {
	if s.process.dead {
		return
	}
	if s.outcomes != 1 {
		w.addViolation("submission %d of %s by %s: %d outcomes", s.id, s.e.Key, s.how, s.outcomes)
		return
	}
	var conflict *sqsfifo.ConflictError
	switch {
	case s.err == nil:
		sum.receipts.Add(1)
		w.checkReceipt(s, sum)
	case errors.As(s.err, &conflict):
		sum.conflicts.Add(1)
		for _, a := range as {
			if a.sub == s && !w.mayStoreTwice {
				w.addViolation("submission %d of %s is a conflict and was accepted", s.id, s.e.Key)
			}
		}
	case sqsfifo.FateOf(s.err) == sqsfifo.FateInDoubt:
		sum.inDoubt.Add(1)
		if isUnresolved(s.err) {
			sum.held.Add(1)
		}
	case sqsfifo.FateOf(s.err) == sqsfifo.FateNotStored:
		sum.notStored.Add(1)
		for _, a := range as {
			before := !a.at.After(s.made) && s.reported.Before(a.until)
			if a.sub == s || before && !w.mayStoreTwice && !errors.Is(s.err, sqsfifo.ErrBufferFull) && a.sub.e.Value == s.e.Value {
				w.addViolation("submission %d of %s, made %v after the message was accepted by submission %d, is said not to be stored: %v",
					s.id, s.e.Key, s.made.Sub(a.at), a.sub.id, s.err)
			}
		}
	default:
		w.addViolation("submission %d: an error without a fate: %v", s.id, s.err)
	}
	// The last submission, after all faults, may fail only for a conflict or an
	// unresolved event.
	if s.last && s.err != nil && !isUnresolved(s.err) && !errors.As(s.err, &conflict) {
		w.addViolation("the last submission of %s: %v", s.e.Key, s.err)
	}
}

// checkReceipt checks that the message of a receipt is a message of the event, and that
// Duplicate is set correctly.
func (w *storeWorld) checkReceipt(s *storeSub, sum *storeTotals) {
	r := s.receipt
	if r.Duplicate {
		sum.duplicates.Add(1)
	}
	a := w.known[r.MessageID]
	switch {
	case r.MessageID == "" && !r.Duplicate:
		w.addViolation("submission %d: a receipt without a message ID", s.id)
	case r.MessageID == "": // the producer knew that the event was stored, but not the message ID
	case a == nil || a.sub.e.Key != s.e.Key || a.sub.e.Value != s.e.Value:
		w.addViolation("submission %d of %s has the receipt of another message", s.id, s.e.Key)
	case r.BodyHash != sqsfifo.BodyHash(a.body):
		w.addViolation("submission %d of %s: the hash in the receipt is not that of the message\n%s", s.id, s.e.Key, a.body)
	case r.Duplicate && a.sub == s:
		w.addViolation("submission %d of %s: a false duplicate", s.id, s.e.Key)
	}
}

// checkOrder checks that SQS stored each process's events of a group in submission order.
// Duplicates do not count, because an earlier submission stored them.
func (w *storeWorld) checkOrder() {
	own := func(a *storeAccept) bool {
		s := a.sub
		return !s.process.dead && s.err == nil && s.receipt.MessageID == a.id && !s.receipt.Overtaken && s.receipt.Group == s.e.Group &&
			(s.how == "SendAsync" || s.how == "TrySend" || s.how == "SendBatch")
	}
	for i, late := range w.accepts {
		for _, first := range w.accepts[:i] {
			l, f := late.sub, first.sub
			if l.process == f.process && l.e.Group == f.e.Group && l.precedes(f) && own(late) && own(first) {
				w.addViolation("out of order in %s: submission %d was stored before %d", l.e.Group, f.id, l.id)
				return
			}
		}
	}
}
