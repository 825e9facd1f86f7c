package replay

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/kansas-frontier-matrix/sqsfifo"
)

// bucket allows a number of things a second, and after a pause those of a tenth of a
// second at once. The zero value has no limit.
type bucket struct {
	rate   float64
	tokens float64
	at     time.Time
}

func newBucket(rate float64, now time.Time) bucket {
	return bucket{rate: rate, tokens: 1, at: now}
}

func (b *bucket) refill(now time.Time) {
	if past := now.Sub(b.at); past > 0 {
		b.tokens = min(max(1, b.rate/10), b.tokens+b.rate*past.Seconds())
	}
	b.at = now
}

// allows returns how many may start at now, at most n.
func (b *bucket) allows(now time.Time, n int) int {
	if b.rate == 0 {
		return n
	}
	b.refill(now)
	return max(0, min(n, int(b.tokens)))
}

// spend takes n. What was not there is owed.
func (b *bucket) spend(n int) { b.tokens -= float64(n) }

// wait returns how long after now one is allowed.
func (b *bucket) wait() time.Duration {
	if b.rate == 0 || b.tokens >= 1 {
		return 0
	}
	return time.Duration(math.Ceil((1 - b.tokens) / b.rate * float64(time.Second)))
}

// pace limits messages and calls.
type pace struct {
	messages, calls bucket
	made            func() int64 // calls so far, nil without a limit of calls
	paid            int64        // of made
	expected        int          // calls for messages that were submitted, if full
}

// pay takes the calls that were made since.
func (p *pace) pay(inFlight int) {
	if p.made == nil {
		return
	}
	made := p.made()
	n := int(made - p.paid)
	p.calls.spend(n)
	p.paid = made
	if p.expected = max(0, p.expected-n); inFlight == 0 {
		p.expected = 0
	}
}

// submitted takes n messages.
func (p *pace) submitted(n int) {
	p.messages.spend(n)
	p.expected += (n + callMessages - 1) / callMessages
}

// callMessages is how many messages share a call at most.
const callMessages = 10

// allows returns how many messages, at most n, may start at now next to those that are
// under way.
func (p *pace) allows(now time.Time, n, inFlight int) int {
	p.pay(inFlight)
	n = p.messages.allows(now, n)
	if p.made == nil {
		return n
	}
	return min(n, callMessages*max(0, p.calls.allows(now, n+p.expected)-p.expected))
}

func (p *pace) wait() time.Duration { return max(p.messages.wait(), p.calls.wait()) }

// CallCounter is a [sqsfifo.Client] that counts the calls that send messages, retries
// included. Give it to the producer of a run whose calls are limited.
type CallCounter struct {
	sqsfifo.Client
	calls atomic.Int64
}

// SendMessage counts the call and makes it.
func (c *CallCounter) SendMessage(ctx context.Context, in *sqs.SendMessageInput, options ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	c.calls.Add(1)
	return c.Client.SendMessage(ctx, in, options...)
}

// SendMessageBatch counts the call and makes it.
func (c *CallCounter) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, options ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	c.calls.Add(1)
	return c.Client.SendMessageBatch(ctx, in, options...)
}

// Calls returns how many calls were made so far.
func (c *CallCounter) Calls() int64 { return c.calls.Load() }
