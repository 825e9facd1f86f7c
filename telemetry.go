package sqsfifo

import (
	"context"
	"errors"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// Telemetry are the OpenTelemetry providers of a producer. A nil field means
// the global one. The KFM instruments (contract v11.2.3, section 9) are
//
//	sqs_fifo.dedupe.collisions_detected  {collision}  one dedupe key with two messages, or one body with two sets of attributes
//	sqs_fifo.producer.violations         {violation}  findings for which a message was refused, by sqs_fifo.rule.id
//	sqs_fifo.body_hash.length_bytes      By           length of each body handed to SQS
//	sqs_fifo.dedupe_window_hits          {hit}        messages that SQS had already
//
// all with messaging.destination.name. Neither keys nor IDs are ever attributes
// of a metric. Each event has one PRODUCER span, whose context travels in the
// message attributes where there is room for it; it never enters the body.
type Telemetry struct {
	MeterProvider  metric.MeterProvider
	TracerProvider trace.TracerProvider
	Propagator     propagation.TextMapPropagator
}

// Version is the version of this module that telemetry reports.
const Version = "0.1.0"

// scope names the library in all that it emits.
const scope = "github.com/kansas-frontier-matrix/sqsfifo"

// Span attributes of the KFM key specification (v10.3.1, "Telemetry
// Requirements") and of this library.
const (
	attrIdempotencyKey    = attribute.Key("idempotency_key")
	attrDuplicateDetected = attribute.Key("duplicate_detected")
	attrReplayTriggered   = attribute.Key("replay_triggered")
	attrArtifactChecksum  = attribute.Key("artifact_checksum")
	attrCARELabel         = attribute.Key("care_label")
	attrDatasetID         = attribute.Key("dataset_id")
	attrVersion           = attribute.Key("version")
	attrEventID           = attribute.Key("sqs_fifo.event_id")
	attrRuleID            = attribute.Key("sqs_fifo.rule.id")
)

type telemetry struct {
	tracer     trace.Tracer
	propagator propagation.TextMapPropagator
	spanName   string
	spanStart  []trace.SpanStartOption

	collisions, violations, hits metric.Int64Counter
	bodyLength                   metric.Int64Histogram

	// Options are built once, as slices: they cost more than the measurement.
	add    []metric.AddOption
	record []metric.RecordOption
	byRule map[string][]metric.AddOption
}

func newTelemetry(t Telemetry, queueURL string) (*telemetry, error) {
	if t.MeterProvider == nil {
		t.MeterProvider = otel.GetMeterProvider()
	}
	if t.TracerProvider == nil {
		t.TracerProvider = otel.GetTracerProvider()
	}
	if t.Propagator == nil {
		t.Propagator = otel.GetTextMapPropagator()
	}
	name := queueName(queueURL)
	destination := semconv.MessagingDestinationName(name)
	spanAttributes := []attribute.KeyValue{
		semconv.MessagingSystemAWSSQS,
		semconv.MessagingOperationName("send"),
		semconv.MessagingOperationTypeSend,
		destination,
		semconv.AWSSQSQueueURL(queueURL),
	}
	if u, err := url.Parse(queueURL); err == nil && u.Hostname() != "" {
		spanAttributes = append(spanAttributes, semconv.ServerAddress(u.Hostname()))
	}
	here := metric.WithAttributeSet(attribute.NewSet(destination))
	out := &telemetry{
		tracer:     t.TracerProvider.Tracer(scope, trace.WithInstrumentationVersion(Version), trace.WithSchemaURL(semconv.SchemaURL)),
		propagator: t.Propagator,
		spanName:   "send " + name,
		spanStart:  []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(spanAttributes...)},
		add:        []metric.AddOption{here},
		record:     []metric.RecordOption{here},
		byRule:     map[string][]metric.AddOption{},
	}
	for _, r := range lint.Rules() {
		out.byRule[r.ID] = []metric.AddOption{metric.WithAttributeSet(attribute.NewSet(destination, attrRuleID.String(r.ID)))}
	}

	meter := t.MeterProvider.Meter(scope, metric.WithInstrumentationVersion(Version), metric.WithSchemaURL(semconv.SchemaURL))
	var err1, err2, err3, err4 error
	out.collisions, err1 = meter.Int64Counter("sqs_fifo.dedupe.collisions_detected", metric.WithUnit("{collision}"),
		metric.WithDescription("Messages refused because their dedupe key or their body was used for another message within the deduplication interval."))
	out.violations, err2 = meter.Int64Counter("sqs_fifo.producer.violations", metric.WithUnit("{violation}"),
		metric.WithDescription("Findings for which a message was refused."))
	out.bodyLength, err3 = meter.Int64Histogram("sqs_fifo.body_hash.length_bytes", metric.WithUnit("By"),
		metric.WithDescription("Length of the bodies that SQS hashes."),
		metric.WithExplicitBucketBoundaries(128, 256, 512, 1<<10, 2<<10, 4<<10, 8<<10, 16<<10, 64<<10, 256<<10, 1<<20))
	out.hits, err4 = meter.Int64Counter("sqs_fifo.dedupe_window_hits", metric.WithUnit("{hit}"),
		metric.WithDescription("Messages that SQS recognised as duplicates within the deduplication interval."))
	return out, errors.Join(err1, err2, err3, err4)
}

