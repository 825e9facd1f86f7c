package sqstest_test

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// A message that no consumer deletes ends in the dead-letter queue. There its
// deduplication ID is the MessageId, not the hash of the body, and another send of the
// same body is not suppressed.
func ExampleConfig_deadLetterQueue() {
	ctx := context.Background()
	dead, err := sqstest.NewQueue(sqstest.Config{Name: "dead.fifo"})
	if err != nil {
		fmt.Println(err)
		return
	}
	q, err := sqstest.NewQueue(sqstest.Config{DeadLetterQueue: dead, MaxReceiveCount: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	sent, err := q.SendMessage(ctx, input(q, "p32r29", "scene"))
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 3 {
		out, err := q.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: aws.String(q.URL())})
		fmt.Println("received", len(out.Messages), err)
		q.Advance(30 * time.Second)
	}
	for _, m := range dead.Messages() {
		fmt.Println("dead:", m.Body, m.MessageID == *sent.MessageId, m.DeduplicationID == *sent.MessageId)
	}
	// Output:
	// received 1 <nil>
	// received 1 <nil>
	// received 0 <nil>
	// dead: scene true true
}

// A new server has no queues, like a new account at AWS. CreateQueue adds a queue.
func ExampleServer_CreateQueue() {
	ctx := context.Background()
	s := sqstest.NewServer()
	client := s.Client() // or s itself, without the wire format
	_, err := client.CreateQueue(ctx, &sqs.CreateQueueInput{
		QueueName:  aws.String("scenes.fifo"),
		Attributes: map[string]string{"FifoQueue": "true", "ContentBasedDeduplication": "true"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		_, err := client.SendMessage(ctx, &sqs.SendMessageInput{
			QueueUrl: aws.String("scenes.fifo"), MessageGroupId: aws.String("p32r29"), MessageBody: aws.String("scene"),
		})
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	q := s.Queue("scenes.fifo")
	fmt.Println("stored", len(q.Messages()), "suppressed", len(q.Suppressed()))

	out, err := client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: aws.String("scenes.fifo"), AttributeNames: []types.QueueAttributeName{"DeduplicationScope"},
	})
	fmt.Println(out.Attributes, err)
	// Output:
	// stored 1 suppressed 1
	// map[DeduplicationScope:queue] <nil>
}
