package consumer_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/consumer"
)

// A client that cannot reach the queue or the parking queue is named by Preflight and by Run,
// without a request.
func TestUnreachableQueue(t *testing.T) {
	const (
		here    = "https://sqs.eu-central-1.amazonaws.com/123456789012/jobs.fifo"
		there   = "https://sqs.us-east-1.amazonaws.com/123456789012/jobs.fifo"
		parking = "https://sqs.eu-central-1.amazonaws.com/123456789012/parking.fifo"
	)
	for _, tc := range []struct{ region, queue, parking, problem string }{
		{"", here, parking, "no region"},
		{"eu-central-1", there, parking, "the queue is in the region us-east-1"},
		{"eu-central-1", "http://localhost:4566/000000000000/jobs.fifo", parking, "the host of the URL is not one of SQS"},
		{"eu-central-1", here, there, "the queue is in the region us-east-1"},
	} {
		client := sqs.New(sqs.Options{Region: tc.region, Credentials: aws.AnonymousCredentials{}, HTTPClient: noRequest{t}})
		c, err := consumer.New(client, consumer.Config[job]{
			QueueURL: tc.queue, Decode: consumer.JSON(job.String), Handle: func(context.Context, consumer.Message[job]) error { return nil },
			Failure: consumer.Failure{Action: consumer.ActionPark, ParkingQueue: tc.parking},
		})
		require.NoError(t, err)
		var unfit *consumer.QueueError
		if tc.parking != there { // Preflight would ask for the attributes of the queue first
			_, err = c.Preflight(t.Context())
			require.ErrorAs(t, err, &unfit)
			require.ErrorContains(t, err, tc.problem)
		}
		err = c.Run(t.Context())
		require.ErrorAs(t, err, &unfit)
		require.ErrorContains(t, err, tc.problem)
		require.ErrorIs(t, c.Health(), unfit)
	}
}

// noRequest is an HTTP client that must not be used.
type noRequest struct{ t *testing.T }

func (n noRequest) Do(r *http.Request) (*http.Response, error) {
	n.t.Errorf("a request to %s", r.URL)
	return nil, http.ErrServerClosed
}