// queueName returns the last segment of a queue URL.
func queueName(queueURL string) string {
	return queueURL[strings.LastIndexByte(queueURL, '/')+1:]
}

// start begins the span of one event.
func (t *telemetry) start(ctx context.Context) (context.Context, trace.Span) {
	return t.tracer.Start(ctx, t.spanName, t.spanStart...)
}

// refused counts a message that was not sent because of what it is.
func (t *telemetry) refused(ctx context.Context, err error) {
	var violation *ViolationError
	if errors.As(err, &violation) {
		for _, f := range violation.Findings {
			if o, ok := t.byRule[f.Rule]; ok {
				t.violations.Add(ctx, 1, o...)
			}
		}
	}
}

func (t *telemetry) collided(ctx context.Context) { t.collisions.Add(ctx, 1, t.add...) }

// describe sets what is known of the message before it is sent.
func (t *telemetry) describe(span trace.Span, m *Message) {
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(attrEventID.String(m.EventID.String()))
	if d := m.Dataset; d != nil {
		span.SetAttributes(attrDatasetID.String(d.ID), attrVersion.String(d.Version))
		if key, err := d.IdempotencyKey(); err == nil {
			span.SetAttributes(attrIdempotencyKey.String(key))
		}
		if d.ArtifactChecksum != "" {
			span.SetAttributes(attrArtifactChecksum.String(d.ArtifactChecksum))
		}
		if d.CARELabel != "" {
			span.SetAttributes(attrCARELabel.String(d.CARELabel))
		}
	}
}

// finish ends the span with the event's result. A nil delivery is an event that
// was refused before it was one.
func (t *telemetry) finish(ctx context.Context, span trace.Span, d *delivery, result Result) {
	r, err := result.Receipt, result.Err
	replay := false
	if d != nil && d.attempts > 0 {
		replay = !d.claim.first
		t.bodyLength.Record(ctx, int64(len(d.msg.Body)), t.record...)
	}
	if r.Duplicate {
		t.hits.Add(ctx, 1, t.add...)
	}
	if span.IsRecording() {
		span.SetAttributes(attrDuplicateDetected.Bool(r.Duplicate), attrReplayTriggered.Bool(replay))
		if err == nil {
			span.SetAttributes(semconv.MessagingMessageID(r.MessageID))
		} else {
			span.SetAttributes(semconv.ErrorTypeKey.String(errorType(err)))
			// The text of an error quotes keys and the service; the type is enough here.
			span.SetStatus(codes.Error, "")
		}
	}
	span.End()
}

func errorType(err error) string {
	var typed interface{ ErrorType() string }
	switch {
	case errors.As(err, &typed):
		return typed.ErrorType()
	case errors.Is(err, ErrClosed):
		return "closed"
	case errors.Is(err, ErrGroupPaused):
		return "group_paused"
	default:
		return "_OTHER"
	}
}

// attributesWithTrace returns the SQS form of the message's attributes with the
// trace context of ctx among them and the bytes that it takes, or without it where
// the limits of the message leave no room (F-073, F-079).
func (t *telemetry) attributesWithTrace(ctx context.Context, attributes map[string]string, free int) (out map[string]types.MessageAttributeValue, added int) {
	out = make(map[string]types.MessageAttributeValue, len(attributes)+1)
	for name, value := range attributes {
		out[name] = stringAttribute(value)
	}
	carrier := propagation.MapCarrier{}
	t.propagator.Inject(ctx, carrier)
	need := 0
	for name, value := range carrier {
		if _, taken := out[name]; taken || value == "" {
			delete(carrier, name)
			continue
		}
		need += len(name) + len(stringType) + len(value)
	}
	if len(out)+len(carrier) > maxAttributes || need > free {
		return out, 0
	}
	for name, value := range carrier {
		out[name] = stringAttribute(value)
	}
	return out, need
}

const (
	stringType    = "String"
	maxAttributes = 10
)

func stringAttribute(value string) types.MessageAttributeValue {
	return types.MessageAttributeValue{DataType: aws.String(stringType), StringValue: &value}
}
