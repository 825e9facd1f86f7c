package consumer_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/consumer"
)

// Each attempt has a CONSUMER span that links to the creation of the event, and the
// instruments have the expected values.
func TestTelemetry(t *testing.T) {
	bubble(t, 0, func(w *world) {
		const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
		body := envelope(t, "kfm", job{"a", 1})
		_, err := w.queue.SendMessage(w.Context(), &sqs.SendMessageInput{
			QueueUrl: aws.String(w.queue.URL()), MessageBody: &body, MessageGroupId: aws.String("a"),
			MessageAttributes: map[string]types.MessageAttributeValue{"traceparent": {DataType: aws.String("String"), StringValue: aws.String(parent)}},
		})
		require.NoError(w, err)

		spans, reader := tracetest.NewInMemoryExporter(), sdkmetric.NewManualReader()
		var log bytes.Buffer
		c := w.config(func(ctx context.Context, m consumer.Message[job]) error {
			assert.True(w, trace.SpanContextFromContext(ctx).IsValid())
			if m.Attempt == 1 {
				return errors.New("first")
			}
			return nil
		})
		c.Decode = sqsfifo.DecodeEnvelope[job]
		c.Telemetry = consumer.Telemetry{
			TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)), MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)),
			Propagator: propagation.TraceContext{}, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		}
		_, stop := w.running(c)
		time.Sleep(time.Minute)
		var got metricdata.ResourceMetrics
		require.NoError(w, reader.Collect(w.Context(), &got))
		require.NoError(w, stop())

		ended := spans.GetSpans()
		require.Len(w, ended, 2)
		for _, s := range ended {
			assert.Equal(w, "process jobs.fifo", s.Name)
			assert.Equal(w, trace.SpanKindConsumer, s.SpanKind)
			require.Len(w, s.Links, 1)
			assert.Equal(w, "4bf92f3577b34da6a3ce929d0e0e4736", s.Links[0].SpanContext.TraceID().String())
			assert.NotEqual(w, s.Links[0].SpanContext.TraceID(), s.SpanContext.TraceID(), "a link, not a parent")
		}
		names := map[string]bool{}
		for _, scope := range got.ScopeMetrics {
			for _, m := range scope.Metrics {
				names[m.Name] = true
			}
		}
		for _, name := range []string{
			"messaging.process.duration", "messaging.client.consumed.messages", "sqs_fifo.consumer.event_age", "sqs_fifo.consumer.group.blocked",
			"sqs_fifo.consumer.oldest_head_age", "sqs_fifo.consumer.message.held", "sqs_fifo.consumer.buffer.usage", "sqs_fifo.consumer.handler.running",
			"sqs_fifo.consumer.group.sleeping", "sqs_fifo.consumer.outcomes", "sqs_fifo.consumer.receive.failed",
		} {
			assert.True(w, names[name], name)
		}
		assert.Contains(w, log.String(), "attempt failed")
		assert.NotContains(w, log.String(), "dedupe_key")
	})
}
