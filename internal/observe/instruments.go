package observe

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/semconv/v1.43.0/messagingconv"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
)

// instruments are the metrics of a producer. Each is asked whether it is enabled
// before anything is computed for it.
//
// Neither a key nor an ID may be an attribute of a metric: they have no bound.
type instruments struct {
	collisions, violations, hits, sent, dropped metric.Int64Counter
	bodyLength                                  metric.Int64Histogram
	duration                                    metric.Float64Histogram

	// The options are built once, and as slices: building them costs more than
	// the measurement.
	add, addSent           []metric.AddOption
	record, recordDuration []metric.RecordOption
	rejected, warned       map[string][]metric.AddOption // by rule
	request                []attribute.KeyValue          // to which error.type is added
}

func (i *instruments) create(meter metric.Meter, queue string, rules []string) error {
	i.buildOptions(queue, rules)

	var errs [7]error
	i.collisions, errs[0] = meter.Int64Counter("sqs_fifo.dedupe.collisions_detected", metric.WithUnit("{collision}"),
		metric.WithDescription("Messages whose dedupe key or body was used for another message within the deduplication interval."))
	i.violations, errs[1] = meter.Int64Counter("sqs_fifo.producer.violations", metric.WithUnit("{violation}"),
		metric.WithDescription("Findings with which a message was refused or, as a warning, sent."))
	i.bodyLength, errs[2] = meter.Int64Histogram("sqs_fifo.body_hash.length_bytes", metric.WithUnit("By"),
		metric.WithDescription("Length of the bodies that SQS hashes."),
		metric.WithExplicitBucketBoundaries(128, 256, 512, 1<<10, 2<<10, 4<<10, 8<<10, 16<<10, 64<<10, 256<<10, 1<<20))
	i.hits, errs[3] = meter.Int64Counter("sqs_fifo.dedupe_window_hits", metric.WithUnit("{hit}"),
		metric.WithDescription("Messages that SQS recognised as duplicates within the deduplication interval."))
	sent, err := messagingconv.NewClientSentMessages(meter)
	i.sent, errs[4] = sent.Inst(), err
	duration, err := messagingconv.NewClientOperationDuration(meter, metric.WithExplicitBucketBoundaries(durationBounds...))
	i.duration, errs[5] = duration.Inst(), err
	i.dropped, errs[6] = meter.Int64Counter("sqs_fifo.provenance.dropped", metric.WithUnit("{record}"),
		metric.WithDescription("Provenance records that the sink did not accept."))
	return errors.Join(errs[:]...)
}

func (i *instruments) buildOptions(queue string, rules []string) {
	destination := semconv.MessagingDestinationName(queue)
	here := metric.WithAttributeSet(attribute.NewSet(destination))
	i.add, i.record = []metric.AddOption{here}, []metric.RecordOption{here}

	i.request = []attribute.KeyValue{destination, semconv.MessagingSystemAWSSQS, semconv.MessagingOperationName("send")}
	success := metric.WithAttributeSet(attribute.NewSet(i.request...))
	i.addSent, i.recordDuration = []metric.AddOption{success}, []metric.RecordOption{success}

	i.rejected, i.warned = map[string][]metric.AddOption{}, map[string][]metric.AddOption{}
	for _, rule := range rules {
		of := func(action string) []metric.AddOption {
			return []metric.AddOption{metric.WithAttributeSet(attribute.NewSet(destination, attrRuleID.String(rule), attrAction.String(action)))}
		}
		i.rejected[rule], i.warned[rule] = of("reject"), of("warn")
	}
}

// Collided counts a message whose dedupe key or body was used for another message.
func (i *instruments) Collided(ctx context.Context) { i.count(ctx, i.collisions) }

// DroppedRecord counts a provenance record that the sink did not accept.
func (i *instruments) DroppedRecord() { i.count(context.Background(), i.dropped) }

func (i *instruments) count(ctx context.Context, counter metric.Int64Counter) {
	if counter.Enabled(ctx) {
		counter.Add(ctx, 1, i.add...)
	}
}

func (i *instruments) countEvent(ctx context.Context, e Ended) {
	if e.Attempts > 0 && i.bodyLength.Enabled(ctx) {
		i.bodyLength.Record(ctx, int64(e.BodyBytes), i.record...)
	}
	if e.Duplicate && !e.Recorded {
		i.count(ctx, i.hits)
	}
}

// countViolation ignores a rule that Config.Rules does not contain.
func (i *instruments) countViolation(ctx context.Context, rule string, warned bool) {
	options := i.rejected[rule]
	if warned {
		options = i.warned[rule]
	}
	if options != nil && i.violations.Enabled(ctx) {
		i.violations.Add(ctx, 1, options...)
	}
}

// countCall counts a request and its messages.
func (i *instruments) countCall(ctx context.Context, took time.Duration, answers []attempt.Answer, err error) {
	if i.duration.Enabled(ctx) {
		options := i.recordDuration
		if err != nil {
			options = []metric.RecordOption{metric.WithAttributeSet(i.failed(requestErrorType(answers)))}
		}
		i.duration.Record(ctx, took.Seconds(), options...)
	}
	if !i.sent.Enabled(ctx) {
		return
	}
	var stored int64
	for _, a := range answers {
		if a.Fate == attempt.Stored {
			stored++
		} else {
			i.sent.Add(ctx, 1, metric.WithAttributeSet(i.failed(errorTypeOf(a))))
		}
	}
	if stored > 0 {
		i.sent.Add(ctx, stored, i.addSent...)
	}
}

// failed returns the attributes of a request or message that failed.
func (i *instruments) failed(errorType string) attribute.Set {
	return attribute.NewSet(append([]attribute.KeyValue{semconv.ErrorTypeKey.String(errorType)}, i.request...)...)
}

// durationBounds are those that the semantic conventions ask for, in seconds.
var durationBounds = []float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10}
