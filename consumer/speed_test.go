package consumer_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/consumer"
)

// distant is a client whose receives and deletes take 5 ms.
type distant struct {
	consumer.Client
	calls *atomic.Int64
}

func (d distant) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, o ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	d.calls.Add(1)
	time.Sleep(5 * time.Millisecond)
	return d.Client.ReceiveMessage(ctx, in, o...)
}

func (d distant) DeleteMessageBatch(ctx context.Context, in *sqs.DeleteMessageBatchInput, o ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	d.calls.Add(1)
	time.Sleep(5 * time.Millisecond)
	return d.Client.DeleteMessageBatch(ctx, in, o...)
}

// A consumer with up to 100 concurrent handlers is compared with 16 workers that receive,
// handle and delete ten messages at a time. The consumer must take less than 1.4 times as
// long, and make less than 1.2 times as many calls.
func TestSpeed(t *testing.T) {
	const messages, groups = 4000, 100
	measure := func(consume func(ctx context.Context, w *world, client distant, handled func())) (took time.Duration, calls int64) {
		bubble(t, 0, func(w *world) {
			for n := range messages / groups {
				for g := range groups {
					w.send(fmt.Sprint("g", g), n)
				}
			}
			client := distant{w.server, &atomic.Int64{}}
			ctx, cancel := context.WithCancel(w.Context())
			var n atomic.Int64
			began, done := time.Now(), make(chan struct{})
			handled := func() {
				if n.Add(1) == messages {
					took, calls = time.Since(began), client.calls.Load()
					close(done)
				}
			}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				consume(ctx, w, client, handled)
			}()
			<-done
			cancel()
			<-ended
		})
		return took, calls
	}
	loop, loopCalls := measure(func(ctx context.Context, w *world, client distant, handled func()) {
		var workers sync.WaitGroup
		for range 16 {
			workers.Go(func() {
				for ctx.Err() == nil {
					out, err := client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: aws.String(w.queue.URL()), MaxNumberOfMessages: 10, WaitTimeSeconds: 20})
					if err != nil || len(out.Messages) == 0 {
						continue
					}
					entries := make([]types.DeleteMessageBatchRequestEntry, len(out.Messages))
					for i, m := range out.Messages {
						handled()
						entries[i] = types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: m.ReceiptHandle}
					}
					_, _ = client.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: aws.String(w.queue.URL()), Entries: entries})
				}
			})
		}
		workers.Wait()
	})
	ours, ourCalls := measure(func(ctx context.Context, w *world, client distant, handled func()) {
		config := w.config(func(context.Context, consumer.Message[job]) error {
			handled()
			return nil
		})
		config.Groups = groups
		c, err := consumer.New(client, config)
		require.NoError(w, err)
		assert.NoError(w, c.Run(ctx))
	})
	t.Logf("loop %v, %d calls; consumer %v, %d calls", loop, loopCalls, ours, ourCalls)
	assert.Less(t, ours, loop*14/10, "duration")
	assert.Less(t, ourCalls, loopCalls*12/10, "calls")
}
