// Package lambdasqs runs the handler of a consumer as an AWS Lambda function of an SQS
// event source mapping:
//
//	lambda.Start(lambdasqs.New(c, lambdasqs.Options{}))
//
// The message groups of a batch are handled concurrently, each in order, and a group
// stops at its first failure. The answer to Lambda has exactly the IDs of the failed and
// the unhandled messages. It comes before the deadline of the invocation, because Lambda
// discards a later answer and delivers the whole batch again: see [Options].Margin. Set FunctionResponseTypes of the event source mapping to
// ReportBatchItemFailures: otherwise Lambda ignores the answer and deletes all messages.
//
// The types have the JSON form of Lambda's events, so the package needs no module of AWS
// Lambda. Lambda may deliver a message twice: give the consumer a store. A failed message
// and the later messages of its group return with a higher receive count. If the queue
// has a redrive policy, its maxReceiveCount should be at least 10.
package lambdasqs

import (
	"context"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// Event is a batch of messages.
type Event struct {
	Records []Record `json:"Records"`
}

// Record is a message of a batch.
type Record struct {
	MessageID         string               `json:"messageId"`
	ReceiptHandle     string               `json:"receiptHandle"`
	Body              string               `json:"body"`
	Attributes        map[string]string    `json:"attributes"`
	MessageAttributes map[string]Attribute `json:"messageAttributes"`
	EventSourceARN    string               `json:"eventSourceARN"`
}

// Attribute is a message attribute. BinaryValue is in base64.
type Attribute struct {
	StringValue *string `json:"stringValue,omitempty"`
	BinaryValue *string `json:"binaryValue,omitempty"`
	DataType    string  `json:"dataType"`
}

// Response names the messages that Lambda must not delete.
type Response struct {
	BatchItemFailures []ItemFailure `json:"batchItemFailures"`
}

// ItemFailure is a failed or unhandled message.
type ItemFailure struct {
	ItemIdentifier string `json:"itemIdentifier"`
}

// Consumer is the method of a *consumer.Consumer that the Lambda function of [New] calls.
type Consumer interface {
	Attempt(ctx context.Context, m types.Message) error
}

// VisibilityClient is the part of *sqs.Client that shortens a visibility timeout.
type VisibilityClient interface {
	ChangeMessageVisibilityBatch(context.Context, *sqs.ChangeMessageVisibilityBatchInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error)
}

// Options configures the function of [New]. The zero value is valid.
type Options struct {
	// Client sets the visibility timeout of failed and unhandled messages to the value of
	// RetryAfter, so that SQS delivers them soon. Without Client, or without the permission
	// sqs:ChangeMessageVisibility, they stay hidden until the queue's visibility timeout
	// ends.
	Client   VisibilityClient
	QueueURL string // required with Client

	// RetryAfter is the delay before SQS delivers a failed or unhandled message again. It
	// needs Client. It is rounded down to whole seconds. The default and the minimum are
	// 1 s, and the maximum is 12 h.
	RetryAfter time.Duration

	// Margin is the time between the end of the handlers' contexts and the deadline of the
	// invocation. Handlers that return within the first half of it are in the answer. A
	// handler that ignores its context counts as failed, although it may still run. The
	// default is the longer of 1 s and 5 % of the invocation's time. Margin is at most
	// half of that time.
	Margin time.Duration
}

// New returns a Lambda function. The function always returns a nil error: an error would
// return the whole batch to the queue, including the handled messages.
func New(c Consumer, o Options) func(ctx context.Context, e Event) (Response, error) {
	if o.RetryAfter < time.Second {
		o.RetryAfter = time.Second
	}
	return func(ctx context.Context, e Event) (Response, error) {
		end, bounded := o.deadline(ctx)
		if bounded {
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadline(ctx, end.handlers)
			defer cancel()
		}
		left, idle := handle(ctx, c, e.Records, end)
		o.release(ctx, idle, end)
		out := Response{BatchItemFailures: []ItemFailure{}}
		for _, r := range left {
			out.BatchItemFailures = append(out.BatchItemFailures, ItemFailure{r.MessageID})
		}
		return out, nil
	}
}

// deadlines are the times of an invocation, zero without a deadline.
type deadlines struct {
	handlers time.Time // end of the handlers' contexts
	answers  time.Time // end of the wait for handlers
	release  time.Time // end of the request that shortens visibility timeouts
}

// deadline divides the margin before the deadline of ctx.
func (o Options) deadline(ctx context.Context) (d deadlines, bounded bool) {
	end, bounded := ctx.Deadline()
	if !bounded {
		return d, false
	}
	left := time.Until(end)
	margin := o.Margin
	if margin <= 0 {
		margin = max(time.Second, left/20)
	}
	margin = min(margin, left/2)
	return deadlines{end.Add(-margin), end.Add(-margin / 2), end.Add(-margin / 4)}, true
}

// handle returns the failed and the unhandled records in the order of the batch. The records
// in idle are those of groups without a running handler: a handler that ignores its context
// may run until the environment of the function ends.
func handle(ctx context.Context, c Consumer, records []Record, end deadlines) (left, idle []Record) {
	groups := map[string][]int{}
	keys := make([]string, len(records))
	for i, r := range records {
		keys[i] = r.Attributes[string(types.MessageSystemAttributeNameMessageGroupId)]
		if !strings.HasSuffix(r.EventSourceARN, ".fifo") {
			keys[i] = strconv.Itoa(i) // a standard queue has no order, even with group IDs (sqstest/FACTS.md, F-149)
		}
		groups[keys[i]] = append(groups[keys[i]], i)
	}
	var mu sync.Mutex // guards the next three
	handled := make([]bool, len(records))
	running := make(map[string]bool, len(groups))
	for key := range groups {
		running[key] = true
	}
	answered := false
	done := make(chan struct{})
	var wait sync.WaitGroup
	for key, group := range groups {
		wait.Go(func() {
			defer func() {
				mu.Lock()
				defer mu.Unlock()
				delete(running, key)
			}()
			for _, i := range group {
				if ctx.Err() != nil || c.Attempt(ctx, message(records[i])) != nil {
					return
				}
				mu.Lock()
				handled[i] = true
				over := answered
				mu.Unlock()
				if over {
					return
				}
			}
		})
	}
	go func() {
		wait.Wait()
		close(done)
	}()
	var late <-chan time.Time
	if !end.answers.IsZero() {
		timer := time.NewTimer(time.Until(end.answers))
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-done:
	case <-late:
	}
	mu.Lock()
	defer mu.Unlock()
	answered = true
	for i, r := range records {
		if handled[i] {
			continue
		}
		left = append(left, r)
		if !running[keys[i]] {
			idle = append(idle, r)
		}
	}
	return left, idle
}

// message returns the SDK's form of a record.
func message(r Record) types.Message {
	m := types.Message{MessageId: &r.MessageID, ReceiptHandle: &r.ReceiptHandle, Body: &r.Body, Attributes: r.Attributes}
	for name, a := range r.MessageAttributes {
		value := types.MessageAttributeValue{DataType: aws.String(a.DataType), StringValue: a.StringValue}
		if a.BinaryValue != nil {
			value.BinaryValue, _ = base64.StdEncoding.DecodeString(*a.BinaryValue)
		}
		if m.MessageAttributes == nil {
			m.MessageAttributes = map[string]types.MessageAttributeValue{}
		}
		m.MessageAttributes[name] = value
	}
	return m
}

// release shortens the visibility timeout of the failed and unhandled records to
// RetryAfter, the last record first. It ignores errors: an unchanged message only stays
// hidden longer.
func (o Options) release(ctx context.Context, left []Record, end deadlines) {
	if o.Client == nil || len(left) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if !end.release.IsZero() {
		ctx, cancel = context.WithDeadline(ctx, end.release)
		defer cancel()
	}
	var entries []types.ChangeMessageVisibilityBatchRequestEntry
	for i := len(left) - 1; i >= 0; i-- {
		entries = append(entries, types.ChangeMessageVisibilityBatchRequestEntry{
			Id: aws.String(strconv.Itoa(i)), ReceiptHandle: &left[i].ReceiptHandle, VisibilityTimeout: int32(min(o.RetryAfter, 12*time.Hour) / time.Second), // #nosec G115 -- at most 12 h
		})
	}
	for batch := range slices.Chunk(entries, 10) {
		_, _ = o.Client.ChangeMessageVisibilityBatch(ctx, &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &o.QueueURL, Entries: batch})
	}
}
