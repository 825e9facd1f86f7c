package main

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/kansas-frontier-matrix/sqsfifo/sqstest/compliance"
)

func TestCompliance(t *testing.T) {
	scenes, err := embeddedScenes()
	require.NoError(t, err)
	compliance.TestProducer(t, compliance.Suite[Scene]{
		Send: func(ctx context.Context, client *sqs.Client, queueURL string, s Scene) error {
			producer, err := newProducer(client, queueURL, metric.NewMeterProvider())
			if err != nil {
				return err
			}
			defer producer.Close(ctx)
			_, err = producer.Send(ctx, s)
			return err
		},
		Events: scenes,
	})
}
