// Package observe provides the instruments and spans of producers and consumers: all
// telemetry sent through OpenTelemetry. Methods may be called from any goroutine. The
// package does not know events, errors or rules: callers pass plain values and decide
// their meaning. Telemetry never contains a payload.
//
// Do not call New, NewConsumer or Close while you hold a lock that a Config's Snapshot
// function takes: OpenTelemetry's SDK holds a lock of its own while it calls Snapshot,
// and New, NewConsumer and Close wait for this lock, so both goroutines would wait
// forever.
package observe

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
)

// Attributes of the KFM key specification (v10.3.1, "Telemetry Requirements") and of this
// library.
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
	attrAction            = attribute.Key("sqs_fifo.action")
	attrOutcome           = attribute.Key("sqs_fifo.outcome")
	attrCollisionKind     = attribute.Key("sqs_fifo.collision.kind")
	attrReplay            = attribute.Key("sqs_fifo.replay")
	attrEventSource       = attribute.Key("sqs_fifo.event.source")
)

// otherError is the error.type of an error without a known code.
const otherError = "_OTHER"

// Config configures an Observer. For a nil provider or propagator, the Observer uses
// OpenTelemetry's global one.
type Config struct {
	Meter      metric.MeterProvider
	Tracer     trace.TracerProvider
	Propagator propagation.TextMapPropagator

	QueueURL string
	Version  string // version of the library

	// Rules lists the IDs of the rules whose violations [Observer.Violated] counts. The
	// list limits the number of values of the metric attribute.
	Rules []string

	// NoEventSpans disables the spans of events. Requests still have spans.
	NoEventSpans bool

	// Metric readers call Snapshot on their own goroutines; Close calls it once more. If
	// Snapshot is nil, its instruments are not created.
	//
	// New and Close may wait for a running call of Snapshot. So Snapshot must not take a
	// lock that a caller of New or Close holds.
	Snapshot func() Snapshot

	// StoreSnapshot is like Snapshot, for the store's counts. Nil means that the producer
	// has no store.
	StoreSnapshot func() StoreSnapshot

	// ValidAttribute reports whether SQS accepts a message attribute of type String. Nil
	// means that SQS accepts all.
	ValidAttribute func(name, value string) bool
}

// Observer is the telemetry of a producer.
type Observer struct {
	scope
	instruments
	validAttribute func(name, value string) bool
	unregister     func()
	noEventSpans   bool

	mu      sync.Mutex
	own     *Source
	sources []*Source // sources[0] is own

	eventName  string
	eventStart []trace.SpanStartOption
	callName   string
	callStart  []trace.SpanStartOption
}

// New creates the instruments. After an error, no callback is registered with the meter
// provider.
func New(c Config) (*Observer, error) {
	o := &Observer{
		scope: newScope(c.Meter, c.Tracer, c.Propagator, c.Version), validAttribute: c.ValidAttribute, noEventSpans: c.NoEventSpans,
	}
	queue := c.QueueURL[strings.LastIndexByte(c.QueueURL, '/')+1:]
	common := trace.WithAttributes(spanAttributes(c.QueueURL)...)
	start := func(kind trace.SpanKind, operation string, operationType attribute.KeyValue) []trace.SpanStartOption {
		return []trace.SpanStartOption{
			trace.WithSpanKind(kind), common,
			trace.WithAttributes(semconv.MessagingOperationName(operation), operationType),
		}
	}
	o.eventName, o.callName = "create "+queue, "send "+queue
	o.eventStart = start(trace.SpanKindProducer, "create", semconv.MessagingOperationTypeCreate)
	o.callStart = start(trace.SpanKindClient, "send", semconv.MessagingOperationTypeSend)

	if err := o.create(o.meter, c.QueueURL, c.Rules, c.StoreSnapshot != nil); err != nil {
		return nil, err
	}
	o.own = o.Source("")
	unregister, err := o.observeSnapshots(&c)
	if err != nil {
		return nil, err
	}
	unregisterStore, err := o.observeStore(&c)
	if err != nil {
		unregister()
		return nil, err
	}
	o.unregister = sync.OnceFunc(func() {
		unregister()
		unregisterStore()
	})
	return o, nil
}

