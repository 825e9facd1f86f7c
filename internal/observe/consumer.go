package observe

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/semconv/v1.43.0/messagingconv"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// ConsumerConfig configures a Consumer. For a nil provider or propagator, the Consumer
// uses OpenTelemetry's global one.
type ConsumerConfig struct {
	Meter      metric.MeterProvider
	Tracer     trace.TracerProvider
	Propagator propagation.TextMapPropagator
	QueueURL   string
	Version    string // version of the library

	// Metric readers call Snapshot; Close calls it once more.
	//
	// NewConsumer and Close may wait for a running call of Snapshot. So Snapshot must not
	// take a lock that a caller of NewConsumer or Close holds.
	Snapshot func() ConsumerSnapshot
}

// ConsumerSnapshot contains a consumer's state at an instant and its counts since its
// start.
type ConsumerSnapshot struct {
	InHand, Bytes, Running, Sleeping, Blocked int64
	OldestHead                                float64 // seconds

	Handled, Duplicates, Parked, Skipped, Failures, Lost, Released, FailedReceives int64
}

// Consumer is the telemetry of a consumer. Its methods may be called concurrently.
type Consumer struct {
	scope
	consumed   metric.Int64Counter
	duration   metric.Float64Histogram
	age        metric.Float64Histogram
	unregister func()

	name    string
	start   []trace.SpanStartOption
	process []attribute.KeyValue // attributes of a processed message; error.type is added after a failure
	here    metric.MeasurementOption
	receive metric.MeasurementOption
	succeed metric.MeasurementOption
}

// NewConsumer creates the instruments. After an error, no callback is registered with the
// meter provider.
func NewConsumer(c ConsumerConfig) (*Consumer, error) {
	o := &Consumer{scope: newScope(c.Meter, c.Tracer, c.Propagator, c.Version)}
	o.name = "process " + c.QueueURL[strings.LastIndexByte(c.QueueURL, '/')+1:]
	o.start = []trace.SpanStartOption{
		trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(spanAttributes(c.QueueURL)...),
		trace.WithAttributes(semconv.MessagingOperationName("process"), semconv.MessagingOperationTypeProcess),
	}
	queue := queueAttributes(c.QueueURL)
	o.process = append(requestAttributes(c.QueueURL), semconv.MessagingOperationName("process"))
	o.here, o.succeed = setOf(queue), setOf(o.process)
	o.receive = setOf(requestAttributes(c.QueueURL), semconv.MessagingOperationName("receive"))

	var errs [3]error
	consumed, err := messagingconv.NewClientConsumedMessages(o.meter)
	o.consumed, errs[0] = consumed.Inst(), err
	duration, err := messagingconv.NewProcessDuration(o.meter, metric.WithExplicitBucketBoundaries(durationBounds...))
	o.duration, errs[1] = duration.Inst(), err
	o.age, errs[2] = o.meter.Float64Histogram("sqs_fifo.consumer.event_age", metric.WithUnit("s"),
		metric.WithDescription("Time from the event_time of an event to the end of its handling."),
		metric.WithExplicitBucketBoundaries(0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3600, 21600, 86400))
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	o.unregister, err = o.observeConsumer(queue, &c)
	return o, err
}

var consumers = sharing[ConsumerSnapshot]{merge: ConsumerSnapshot.merge}

// merge combines the snapshots of two consumers: it adds their amounts and keeps the
// larger age.
func (s ConsumerSnapshot) merge(o ConsumerSnapshot) ConsumerSnapshot {
	s.InHand, s.Bytes, s.Running = s.InHand+o.InHand, s.Bytes+o.Bytes, s.Running+o.Running
	s.Sleeping, s.Blocked = s.Sleeping+o.Sleeping, s.Blocked+o.Blocked
	s.OldestHead = max(s.OldestHead, o.OldestHead)
	return s
}

