package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
	"github.com/kansas-frontier-matrix/sqsfifo"
)

// counting is a client that counts all calls and the throttled calls.
type counting struct {
	*sqs.Client
	calls, throttled atomic.Int64
}

func (c *counting) SendMessage(ctx context.Context, in *sqs.SendMessageInput, o ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	out, err := c.Client.SendMessage(ctx, in, o...)
	c.count(err)
	return out, err
}

func (c *counting) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, o ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	out, err := c.Client.SendMessageBatch(ctx, in, o...)
	c.count(err)
	return out, err
}

func (c *counting) count(err error) {
	c.calls.Add(1)
	var api smithy.APIError
	if errors.As(err, &api) && api.ErrorCode() == "RequestThrottled" {
		c.throttled.Add(1)
	}
}

// againstQuota measures a producer on a server with a quota of calls per second. For the
// given time, it submits more events than the quota permits.
func againstQuota(ctx context.Context, quota int, length time.Duration) (missed int, err error) {
	s, err := startServer(0, quota)
	if err != nil {
		return 0, err
	}
	defer s.Stop()
	client := &counting{Client: s.client()}
	p, err := sqsfifo.NewProducer(client, sqsfifo.Config[Scene]{
		QueueURL: s.queue(), Source: source, Identify: identify, Delivery: sqsfifo.Delivery{InFlight: workers},
	})
	if err != nil {
		return 0, err
	}
	events := scenes(quota*10*int(length.Seconds())*2, 10_000)
	var failed atomic.Int64
	start := time.Now()
	for _, e := range events {
		if time.Since(start) > length {
			break
		}
		p.SendAsync(ctx, e, func(_ sqsfifo.Receipt, err error) {
			if err != nil {
				failed.Add(1)
			}
		})
	}
	calls, throttled := float64(client.calls.Load()), float64(client.throttled.Load())
	// The server permits a burst of one second's calls at the start.
	allowed := float64(quota) * (time.Since(start).Seconds() + 1)
	if err := p.Close(ctx); err != nil {
		return 0, err
	}
	used, refused := (calls-throttled)/allowed, throttled/calls
	text := ""
	if used < 0.95 || refused >= 0.01 || failed.Load() > 0 {
		missed++
		text = " MISSED"
	}
	fmt.Printf("\nquota of %d calls/s for %v: %.1f %% of it used (95), %.2f %% of calls throttled (under 1), %d events failed (0)%s\n",
		quota, length, 100*used, 100*refused, failed.Load(), text)
	return missed, nil
}
