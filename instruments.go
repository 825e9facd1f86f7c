package sqsfifo

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/semconv/v1.43.0/messagingconv"
	"go.opentelemetry.io/otel/trace"

	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

const (
	attrRuleID = attribute.Key("sqs_fifo.rule.id")
	attrAction = attribute.Key("sqs_fifo.action")
)

// instruments are the metrics of a producer. Each is asked whether anybody
// listens before its options are even looked at.
type instruments struct {
	collisions, violations, hits, sent, dropped metric.Int64Counter
	bodyLength                                  metric.Int64Histogram
	duration                                    metric.Float64Histogram

	// Options are built once, as slices: they cost more than the measurement.
	add, sentWell          []metric.AddOption
	record, durationIfWell []metric.RecordOption
	rejected, warned       map[string][]metric.AddOption // by rule
	call                   []attribute.KeyValue
}

func newInstruments(meter metric.Meter, queue string) (instruments, error) {
	destination := semconv.MessagingDestinationName(queue)
	here := metric.WithAttributeSet(attribute.NewSet(destination))
	call := []attribute.KeyValue{destination, semconv.MessagingSystemAWSSQS, semconv.MessagingOperationName("send")}
	well := metric.WithAttributeSet(attribute.NewSet(call...))
	out := instruments{
		add:            []metric.AddOption{here},
		record:         []metric.RecordOption{here},
		sentWell:       []metric.AddOption{well},
		durationIfWell: []metric.RecordOption{well},
		rejected:       map[string][]metric.AddOption{},
		warned:         map[string][]metric.AddOption{},
		call:           call,
	}
	for _, r := range lint.Rules() {
		of := func(action string) []metric.AddOption {
			return []metric.AddOption{metric.WithAttributeSet(attribute.NewSet(destination, attrRuleID.String(r.ID), attrAction.String(action)))}
		}
		out.rejected[r.ID], out.warned[r.ID] = of("reject"), of("warn")
	}

	var errs [7]error
	out.collisions, errs[0] = meter.Int64Counter("sqs_fifo.dedupe.collisions_detected", metric.WithUnit("{collision}"),
		metric.WithDescription("Messages refused because their dedupe key or their body was used for another message within the deduplication interval."))
	out.violations, errs[1] = meter.Int64Counter("sqs_fifo.producer.violations", metric.WithUnit("{violation}"),
		metric.WithDescription("Findings for which a message was refused, or only warned of."))
	out.bodyLength, errs[2] = meter.Int64Histogram("sqs_fifo.body_hash.length_bytes", metric.WithUnit("By"),
		metric.WithDescription("Length of the bodies that SQS hashes."),
		metric.WithExplicitBucketBoundaries(128, 256, 512, 1<<10, 2<<10, 4<<10, 8<<10, 16<<10, 64<<10, 256<<10, 1<<20))
	out.hits, errs[3] = meter.Int64Counter("sqs_fifo.dedupe_window_hits", metric.WithUnit("{hit}"),
		metric.WithDescription("Messages that SQS recognised as duplicates within the deduplication interval."))
	sent, err := messagingconv.NewClientSentMessages(meter)
	out.sent, errs[4] = sent.Inst(), err
	duration, err := messagingconv.NewClientOperationDuration(meter)
	out.duration, errs[5] = duration.Inst(), err
	out.dropped, errs[6] = meter.Int64Counter("sqs_fifo.provenance.dropped", metric.WithUnit("{record}"),
		metric.WithDescription("Provenance records that the sink did not take."))
	return out, errors.Join(errs[:]...)
}

// count counts the outcome of an event.
func (t *instruments) count(p *pending, e ended) {
	if e.attempts > 0 && t.bodyLength.Enabled(p.ctx) {
		t.bodyLength.Record(p.ctx, int64(len(p.msg.Body)), t.record...)
	}
	if e.receipt.Duplicate && t.hits.Enabled(p.ctx) {
		t.hits.Add(p.ctx, 1, t.add...)
	}
	if e.err != nil {
		t.countViolations(p.ctx, e.err)
	}
}

func (t *instruments) countViolations(ctx context.Context, err error) {
	var violation *ViolationError
	if !errors.As(err, &violation) {
		return
	}
	for _, f := range violation.Findings {
		t.violated(ctx, f.Rule, t.rejected)
	}
}

// violated counts one finding, as one for which the event was refused or not.
func (t *instruments) violated(ctx context.Context, rule string, action map[string][]metric.AddOption) {
	if o, ok := action[rule]; ok {
		t.violations.Add(ctx, 1, o...)
	}
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		span.AddEvent("sqs_fifo.violation", trace.WithAttributes(attrRuleID.String(rule)))
	}
}

func (t *instruments) collided(ctx context.Context) { t.collisions.Add(ctx, 1, t.add...) }

// countCall counts a request and its messages.
func (t *instruments) countCall(ctx context.Context, took time.Duration, outcomes []outcome, err error) {
	if t.duration.Enabled(ctx) {
		options := t.durationIfWell
		if err != nil {
			options = []metric.RecordOption{metric.WithAttributeSet(t.failed(outcomes[0]))}
		}
		t.duration.Record(ctx, took.Seconds(), options...)
	}
	if !t.sent.Enabled(ctx) {
		return
	}
	var well int64
	for _, o := range outcomes {
		if o.err == nil {
			well++
		} else {
			t.sent.Add(ctx, 1, metric.WithAttributeSet(t.failed(o)))
		}
	}
	if well > 0 {
		t.sent.Add(ctx, well, t.sentWell...)
	}
}

func (t *instruments) failed(o outcome) attribute.Set {
	return attribute.NewSet(append([]attribute.KeyValue{semconv.ErrorTypeKey.String(callErrorType(o))}, t.call...)...)
}

// callErrorType is the error code of SQS, of which there are few, or none.
func callErrorType(o outcome) string {
	if o.code == "" {
		return "_OTHER"
	}
	return o.code
}
