// Package observe owns the instruments and spans of a producer, all that it emits
// through OpenTelemetry. Its methods may be called from any goroutine; New and Close
// must not be called under a lock, because an SDK calls Config.Snapshot under
// one of its own. The package does not know events, errors or rules: it takes plain
// values, and the caller decides what they are. Nothing it emits holds a payload.
package observe

import (
	"context"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
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

// Scope is the instrumentation scope of all that the library emits.
const Scope = "github.com/kansas-frontier-matrix/sqsfifo"

// Attributes of the KFM key specification (v10.3.1, "Telemetry Requirements") and
// of this library.
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
)

// otherError is the error.type of an error without a better one.
const otherError = "_OTHER"

// Config describes an Observer. Nil providers and a nil propagator mean the global
// ones.
type Config struct {
	Meter      metric.MeterProvider
	Tracer     trace.TracerProvider
	Propagator propagation.TextMapPropagator

	QueueURL string
	Version  string // of the library

	// Rules are the IDs that Violated counts. They bound the attribute.
	Rules []string

	// Snapshot is called by the readers of the metrics. Nil means that there are no
	// such instruments. It is called from the goroutines of the metric
	// readers, under a lock of the SDK and none of this package. It may take a
	// lock of its own as long as nobody calls New or Close under that lock.
	Snapshot func() Snapshot

	// StoreSnapshot is the same for what concerns a store. Nil means that there is none.
	StoreSnapshot func() StoreSnapshot

	// ValidAttribute reports whether SQS accepts a message attribute of type
	// String. Nil means that it accepts all of them.
	ValidAttribute func(name, value string) bool
}

// Observer is the telemetry of one producer.
type Observer struct {
	instruments
	tracer         trace.Tracer
	silent         bool                 // spans lead nowhere
	unset          trace.TracerProvider // spans lead nowhere while this is the global provider
	propagator     propagation.TextMapPropagator
	validAttribute func(name, value string) bool
	unregister     func()

	eventName  string
	eventStart []trace.SpanStartOption
	callName   string
	callStart  []trace.SpanStartOption
}

