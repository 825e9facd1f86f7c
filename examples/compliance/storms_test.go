package storms_test

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	storms "github.com/kansas-frontier-matrix/sqsfifo/examples/compliance"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest/compliance"
)

func TestCompliance(t *testing.T) {
	compliance.TestProducer(t, compliance.Suite[storms.Storm]{
		Send: func(ctx context.Context, client *sqs.Client, queueURL string, s storms.Storm) error {
			producer, err := storms.NewProducer(client, queueURL)
			if err != nil {
				return err
			}
			defer producer.Close(ctx)
			_, err = producer.Send(ctx, s)
			return err
		},
		Events: []storms.Storm{
			{EventID: 10096222, State: "OKLAHOMA", Kind: "Tornado", Begin: time.Date(1950, 4, 28, 14, 45, 0, 0, time.UTC)},
			{EventID: 10120412, State: "TEXAS", Kind: "Tornado", Begin: time.Date(1950, 4, 29, 15, 30, 0, 0, time.UTC)},
		},
	})
}
