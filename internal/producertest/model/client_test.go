package model

import (
	"context"
	"io"
	"runtime"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/clock"
)

// modelClient is the client of one producer. It sends requests through the simulated
// network, modelWorld.
type modelClient struct {
	w        *modelWorld
	producer int
}

// Clock returns the clock of a new process on the simulated machine.
func (c *modelClient) Clock() *clock.Clock { return c.w.on.newClock() }

// depart records that a request leaves the process, and decides with plan() whether and
// when the simulated network delivers it.
func (c *modelClient) depart(entries []types.SendMessageBatchRequestEntry) *modelRequest {
	w := c.w
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clock++
	r := &modelRequest{n: len(w.requests), producer: c.producer, start: w.on.now(), startedAt: w.clock}
	r.plan = w.plan(*entries[0].MessageBody, r.start)
	for _, e := range entries {
		id, err := strconv.Atoi(*e.MessageAttributes[modelTag].StringValue)
		if err != nil || w.subs[id].body != *e.MessageBody {
			w.fail(nil, "another body than the event's: %s", *e.MessageBody)
		}
		s := w.subs[id]
		r.subs = append(r.subs, s)
		w.note(s, r, "leaves")
	}
	groups := map[string]bool{}
	for _, s := range r.subs {
		lane := modelLane{c.producer, s.e.Group}
		switch {
		case groups[s.e.Group] && w.strict:
			w.fail(s, "two events of one group in a request")
		case !groups[s.e.Group] && w.inFlight[lane]:
			w.fail(s, "two requests with one group at once")
		}
		groups[s.e.Group], w.inFlight[lane] = true, true
	}
	w.requests = append(w.requests, r)
	return r
}

// transmit sends a request through the simulated network and returns the answer of SQS or
// a simulated error.
func (c *modelClient) transmit(ctx context.Context, entries []types.SendMessageBatchRequestEntry, o []func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	r := c.depart(entries)
	p := r.plan
	defer c.w.returns(r)
	answer := make(chan *sqs.SendMessageBatchOutput, 1)
	if p.arrives {
		c.w.on.fly(p.out, func() { answer <- c.w.arrive(r, entries) })
	}
	timer := time.NewTimer(p.answer)
	defer timer.Stop()
	ended := ctx.Done()
	if p.deaf {
		ended = nil
	}
	select {
	case <-timer.C:
	case <-ended:
		return nil, ctx.Err()
	}
	r.answered = true
	switch p.kind {
	case "lost", "late", "dropped":
		return nil, io.ErrUnexpectedEOF
	case "refused":
		return c.w.refuser.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: aws.String(c.w.q.URL()), Entries: entries}, o...)
	case "throttled":
		return nil, &smithy.GenericAPIError{Code: "RequestThrottled", Fault: smithy.FaultClient}
	case "poisoned":
		return nil, &smithy.GenericAPIError{Code: "InvalidMessageContents", Fault: smithy.FaultClient}
	case "failing":
		return nil, &smithy.GenericAPIError{Code: "InternalFailure", Fault: smithy.FaultServer}
	case "panic":
		panic("the client panics")
	case "exit":
		runtime.Goexit()
	case "nothing":
		return nil, nil
	}
	out := <-answer
	if c.w.sabotage == "invent" && p.kind == "slow" && len(out.Successful) > 0 {
		out.Successful[0].MessageId = aws.String("invented")
	}
	if p.kind == "unproven" && len(out.Successful) > 0 {
		out.Successful[0].SequenceNumber = nil
		out.Successful = out.Successful[:1]
	}
	if p.kind == "mangled" {
		for i := range out.Successful {
			out.Successful[i].MD5OfMessageBody = aws.String("mangled")
		}
	}
	return out, nil
}

// The client calls this method when request r returns to the producer. The method
// records the end of the request.
func (w *modelWorld) returns(r *modelRequest) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clock++
	r.end, r.endedAt = w.on.now(), w.clock
	for _, s := range r.subs {
		delete(w.inFlight, modelLane{r.producer, s.e.Group})
		w.note(s, r, "returns")
	}
	switch r.plan.kind {
	case "refused", "throttled", "poisoned":
		r.provesUnstored = r.answered
	}
}

func (c *modelClient) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, o ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	return c.transmit(ctx, in.Entries, o)
}

func (c *modelClient) SendMessage(ctx context.Context, in *sqs.SendMessageInput, o ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	return alone(in, func(entries []types.SendMessageBatchRequestEntry) (*sqs.SendMessageBatchOutput, error) {
		return c.transmit(ctx, entries, o)
	})
}

// alone sends a single message as a batch and converts the answer back.
func alone(in *sqs.SendMessageInput, transmit func([]types.SendMessageBatchRequestEntry) (*sqs.SendMessageBatchOutput, error)) (*sqs.SendMessageOutput, error) {
	out, err := transmit([]types.SendMessageBatchRequestEntry{{
		Id: aws.String("0"), MessageBody: in.MessageBody, MessageGroupId: in.MessageGroupId,
		MessageDeduplicationId: in.MessageDeduplicationId, MessageAttributes: in.MessageAttributes,
	}})
	switch {
	case err != nil || out == nil:
		return nil, err
	case len(out.Failed) > 0:
		f := out.Failed[0]
		e := &smithy.GenericAPIError{Code: *f.Code, Fault: smithy.FaultServer}
		if f.SenderFault {
			e.Fault = smithy.FaultClient
		}
		return nil, e
	}
	ok := out.Successful[0]
	return &sqs.SendMessageOutput{
		MessageId: ok.MessageId, SequenceNumber: ok.SequenceNumber,
		MD5OfMessageBody: ok.MD5OfMessageBody, MD5OfMessageAttributes: ok.MD5OfMessageAttributes,
	}, nil
}

// GetQueueAttributes has the same faults as all other calls.
func (c *modelClient) GetQueueAttributes(ctx context.Context, in *sqs.GetQueueAttributesInput, _ ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	c.w.mu.Lock()
	p := c.w.plan("attributes", c.w.on.now())
	c.w.mu.Unlock()
	if c.w.seed%4 == 0 {
		p.answer += 7 * time.Second
	}
	timer := time.NewTimer(p.answer)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	switch p.kind {
	case "":
		return c.w.q.GetQueueAttributes(ctx, in)
	case "nothing":
		return nil, nil
	case "poisoned":
		return nil, &smithy.GenericAPIError{Code: "AccessDenied", Fault: smithy.FaultClient}
	}
	return nil, io.ErrUnexpectedEOF
}

var _ sqsfifo.Client = (*modelClient)(nil)