// queueAttributes returns the attribute that all metrics have, the name of the queue. The
// metrics that OpenTelemetry's semantic conventions define also have the attributes of the
// server and of the messaging system (see requestAttributes). The other metrics do not,
// because more attributes make a measurement more expensive.
func queueAttributes(queueURL string) []attribute.KeyValue {
	return []attribute.KeyValue{semconv.MessagingDestinationName(queueURL[strings.LastIndexByte(queueURL, '/')+1:])}
}

// requestAttributes returns attributes of the queue, its server and the messaging system.
// All spans have these attributes, and so do the metrics that OpenTelemetry's semantic
// conventions define.
func requestAttributes(queueURL string) []attribute.KeyValue {
	out := append(queueAttributes(queueURL), systemAttributes()...)
	u, err := url.Parse(queueURL)
	if err != nil || u.Hostname() == "" {
		return out
	}
	out = append(out, semconv.ServerAddress(u.Hostname()))
	port, err := strconv.Atoi(u.Port())
	switch {
	case err == nil:
	case u.Scheme == "http":
		port = 80
	default:
		port = 443
	}
	return append(out, semconv.ServerPort(port))
}

func spanAttributes(queueURL string) []attribute.KeyValue {
	return append(requestAttributes(queueURL), semconv.AWSSQSQueueURL(queueURL))
}

// Close adds the counts since the last reading to the counters. After Close has returned,
// metric readers no longer call Config.Snapshot and Config.StoreSnapshot. All other methods
// continue to work. Close may be called several times.
//
// Close may wait for a running call of Snapshot or StoreSnapshot. So the caller must not
// hold a lock that one of the two takes.
func (o *Observer) Close() { o.unregister() }

// StartEvent starts an event's PRODUCER span, which EndEvent ends. With NoEventSpans set,
// or while the tracer provider is unset or a no-op, StartEvent returns ctx and a no-op
// span.
func (o *Observer) StartEvent(ctx context.Context) (context.Context, trace.Span) {
	if o.noEventSpans || o.isSilent() {
		return ctx, noop.Span{}
	}
	return o.tracer.Start(ctx, o.eventName, o.eventStart...)
}

// EventAttributes has the values of the attributes of an event's span. Empty fields are omitted
// from the span.
type EventAttributes struct{ EventID, IdempotencyKey, DatasetID, Version, ArtifactChecksum, CARELabel string }

// Describe sets attributes of an event's span. It calls the function `event` only if the
// span is recording.
func (o *Observer) Describe(span trace.Span, event func() EventAttributes) {
	if !span.IsRecording() {
		return
	}
	e := event()
	attributes := []attribute.KeyValue{
		attrEventID.String(e.EventID), attrIdempotencyKey.String(e.IdempotencyKey), attrDatasetID.String(e.DatasetID),
		attrVersion.String(e.Version), attrArtifactChecksum.String(e.ArtifactChecksum), attrCARELabel.String(e.CARELabel),
	}
	span.SetAttributes(slices.DeleteFunc(attributes, func(kv attribute.KeyValue) bool { return kv.Value.AsString() == "" })...)
}

// Ended describes the outcome of an event, for metrics and for the event's span.
type Ended struct {
	Source  *Source // nil means the telemetry of the whole queue
	Outcome Outcome

	Took                time.Duration // from submission to outcome
	BodyBytes, Attempts int
	Duplicate, Replay   bool
	Recorded            bool   // the store recognised the duplicate, not SQS
	MessageID           string // ignored after an error
	ErrorType           string // empty on success
}

// EndEvent counts an event's outcome and ends its span. Call Violated for its violations
// first: an ended span accepts no span events.
func (o *Observer) EndEvent(ctx context.Context, span trace.Span, e Ended) {
	o.countEvent(ctx, &e)
	o.countOutcome(ctx, &e)
	if span.IsRecording() {
		span.SetAttributes(attrDuplicateDetected.Bool(e.Duplicate), attrReplayTriggered.Bool(e.Replay))
		if e.ErrorType == "" {
			span.SetAttributes(semconv.MessagingMessageID(e.MessageID))
		} else {
			fail(span, e.ErrorType)
		}
	}
	span.End()
}

// fail marks a span as failed. It records only the error type, because the error text may
// quote keys and service responses.
func fail(span trace.Span, errorType string) {
	span.SetAttributes(semconv.ErrorTypeKey.String(errorType))
	span.SetStatus(codes.Error, "")
}

