package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// load is the amount of work for each emulator in each measurement.
type load struct {
	messages, groups, workers int

	patience time.Duration // a receiver gives up when receives have returned no message for this time
}

const batchLen = 10 // SQS allows ten entries per request

// workKinds lists the kinds of work in the order of measurement. All use one queue. The
// first and the third kind send messages. The second and the fourth receive and delete
// these messages.
var workKinds = []struct {
	name string
	do   func(l load, ctx context.Context, c *sqs.Client, queue string) error
}{
	{"SendMessage", load.send},
	{"ReceiveMessage of ten, DeleteMessage each", load.receive},
	{"SendMessageBatch of ten", load.sendBatches},
	{"ReceiveMessage of ten, DeleteMessageBatch", load.receiveBatches},
}

func (l load) of(p peer) load {
	if p.oneAtATime {
		l.workers, l.messages = 1, min(l.messages, 100)
	}
	return l
}

// measure creates a queue and measures each kind of work once.
func (l load) measure(ctx context.Context, e *emulator) error {
	l = l.of(e.peer)
	e.queues++
	created, err := e.client.CreateQueue(ctx, &sqs.CreateQueueInput{
		QueueName:  aws.String(fmt.Sprintf("bench-%d.fifo", e.queues)),
		Attributes: map[string]string{"FifoQueue": "true", "VisibilityTimeout": "300"},
	})
	if err != nil {
		return err
	}
	queue := e.reachable(*created.QueueUrl)
	for _, w := range workKinds {
		before, start := e.processorTime(), time.Now()
		f := e.figures[w.name]
		if err := w.do(l, ctx, e.client, queue); err != nil {
			f.failure = err
			// After an error, end the measurement: the next kind of work may need
			// messages that this kind did not send.
			return fmt.Errorf("%s: %w", w.name, err)
		}
		f.rates = append(f.rates, float64(l.messages)/time.Since(start).Seconds())
		f.processor = append(f.processor, (e.processorTime()-before)/float64(l.messages))
	}
	_, err = e.client.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: &queue})
	return err
}

// reachable replaces the host in a queue's URL with the emulator's address, because some
// emulators return the name of a host that this machine does not know.
func (e *emulator) reachable(queue string) string {
	_, path, _ := strings.Cut(queue, "://")
	_, path, _ = strings.Cut(path, "/")
	return *e.client.Options().BaseEndpoint + "/" + path
}

// entry returns message number i. The parameter `prefix` distinguishes the IDs of the two
// kinds of work that send messages. The message has the typical size of 370 bytes.
func (l load) entry(prefix string, i int) types.SendMessageBatchRequestEntry {
	id := prefix + "-" + strconv.Itoa(i)
	return types.SendMessageBatchRequestEntry{
		Id:                     aws.String(strconv.Itoa(i)),
		MessageBody:            aws.String(`{"dedupe_key":"` + id + `","payload":"` + strings.Repeat("x", 330) + `"}`),
		MessageDeduplicationId: &id,
		MessageGroupId:         aws.String("group-" + strconv.Itoa(i%l.groups)),
	}
}

// inParallel calls the function `do` once for each number from 0 to n-1, from all workers.
// After an error, it starts no more calls, and returns the first error.
func (l load) inParallel(n int, do func(i int) error) error {
	var wait sync.WaitGroup
	var next atomic.Int64
	failed := make(chan error, l.workers)
	for range l.workers {
		wait.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if err := do(i); err != nil {
					failed <- err
					next.Store(int64(n))
					return
				}
			}
		})
	}
	wait.Wait()
	close(failed)
	return <-failed
}

func (l load) send(ctx context.Context, c *sqs.Client, queue string) error {
	return l.inParallel(l.messages, func(i int) error {
		e := l.entry("one", i)
		_, err := c.SendMessage(ctx, &sqs.SendMessageInput{
			QueueUrl: &queue, MessageBody: e.MessageBody, MessageDeduplicationId: e.MessageDeduplicationId, MessageGroupId: e.MessageGroupId,
		})
		return err
	})
}

func (l load) sendBatches(ctx context.Context, c *sqs.Client, queue string) error {
	return l.inParallel((l.messages+batchLen-1)/batchLen, func(batch int) error {
		var entries []types.SendMessageBatchRequestEntry
		for i := batch * batchLen; i < min((batch+1)*batchLen, l.messages); i++ {
			entries = append(entries, l.entry("batch", i))
		}
		out, err := c.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &queue, Entries: entries})
		if err == nil && len(out.Successful) != len(entries) {
			err = fmt.Errorf("%d of %d entries were accepted", len(out.Successful), len(entries))
		}
		return err
	})
}

func (l load) receive(ctx context.Context, c *sqs.Client, queue string) error {
	return l.drain(ctx, c, queue, func(received []types.Message) error {
		for _, m := range received {
			if _, err := c.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &queue, ReceiptHandle: m.ReceiptHandle}); err != nil {
				return err
			}
		}
		return nil
	})
}

func (l load) receiveBatches(ctx context.Context, c *sqs.Client, queue string) error {
	return l.drain(ctx, c, queue, func(received []types.Message) error {
		var entries []types.DeleteMessageBatchRequestEntry
		for i, m := range received {
			entries = append(entries, types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: m.ReceiptHandle})
		}
		out, err := c.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: &queue, Entries: entries})
		if err == nil && len(out.Successful) != len(entries) {
			err = fmt.Errorf("%d of %d messages were deleted", len(out.Successful), len(entries))
		}
		return err
	})
}

// drain receives messages until it has received l.messages of them, and deletes them with
// the function `remove`. A message received twice is an error.
func (l load) drain(ctx context.Context, c *sqs.Client, queue string, remove func([]types.Message) error) error {
	var got atomic.Int64
	var seen sync.Map
	return l.inParallel(l.workers, func(int) error {
		last := time.Now()
		for got.Load() < int64(l.messages) {
			out, err := c.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &queue, MaxNumberOfMessages: batchLen})
			if err != nil {
				return err
			}
			if len(out.Messages) == 0 { // other workers may have received all remaining messages
				if time.Since(last) > l.patience {
					return fmt.Errorf("only %d of %d messages were received", got.Load(), l.messages)
				}
				time.Sleep(time.Millisecond)
				continue
			}
			last = time.Now()
			for _, m := range out.Messages {
				if _, twice := seen.LoadOrStore(*m.Body, true); twice {
					return errors.New("a message was received twice")
				}
			}
			if err := remove(out.Messages); err != nil {
				return err
			}
			got.Add(int64(len(out.Messages)))
		}
		return nil
	})
}