// observeConsumer makes metric readers call c.Snapshot, until the returned function `leave`
// is called.
func (o *Consumer) observeConsumer(queue []attribute.KeyValue, c *ConsumerConfig) (leave func(), err error) {
	i := &observables{meter: o.meter, prefix: "sqs_fifo.consumer."}
	held := i.current("message.held", "{message}", "Messages in hand.")
	bytes := i.current("buffer.usage", "By", "Size of the messages in hand.")
	running := i.current("handler.running", "{handler}", "Handlers that run.")
	sleeping := i.current("group.sleeping", "{group}", "Message groups that wait for the next attempt of their head.")
	blocked := i.current("group.blocked", "{group}", "Message groups that wait for an operator.")
	oldest := i.gauge("oldest_head_age", "s", "Longest time that the head of a message group has been in hand as the head.")
	outcomes := i.count("outcomes", "{message}", "Messages by outcome, and failed attempts.")
	counts := &tally{}
	for _, outcome := range []string{"handled", "duplicate", "parked", "skipped", "failed", "lost", "released"} {
		counts.series = append(counts.series, series{outcomes, addWith(queue, attrOutcome.String(outcome))})
	}
	failed := i.count("receive.failed", "{call}", "Receives that SQS refused or did not answer.")
	counts.series = append(counts.series, series{failed, addWith(queue)})
	m := &member[ConsumerSnapshot]{c.Snapshot, func(s ConsumerSnapshot) {
		counts.add(s.Handled, s.Duplicates, s.Parked, s.Skipped, s.Failures, s.Lost, s.Released, s.FailedReceives)
	}}
	here := setOf(queue)
	return consumers.join(groupKey{o.provider, queueAttributes(c.QueueURL)[0]}, m, func(read func() ConsumerSnapshot) (func(), error) {
		return i.register(func(to metric.Observer) {
			s := read()
			to.ObserveInt64(held, s.InHand, here)
			to.ObserveInt64(bytes, s.Bytes, here)
			to.ObserveInt64(running, s.Running, here)
			to.ObserveInt64(sleeping, s.Sleeping, here)
			to.ObserveInt64(blocked, s.Blocked, here)
			to.ObserveFloat64(oldest, s.OldestHead, here)
		})
	})
}

// Close adds the counts since the last reading to the counters. After Close has returned,
// metric readers no longer call ConsumerConfig.Snapshot. The other methods continue to
// work.
//
// Close may wait for a running call of Snapshot. So the caller must not hold a lock that
// Snapshot takes.
func (o *Consumer) Close() { o.unregister() }

// Received counts received messages.
func (o *Consumer) Received(ctx context.Context, n int) {
	if n > 0 && o.consumed.Enabled(ctx) {
		o.consumed.Add(ctx, int64(n), o.receive)
	}
}

// Handled records the age of an event that was handled.
func (o *Consumer) Handled(ctx context.Context, age time.Duration) {
	if o.age.Enabled(ctx) {
		o.age.Record(ctx, age.Seconds(), o.here)
	}
}

// StartProcess starts the CONSUMER span of a processing attempt, linked to the event's
// creation. It adds the message's baggage to the returned context. While the tracer provider
// is unset or a no-op, StartProcess starts no span and returns ctx unchanged.
//
// At the end of the attempt, the caller calls the function `done` with the error type, or
// with "" after a success.
func (o *Consumer) StartProcess(ctx context.Context, m types.Message) (_ context.Context, done func(errorType string)) {
	began := time.Now()
	span := trace.Span(noop.Span{})
	if !o.isSilent() {
		carrier := propagation.MapCarrier{}
		for name, a := range m.MessageAttributes {
			if a.StringValue != nil {
				carrier[name] = *a.StringValue
			}
		}
		ctx = o.propagator.Extract(ctx, carrier)
		creation := trace.SpanContextFromContext(ctx)
		options := o.start
		if m.MessageId != nil {
			options = append(options[:len(options):len(options)], trace.WithAttributes(semconv.MessagingMessageID(*m.MessageId)))
		}
		if creation.IsValid() {
			options = append(options[:len(options):len(options)], trace.WithLinks(trace.Link{SpanContext: creation}))
			ctx = trace.ContextWithSpanContext(ctx, trace.SpanContext{})
		}
		ctx, span = o.tracer.Start(ctx, o.name, options...)
	}
	return ctx, func(errorType string) {
		if o.duration.Enabled(ctx) {
			option := o.succeed
			if errorType != "" {
				option = metric.WithAttributeSet(attribute.NewSet(append([]attribute.KeyValue{semconv.ErrorTypeKey.String(errorType)}, o.process...)...))
			}
			o.duration.Record(ctx, time.Since(began).Seconds(), option)
		}
		if errorType != "" && span.IsRecording() {
			fail(span, errorType)
		}
		span.End()
	}
}