// Call is a request between StartCall and EndCall.
type Call struct {
	span  trace.Span
	began time.Time
}

// StartCall starts the CLIENT span of a request, linked to the spans of its events. EndCall
// ends the request's span. The number n of messages is at least 1. The function `origin`
// returns the span context and the ID of the event in message i.
func (o *Observer) StartCall(ctx context.Context, n int, origin func(i int) (trace.SpanContext, string)) (context.Context, Call) {
	c := Call{noop.Span{}, time.Now()}
	if o.isSilent() {
		return ctx, c
	}
	var links []trace.Link
	for i := range n {
		if span, id := origin(i); span.IsValid() {
			links = append(links, trace.Link{SpanContext: span, Attributes: []attribute.KeyValue{attrEventID.String(id)}})
		}
	}
	options := append(slices.Clip(o.callStart), trace.WithLinks(links...))
	if n > 1 {
		options = append(options, trace.WithAttributes(semconv.MessagingBatchMessageCount(n)))
	}
	ctx, c.span = o.tracer.Start(ctx, o.callName, options...)
	return ctx, c
}

// EndCall counts a request and its messages, and ends the request's span. The parameter
// `answers` has one answer for each message, even after an error of the whole request (err).
// An empty requestID is omitted from the span.
func (o *Observer) EndCall(ctx context.Context, c Call, requestID string, answers []attempt.Answer, err error) {
	o.countCall(ctx, time.Since(c.began), answers, err)
	if c.span.IsRecording() {
		if requestID != "" {
			c.span.SetAttributes(semconv.AWSRequestID(requestID))
		}
		if err != nil {
			fail(c.span, requestErrorType(answers))
		}
	}
	c.span.End()
}

// Violated counts a violation of a rule. The event was refused or, if the parameter `warned`
// is true, sent anyway. Violated also adds a span event to the span in ctx.
func (o *Observer) Violated(ctx context.Context, rule string, warned bool) {
	o.countViolation(ctx, rule, warned)
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		span.AddEvent("sqs_fifo.violation", trace.WithAttributes(attrRuleID.String(rule)))
	}
}

const (
	stringType    = "String" // type of each new attribute; its six bytes count for the message's size
	maxAttributes = 10       // maximum number of attributes of a message
)

// Inject returns the trace context and baggage of ctx as attributes of type String, and the
// number of bytes that SQS counts for them. The parameter `existing` has the attributes of
// the message; Inject does not change this map.
//
// Inject returns nil if:
//   - the message already has any of the new attributes;
//   - the new attributes need more than maxBytes bytes;
//   - the message would exceed SQS's attribute limit.
func (o *Observer) Inject(ctx context.Context, existing map[string]string, maxBytes int) (carried map[string]string, size int) {
	// Without a trace and baggage, there is nothing to propagate.
	if !trace.SpanContextFromContext(ctx).IsValid() && baggage.FromContext(ctx).Len() == 0 {
		return nil, 0
	}
	carrier := o.contextOf(ctx)
	for name, value := range carrier {
		if _, taken := existing[name]; taken {
			// The message already carries a trace. Adding only the missing fields would
			// mix two traces.
			return nil, 0
		}
		if o.validAttribute != nil && !o.validAttribute(name, value) {
			delete(carrier, name) // SQS would refuse the message with this attribute
			continue
		}
		size += len(name) + len(stringType) + len(value)
	}
	if len(carrier) == 0 || len(existing)+len(carrier) > maxAttributes || size > maxBytes {
		return nil, 0
	}
	return carrier, size
}

// contextOf returns the trace context of ctx, or nil if the propagator panics. Without
// this recovery the event would not be sent, and the event's span would stay open.
func (o *Observer) contextOf(ctx context.Context) (carrier propagation.MapCarrier) {
	defer func() {
		if recover() != nil {
			carrier = nil
		}
	}()
	carrier = propagation.MapCarrier{}
	o.propagator.Inject(ctx, carrier)
	return carrier
}

// errorTypeOf returns the error code of SQS, one of a small set of codes.
func errorTypeOf(a attempt.Answer) string {
	if a.Code == "" {
		return otherError
	}
	return a.Code
}

// requestErrorType returns the error type of a failed request, which is the same for all
// its messages.
func requestErrorType(answers []attempt.Answer) string {
	if len(answers) == 0 {
		return otherError
	}
	return errorTypeOf(answers[0])
}
