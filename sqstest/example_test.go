package sqstest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

func input(q *sqstest.Queue, group, body string) *sqs.SendMessageInput {
	return &sqs.SendMessageInput{QueueUrl: aws.String(q.URL()), MessageGroupId: aws.String(group), MessageBody: aws.String(body)}
}

// Two messages have equal bodies and differ only in an attribute. SQS does not hash
// attributes, so the messages have the same deduplication ID. Both sends succeed, and the
// second message is lost.
func Example() {
	ctx := context.Background()
	q, err := sqstest.NewQueue(sqstest.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, scene := range []string{"p32r29", "p33r29"} {
		in := input(q, "landsat", `{"collection":"landsat-c2l2"}`)
		in.MessageAttributes = map[string]types.MessageAttributeValue{
			"scene": {DataType: aws.String("String"), StringValue: aws.String(scene)},
		}
		if _, err := q.SendMessage(ctx, in); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println("stored:", len(q.Messages()))
	for _, s := range q.Suppressed() {
		fmt.Printf("lost: scene %s; SQS already had scene %s\n", *s.Attributes["scene"].StringValue, *s.Original.Attributes["scene"].StringValue)
	}
	// Output:
	// stored: 1
	// lost: scene p33r29; SQS already had scene p32r29
}

func ExampleNewQueue() {
	q, err := sqstest.NewQueue(sqstest.Config{Name: "scenes.fifo", DeduplicationScope: sqstest.ScopeMessageGroup})
	fmt.Println(q.URL(), err)

	_, err = sqstest.NewQueue(sqstest.Config{Name: "scenes", Delay: time.Millisecond})
	fmt.Println(err)
	// Output:
	// https://sqs.us-east-1.test/000000000000/scenes.fifo <nil>
	// sqstest: invalid Config.Name: "scenes": must be letters, digits, hyphens and underscores and end in ".fifo", 80 characters at most
	// sqstest: invalid Config.Delay: 1ms: must be whole seconds from 0 to 15 minutes
}

// Code that needs a *sqs.Client gets a real client. It opens no socket.
func ExampleQueue_Client() {
	ctx := context.Background()
	q, err := sqstest.NewQueue(sqstest.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	client := q.Client()
	first, err := client.SendMessage(ctx, input(q, "g", "hello"))
	if err != nil {
		fmt.Println(err)
		return
	}
	again, err := client.SendMessage(ctx, input(q, "g", "hello"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("same message:", *first.MessageId == *again.MessageId && *first.SequenceNumber == *again.SequenceNumber)
	// Output:
	// same message: true
}

// Outside a testing/synctest bubble the test moves the queue's clock.
func ExampleQueue_Advance() {
	ctx := context.Background()
	q, err := sqstest.NewQueue(sqstest.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, after := range []time.Duration{0, 4 * time.Minute, time.Minute} {
		q.Advance(after)
		if _, err := q.SendMessage(ctx, input(q, "g", "hello")); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("stored:", len(q.Messages()))
	}
	// Output:
	// stored: 1
	// stored: 1
	// stored: 2
}

// After a lost answer the queue has the message. A producer that mistakes the lost answer
// for a refusal would drop the message, or build it again with other bytes.
func ExampleQueue_Inject() {
	ctx := context.Background()
	q, err := sqstest.NewQueue(sqstest.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	q.Inject(sqstest.LoseAnswer(), 1)
	q.Inject(sqstest.Throttle(), 1)

	_, err = q.SendMessage(ctx, input(q, "g", "hello"))
	fmt.Println("broken connection:", errors.Is(err, io.ErrUnexpectedEOF), "- stored:", len(q.Messages()))

	_, err = q.SendMessage(ctx, input(q, "g", "hello"))
	var api smithy.APIError
	fmt.Println("throttled:", errors.As(err, &api) && api.ErrorCode() == "RequestThrottled")

	_, err = q.SendMessage(ctx, input(q, "g", "hello"))
	fmt.Println("at last:", err, "- stored:", len(q.Messages()))
	// Output:
	// broken connection: true - stored: 1
	// throttled: true
	// at last: <nil> - stored: 1
}

func ExampleFailEntries() {
	ctx := context.Background()
	q, err := sqstest.NewQueue(sqstest.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	q.Inject(sqstest.FailEntries("InternalError", smithy.FaultServer, func(_ int, e types.SendMessageBatchRequestEntry) bool {
		return strings.Contains(*e.MessageBody, "b")
	}), 1)
	batch := &sqs.SendMessageBatchInput{QueueUrl: aws.String(q.URL())}
	for _, body := range []string{"a", "b", "c"} {
		batch.Entries = append(batch.Entries, types.SendMessageBatchRequestEntry{
			Id: aws.String("entry-" + body), MessageBody: aws.String(body), MessageGroupId: aws.String("g"),
		})
	}
	out, err := q.SendMessageBatch(ctx, batch)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("successful:", len(out.Successful))
	fmt.Println("failed:", *out.Failed[0].Id, *out.Failed[0].Code, "sender's fault:", out.Failed[0].SenderFault)
	// Output:
	// successful: 2
	// failed: entry-b InternalError sender's fault: false
}

// Over a socket the queues serve any AWS SDK in any language. The client needs the
// server's URL as endpoint and any credentials.
func ExampleServer() {
	ctx := context.Background()
	scenes, err := sqstest.NewQueue(sqstest.Config{Name: "scenes.fifo"})
	if err != nil {
		fmt.Println(err)
		return
	}
	server := httptest.NewServer(sqstest.NewServer(scenes))
	defer server.Close()

	client := sqs.New(sqs.Options{
		BaseEndpoint: aws.String(server.URL),
		Region:       sqstest.Region,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "any", SecretAccessKey: "any"}, nil
		}),
	})
	url, err := client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String("scenes.fifo")})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(strings.TrimPrefix(*url.QueueUrl, server.URL))
	for range 2 {
		_, err := client.SendMessage(ctx, &sqs.SendMessageInput{
			QueueUrl: url.QueueUrl, MessageGroupId: aws.String("p32r29"), MessageBody: aws.String("a scene"),
		})
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println("stored:", len(scenes.Messages()), "suppressed:", len(scenes.Suppressed()))
	// Output:
	// /000000000000/scenes.fifo
	// stored: 1 suppressed: 1
}

// A client uses a server of several queues in memory.
func ExampleServer_Client() {
	ctx := context.Background()
	raw, err1 := sqstest.NewQueue(sqstest.Config{Name: "raw.fifo"})
	clean, err2 := sqstest.NewQueue(sqstest.Config{Name: "clean.fifo"})
	if err := errors.Join(err1, err2); err != nil {
		fmt.Println(err)
		return
	}
	client := sqstest.NewServer(raw, clean).Client()
	for _, q := range []*sqstest.Queue{raw, clean} {
		if _, err := client.SendMessage(ctx, input(q, "g", "hello")); err != nil {
			fmt.Println(err)
			return
		}
	}
	_, err := client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String("other.fifo"), MessageGroupId: aws.String("g"), MessageBody: aws.String("hello"),
	})
	var unknown *types.QueueDoesNotExist
	fmt.Println(len(raw.Messages()), len(clean.Messages()), errors.As(err, &unknown))
	// Output:
	// 1 1 true
}
