// Command producer sends each event of standard input to a FIFO queue, one JSON line each. The
// body has the time of the send, so a retry is delivered twice.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

type order struct {
	ID     string    `json:"id"`
	At     time.Time `json:"at"`
	SentAt time.Time `json:"sent_at"`
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return err
	}
	client := sqs.NewFromConfig(cfg)
	for lines := json.NewDecoder(os.Stdin); lines.More(); {
		var o order
		if err := lines.Decode(&o); err != nil {
			return err
		}
		o.SentAt = time.Now()
		body, err := json.Marshal(o)
		if err != nil {
			return err
		}
		out, err := client.SendMessage(ctx, &sqs.SendMessageInput{
			QueueUrl: aws.String(os.Getenv("SQSFIFO_QUEUE_URL")), MessageBody: aws.String(string(body)), MessageGroupId: aws.String("orders"),
		})
		if err != nil {
			return err
		}
		fmt.Println(*out.MessageId)
	}
	return nil
}
