package replay

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"golang.org/x/time/rate"

	"github.com/kansas-frontier-matrix/sqsfifo"
)

// pace limits the rates of messages and calls. A nil limiter means no limit.
type pace struct {
	messages, calls *rate.Limiter
	countCalls      func() int64 // returns the number of calls so far; nil without a limit for calls
	counted         int64        // calls already charged to the limiter
	expectedCalls   int          // estimate: calls still needed for submitted messages, ten in each call
}

// newPace returns the pace for a configuration. The burst of a limiter is a tenth of its
// rate per second, at least 1.
func newPace(c *Config) pace {
	limiter := func(perSecond float64) *rate.Limiter {
		if perSecond == 0 {
			return nil
		}
		return rate.NewLimiter(rate.Limit(perSecond), max(1, int(perSecond/10)))
	}
	p := pace{messages: limiter(c.MessagesPerSecond), calls: limiter(c.CallsPerSecond)}
	if p.calls != nil {
		p.countCalls, p.counted = c.Calls, c.Calls()
	}
	return p
}

// callMessages is the largest number of messages in one call of SendMessageBatch.
const callMessages = 10

// allows returns how many of n messages may be sent now. The parameter `inFlight` is the
// number of messages without an answer.
func (p *pace) allows(now time.Time, n, inFlight int) int {
	if p.messages != nil {
		n = max(0, min(n, int(p.messages.TokensAt(now))))
	}
	if p.calls == nil {
		return n
	}
	made := p.countCalls()
	p.expectedCalls = max(0, p.expectedCalls-int(made-p.counted))
	if inFlight == 0 {
		p.expectedCalls = 0
	}
	// Charge calls one by one, because ReserveN refuses a number above the limiter's burst.
	for ; p.counted < made; p.counted++ {
		p.calls.ReserveN(now, 1)
	}
	return min(n, callMessages*max(0, int(p.calls.TokensAt(now))-p.expectedCalls))
}

func (p *pace) charge(now time.Time, n int) {
	if p.messages != nil {
		p.messages.ReserveN(now, n)
	}
	p.expectedCalls += (n + callMessages - 1) / callMessages
}

// wait returns the time from now until the next message is allowed.
func (p *pace) wait(now time.Time) time.Duration {
	var wait time.Duration
	for _, l := range []*rate.Limiter{p.messages, p.calls} {
		if l == nil {
			continue
		}
		if missing := 1 - l.TokensAt(now); missing > 0 {
			wait = max(wait, time.Duration(math.Ceil(missing/float64(l.Limit())*float64(time.Second))))
		}
	}
	return wait
}

// CountCalls returns a client that counts the calls of SendMessage and SendMessageBatch,
// including retries, and a function that returns the count. With [Config].CallsPerSecond,
// give the client to the run's producer and the function to Config.Calls.
func CountCalls(client sqsfifo.Client) (counting sqsfifo.Client, calls func() int64) {
	c := &callCounter{Client: client}
	return c, c.calls.Load
}

type callCounter struct {
	sqsfifo.Client
	calls atomic.Int64
}

func (c *callCounter) SendMessage(ctx context.Context, in *sqs.SendMessageInput, options ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	c.calls.Add(1)
	return c.Client.SendMessage(ctx, in, options...)
}

func (c *callCounter) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, options ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	c.calls.Add(1)
	return c.Client.SendMessageBatch(ctx, in, options...)
}