// New creates the instruments. After an error nothing is registered.
func New(c Config) (*Observer, error) {
	o := &Observer{validAttribute: c.ValidAttribute}
	if c.Meter == nil {
		c.Meter = otel.GetMeterProvider()
	}
	if c.Tracer == nil {
		c.Tracer = otel.GetTracerProvider()
		if isUnset(c.Tracer) {
			o.unset = c.Tracer
		}
	}
	if o.propagator = c.Propagator; c.Propagator == nil {
		o.propagator = otel.GetTextMapPropagator()
	}
	_, o.silent = c.Tracer.(noop.TracerProvider)
	o.tracer = c.Tracer.Tracer(Scope, trace.WithInstrumentationVersion(c.Version), trace.WithSchemaURL(semconv.SchemaURL))

	queue := c.QueueURL[strings.LastIndexByte(c.QueueURL, '/')+1:]
	common := trace.WithAttributes(destination(queue, c.QueueURL)...)
	start := func(kind trace.SpanKind, operation string, operationType attribute.KeyValue) []trace.SpanStartOption {
		return []trace.SpanStartOption{
			trace.WithSpanKind(kind), common,
			trace.WithAttributes(semconv.MessagingOperationName(operation), operationType),
		}
	}
	o.eventName, o.callName = "create "+queue, "send "+queue
	o.eventStart = start(trace.SpanKindProducer, "create", semconv.MessagingOperationTypeCreate)
	o.callStart = start(trace.SpanKindClient, "send", semconv.MessagingOperationTypeSend)

	meter := c.Meter.Meter(Scope, metric.WithInstrumentationVersion(c.Version), metric.WithSchemaURL(semconv.SchemaURL))
	if err := o.create(meter, queue, c.Rules); err != nil {
		return nil, err
	}
	unregister, err := observeSnapshots(meter, queue, c.Snapshot)
	if err != nil {
		return nil, err
	}
	unregisterStore, err := observeStore(meter, queue, c.StoreSnapshot)
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

// destination returns the span attributes that name the queue.
func destination(queue, queueURL string) []attribute.KeyValue {
	out := []attribute.KeyValue{
		semconv.MessagingSystemAWSSQS,
		semconv.MessagingDestinationName(queue),
		semconv.AWSSQSQueueURL(queueURL),
	}
	if u, err := url.Parse(queueURL); err == nil && u.Hostname() != "" {
		out = append(out, semconv.ServerAddress(u.Hostname()))
		if port, err := strconv.Atoi(u.Port()); err == nil {
			out = append(out, semconv.ServerPort(port))
		}
	}
	return out
}

// Close ends the calls of Config.Snapshot and Config.StoreSnapshot. The SDK of OpenTelemetry lets it wait
// for a call that is running, so it must not be called under a lock that
// Snapshot takes. All other methods still work afterwards. Close may be called
// several times.
func (o *Observer) Close() { o.unregister() }

// isUnset reports whether the global provider is the placeholder that OpenTelemetry
// installs until a program sets its own. Its spans lead nowhere but cost time and
// memory.
func isUnset(p trace.TracerProvider) bool {
	t := reflect.TypeOf(p)
	return t.Kind() == reflect.Pointer && t.Elem().PkgPath() == "go.opentelemetry.io/otel/internal/global"
}

func (o *Observer) isSilent() bool {
	return o.silent || o.unset != nil && otel.GetTracerProvider() == o.unset
}

// StartEvent starts the PRODUCER span of one event. EndEvent ends it.
func (o *Observer) StartEvent(ctx context.Context) (context.Context, trace.Span) {
	if o.isSilent() {
		return ctx, noop.Span{}
	}
	return o.tracer.Start(ctx, o.eventName, o.eventStart...)
}

// Event describes one event. An empty field has no attribute.
type Event struct{ EventID, IdempotencyKey, DatasetID, Version, ArtifactChecksum, CARELabel string }

// Describe sets the attributes of an event's span. It calls event only if the span
// records.
func (o *Observer) Describe(span trace.Span, event func() Event) {
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

// Ended is the outcome of one event.
type Ended struct {
	BodyBytes, Attempts int
	Duplicate, Replay   bool
	Recorded            bool   // a duplicate that a store knew, which is no hit of the window
	MessageID           string // ignored after an error
	ErrorType           string // "" after a success
}

// EndEvent counts the outcome of an event and ends its span. Violations are counted
// by Violated, which must be called first: an ended span takes no events.
func (o *Observer) EndEvent(ctx context.Context, span trace.Span, e Ended) {
	o.countEvent(ctx, e)
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

// fail marks a span as failed. The text of an error may quote keys and what the
// service answered; the type is enough here.
func fail(span trace.Span, errorType string) {
	span.SetAttributes(semconv.ErrorTypeKey.String(errorType))
	span.SetStatus(codes.Error, "")
}

// Call is a request between StartCall and EndCall.
type Call struct {
	span  trace.Span
	began time.Time
}

// StartCall starts the CLIENT span of a request with n messages, n at least 1, and
// links it to the spans of their events. EndCall ends it.
func (o *Observer) StartCall(ctx context.Context, n int, spanOf func(i int) trace.SpanContext) (context.Context, Call) {
	c := Call{noop.Span{}, time.Now()}
	if o.isSilent() {
		return ctx, c
	}
	options := o.callStart
	if spanOf(0).IsValid() {
		links := make([]trace.Link, n)
		for i := range links {
			links[i].SpanContext = spanOf(i)
		}
		options = append(slices.Clip(options), trace.WithLinks(links...))
		if n > 1 {
			options = append(options, trace.WithAttributes(semconv.MessagingBatchMessageCount(n)))
		}
	}
	ctx, c.span = o.tracer.Start(ctx, o.callName, options...)
	return ctx, c
}

// EndCall counts a request and its messages and ends its span. There is one answer
// for each message, whatever err is; err is that of the request as a whole.
func (o *Observer) EndCall(ctx context.Context, c Call, answers []attempt.Answer, err error) {
	o.countCall(ctx, time.Since(c.began), answers, err)
	if err != nil && c.span.IsRecording() {
		fail(c.span, requestErrorType(answers))
	}
	c.span.End()
}

// Violated counts a finding with which an event was refused or, if warned, sent all
// the same, and adds it to the span in ctx.
func (o *Observer) Violated(ctx context.Context, rule string, warned bool) {
	o.countViolation(ctx, rule, warned)
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		span.AddEvent("sqs_fifo.violation", trace.WithAttributes(attrRuleID.String(rule)))
	}
}

// What SQS counts of an attribute besides its name and value, and how many
// attributes it accepts.
const (
	stringType    = "String"
	maxAttributes = 10
)

// Inject returns the attributes, all of type String, that carry the trace context
// and the baggage of ctx, and how many bytes SQS counts for them. They are returned
// apart from own, the attributes of the message, which Inject does not change: a
// caller may send the message again without them. There are none if own has one of
// them already, if they need more than free bytes, or if the message would have
// more attributes than SQS accepts.
func (o *Observer) Inject(ctx context.Context, own map[string]string, free int) (carried map[string]string, size int) {
	// A propagator has nothing to say without a trace and baggage.
	if !trace.SpanContextFromContext(ctx).IsValid() && baggage.FromContext(ctx).Len() == 0 {
		return nil, 0
	}
	carrier := propagation.MapCarrier{}
	o.propagator.Inject(ctx, carrier)
	for name, value := range carrier {
		if _, taken := own[name]; taken {
			return nil, 0 // the message belongs to another trace: half of this one would mislead
		}
		if o.validAttribute != nil && !o.validAttribute(name, value) {
			delete(carrier, name) // SQS would refuse the event because of it
			continue
		}
		size += len(name) + len(stringType) + len(value)
	}
	if len(carrier) == 0 || len(own)+len(carrier) > maxAttributes || size > free {
		return nil, 0
	}
	return carrier, size
}

// errorTypeOf returns the error code of SQS, of which there are few.
func errorTypeOf(a attempt.Answer) string {
	if a.Code == "" {
		return otherError
	}
	return a.Code
}

// requestErrorType returns the error type of a request that failed as a whole:
// its messages share it.
func requestErrorType(answers []attempt.Answer) string {
	if len(answers) == 0 {
		return otherError
	}
	return errorTypeOf(answers[0])
}
