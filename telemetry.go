package sqsfifo

import (
	"context"
	"errors"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// Telemetry are the OpenTelemetry providers of a producer, of which a nil one
// means the global one, and its provenance sink. The KFM instruments (contract v11.2.3, section 9) are
//
//	sqs_fifo.dedupe.collisions_detected  {collision}  one dedupe key with two messages, or one body with two sets of attributes
//	sqs_fifo.producer.violations         {violation}  findings, by sqs_fifo.rule.id and sqs_fifo.action, reject or warn
//	sqs_fifo.body_hash.length_bytes      By           length of each body handed to SQS
//	sqs_fifo.dedupe_window_hits          {hit}        messages that SQS had already
//
// all with messaging.destination.name; those of the semantic conventions for
// messaging clients are
//
//	messaging.client.sent.messages       {message}    messages that SQS answered or did not, by error.type
//	messaging.client.operation.duration  s            length of each request, by error.type
//
// Neither keys nor IDs are ever attributes of a metric. Each event has one
// PRODUCER span "create <queue>" from the call to its outcome, and each request
// one CLIENT span "send <queue>" with a link to the spans of its events. The
// context of an event's span travels in the message attributes where there is room
// for it; it never enters the body. No span, metric or error of a span holds a
// payload.
type Telemetry struct {
	MeterProvider  metric.MeterProvider
	TracerProvider trace.TracerProvider
	Propagator     propagation.TextMapPropagator

	// Provenance takes one record for each event. Nil means none. What it does
	// not take counts in sqs_fifo.provenance.dropped {record}.
	Provenance ProvenanceSink
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
)

type telemetry struct {
	instruments
	tracer     trace.Tracer
	silent     bool                 // spans lead nowhere
	unset      trace.TracerProvider // they do while this is the global provider
	propagator propagation.TextMapPropagator
	eventName  string
	eventStart []trace.SpanStartOption
	callName   string
	callStart  []trace.SpanStartOption
}

func newTelemetry(t Telemetry, queueURL string) (*telemetry, error) {
	var unset trace.TracerProvider
	if t.MeterProvider == nil {
		t.MeterProvider = otel.GetMeterProvider()
	}
	if t.TracerProvider == nil {
		t.TracerProvider = otel.GetTracerProvider()
		if isUnset(t.TracerProvider) {
			unset = t.TracerProvider
		}
	}
	if t.Propagator == nil {
		t.Propagator = otel.GetTextMapPropagator()
	}
	name := queueName(queueURL)
	common := []attribute.KeyValue{
		semconv.MessagingSystemAWSSQS,
		semconv.MessagingDestinationName(name),
		semconv.AWSSQSQueueURL(queueURL),
	}
	if u, err := url.Parse(queueURL); err == nil && u.Hostname() != "" {
		common = append(common, semconv.ServerAddress(u.Hostname()))
		if port, err := strconv.Atoi(u.Port()); err == nil {
			common = append(common, semconv.ServerPort(port))
		}
	}
	start := func(kind trace.SpanKind, operation string, operationType attribute.KeyValue) []trace.SpanStartOption {
		return []trace.SpanStartOption{
			trace.WithSpanKind(kind), trace.WithAttributes(common...),
			trace.WithAttributes(semconv.MessagingOperationName(operation), operationType),
		}
	}
	_, silent := t.TracerProvider.(noop.TracerProvider)
	out := &telemetry{
		tracer:     t.TracerProvider.Tracer(scope, trace.WithInstrumentationVersion(Version), trace.WithSchemaURL(semconv.SchemaURL)),
		silent:     silent,
		unset:      unset,
		propagator: t.Propagator,
		eventName:  "create " + name,
		eventStart: start(trace.SpanKindProducer, "create", semconv.MessagingOperationTypeCreate),
		callName:   "send " + name,
		callStart:  start(trace.SpanKindClient, "send", semconv.MessagingOperationTypeSend),
	}
	var err error
	out.instruments, err = newInstruments(t.MeterProvider.Meter(scope, metric.WithInstrumentationVersion(Version), metric.WithSchemaURL(semconv.SchemaURL)), name)
	return out, err
}

// queueName returns the last segment of a queue URL.
func queueName(queueURL string) string {
	return queueURL[strings.LastIndexByte(queueURL, '/')+1:]
}

// isUnset reports whether the global provider is the one that stands there until
// a program sets its own. Its spans lead nowhere and still cost.
func isUnset(p trace.TracerProvider) bool {
	t := reflect.TypeOf(p)
	return t.Kind() == reflect.Pointer && t.Elem().PkgPath() == "go.opentelemetry.io/otel/internal/global"
}

func (t *telemetry) isSilent() bool {
	return t.silent || t.unset != nil && otel.GetTracerProvider() == t.unset
}

// start begins the span of one event.
func (t *telemetry) start(ctx context.Context) (context.Context, trace.Span) {
	if t.isSilent() {
		return ctx, noop.Span{}
	}
	return t.tracer.Start(ctx, t.eventName, t.eventStart...)
}

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

// droppedRecord counts a provenance record that the sink did not take.
func (t *telemetry) droppedRecord() { t.dropped.Add(context.Background(), 1, t.add...) }

// finish counts the outcome of an event and ends its span.
func (t *telemetry) finish(e ended) {
	p := e.p
	t.count(p, e)
	if p.span.IsRecording() {
		p.span.SetAttributes(attrDuplicateDetected.Bool(e.receipt.Duplicate), attrReplayTriggered.Bool(e.replay))
		if e.err == nil {
			p.span.SetAttributes(semconv.MessagingMessageID(e.receipt.MessageID))
		} else {
			p.span.SetAttributes(semconv.ErrorTypeKey.String(errorType(e.err)))
			// The text of an error quotes keys and the service; the type is enough here.
			p.span.SetStatus(codes.Error, "")
		}
	}
	p.span.End()
}

// call is a request under way.
type call struct {
	span  trace.Span
	began time.Time
}

// startCall begins the span of a request.
func (t *telemetry) startCall(ctx context.Context, batch []*pending) (context.Context, call) {
	c := call{noop.Span{}, time.Now()}
	if t.isSilent() {
		return ctx, c
	}
	options := t.callStart
	if batch[0].span.SpanContext().IsValid() {
		links := make([]trace.Link, len(batch))
		for i, p := range batch {
			links[i] = trace.Link{SpanContext: p.span.SpanContext()}
		}
		options = append(slices.Clip(options), trace.WithLinks(links...))
		if len(batch) > 1 {
			options = append(options, trace.WithAttributes(semconv.MessagingBatchMessageCount(len(batch))))
		}
	}
	ctx, c.span = t.tracer.Start(ctx, t.callName, options...)
	return ctx, c
}

// finishCall counts a request and its messages and ends its span. The outcomes
// are one for each message, whatever the error of the call.
func (t *telemetry) finishCall(ctx context.Context, c call, outcomes []outcome, err error) {
	t.countCall(ctx, time.Since(c.began), outcomes, err)
	if err != nil && c.span.IsRecording() {
		c.span.SetAttributes(semconv.ErrorTypeKey.String(callErrorType(outcomes[0])))
		c.span.SetStatus(codes.Error, "")
	}
	c.span.End()
}

func errorType(err error) string {
	var typed interface{ ErrorType() string }
	switch {
	case errors.Is(err, ErrClosed):
		return "closed"
	case errors.Is(err, ErrGroupPaused):
		return "group_paused"
	case errors.Is(err, ErrOvertaken):
		return "overtaken"
	case errors.Is(err, ErrBufferFull):
		return "buffer_full"
	case errors.As(err, &typed):
		return typed.ErrorType()
	default:
		return "_OTHER"
	}
}

// attributesWithTrace returns the SQS form of the message's attributes with the
// trace context of ctx among them and the bytes that it takes, or without it where
// the limits of the message leave no room (F-073, F-079).
func (t *telemetry) attributesWithTrace(ctx context.Context, attributes map[string]string, free int) (out map[string]types.MessageAttributeValue, added int) {
	// Without a trace or baggage a propagator has nothing to say.
	traced := trace.SpanContextFromContext(ctx).IsValid() || baggage.FromContext(ctx).Len() > 0
	if len(attributes) == 0 && !traced {
		return nil, 0
	}
	out = make(map[string]types.MessageAttributeValue, len(attributes)+1)
	for name, value := range attributes {
		out[name] = stringAttribute(value)
	}
	if !traced {
		return out, 0
	}
	carrier := propagation.MapCarrier{}
	t.propagator.Inject(ctx, carrier)
	need := 0
	for name, value := range carrier {
		_, taken := out[name]
		if taken || lint.CheckAttribute(name, lint.Attribute{DataType: stringType, StringValue: value}) != nil {
			delete(carrier, name) // SQS would refuse the event for what a propagator calls it
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

var stringDataType = stringType

func stringAttribute(value string) types.MessageAttributeValue {
	return types.MessageAttributeValue{DataType: &stringDataType, StringValue: &value}
}
