package sqstest_test

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

func poll(ctx context.Context, q *sqstest.Queue, seconds int32) (body string, waited time.Duration) {
	started := time.Now()
	out, err := q.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: aws.String(q.URL()), WaitTimeSeconds: seconds, VisibilityTimeout: 60})
	if err == nil && len(out.Messages) > 0 {
		body = *out.Messages[0].Body
	}
	return body, time.Since(started)
}

func TestThousandsOfLongPolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const polls = 2000
		q := newQueue(t, sqstest.Config{})
		d := testQueue{t, q, q}
		got := make(chan string, polls)
		for range polls {
			go func() {
				body, _ := poll(t.Context(), q, 20)
				got <- body
			}()
		}
		synctest.Wait()
		for i := range polls / 2 {
			d.send(msg{body: strconv.Itoa(i), group: strconv.Itoa(i)})
		}
		seen := map[string]int{}
		for range polls {
			seen[<-got]++
		}
		assert.True(t, len(seen) == polls/2+1, "each message is received: %d", len(seen)-1)
		assert.Equal(t, polls/2, seen[""], "the others wait in vain: each message is received once")
	})
}

func TestPollsInLine(t *testing.T) {
	t.Run("a poll that gives up hands its turn on", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			q := newQueue(t, sqstest.Config{})
			d := testQueue{t, q, q}
			d.sendAll("g", "1")
			d.receiveWith(sqs.ReceiveMessageInput{VisibilityTimeout: 10})
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			go poll(ctx, q, 20)
			synctest.Wait()
			go poll(t.Context(), q, 5)
			synctest.Wait()
			body, waited := poll(t.Context(), q, 20)
			assert.Equal(t, "1", body)
			assert.Equal(t, 10*time.Second, waited, "the third is first when the timeout ends")
		})
	})
	t.Run("a queue that is deleted ends all polls", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			q := newQueue(t, sqstest.Config{})
			s := sqstest.NewServer(q)
			done := make(chan time.Duration)
			for range 3 {
				go func() {
					_, waited := poll(t.Context(), q, 20)
					done <- waited
				}()
			}
			time.Sleep(time.Second)
			_, err := s.DeleteQueue(t.Context(), &sqs.DeleteQueueInput{QueueUrl: aws.String(q.URL())})
			require.NoError(t, err)
			for range 3 {
				assert.Equal(t, time.Second, <-done)
			}
		})
	})
	t.Run("a clock that is moved ends all polls that are due", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			q := newQueue(t, sqstest.Config{})
			done := make(chan time.Duration)
			for range 3 {
				go func() {
					_, waited := poll(t.Context(), q, 20)
					done <- waited
				}()
			}
			time.Sleep(time.Second)
			q.Advance(19 * time.Second)
			for range 3 {
				assert.Equal(t, time.Second, <-done)
			}
		})
	})
}

// BenchmarkSendWhilePolling measures a send with no waiting polls and a send with
// thousands. Both should take the same time.
func BenchmarkSendWhilePolling(b *testing.B) {
	for _, polls := range []int{0, 2000} {
		b.Run(strconv.Itoa(polls), func(b *testing.B) {
			q := newQueue(b, sqstest.Config{DiscardDeleted: true})
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			for range polls {
				go func() {
					for ctx.Err() == nil {
						poll(ctx, q, 20)
					}
				}()
			}
			time.Sleep(100 * time.Millisecond)
			for n := 0; b.Loop(); n++ {
				_, err := q.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: aws.String(q.URL()), MessageBody: aws.String(strconv.Itoa(n)), MessageGroupId: aws.String(strconv.Itoa(n))})
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
