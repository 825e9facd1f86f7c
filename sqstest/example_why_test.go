package sqstest_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// The queue answers both sends with success, but does not store the second message.
// Suppressed explains why.
func ExampleQueue_Suppressed() {
	queue, err := sqstest.NewQueue(sqstest.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, group := range []string{"north", "south"} {
		_, err := queue.SendMessage(context.Background(), &sqs.SendMessageInput{
			QueueUrl: aws.String(queue.URL()), MessageBody: aws.String(`{"tile":"p32r29"}`), MessageGroupId: &group,
		})
		fmt.Println("sent to", group, err)
		queue.Advance(time.Minute)
	}
	for _, s := range queue.Suppressed() {
		left := s.Until.Sub(s.At).Round(time.Second)
		fmt.Printf("the message to %s is a duplicate of the one to %s, by content: %v, for another %v\n", s.GroupID, s.Original.GroupID, s.ContentBased, left)
	}
	// Output:
	// sent to north <nil>
	// sent to south <nil>
	// the message to south is a duplicate of the one to north, by content: true, for another 4m0s
}

// A test in virtual time waits for five minutes and is done immediately.
func Example_bubble() {
	_ = func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			queue, err := sqstest.NewQueue(sqstest.Config{})
			if err != nil {
				t.Fatal(err)
			}
			client := queue.Client() // a real *sqs.Client, made inside the bubble
			send := func() {
				_, err := client.SendMessage(t.Context(), &sqs.SendMessageInput{
					QueueUrl: aws.String(queue.URL()), MessageBody: aws.String("scene"), MessageGroupId: aws.String("g"),
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			send()
			time.Sleep(5 * time.Minute)
			send()
			if got := len(queue.Messages()); got != 2 {
				t.Errorf("got %d messages, want 2", got)
			}
		})
	}
}
