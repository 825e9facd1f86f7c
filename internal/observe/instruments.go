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

// instruments contains a producer's synchronous metrics. Callers compute the values for
// an instrument only if the instrument is enabled.
//
// Keys and IDs must never be metric attributes, because their number is unbounded.
type instruments struct {
	collisions, violations, hits, storeHits, sent, dropped, outcomes metric.Int64Counter

	bodyLength              metric.Int64Histogram
	duration, eventDuration metric.Float64Histogram

	// The options of measurements are built only once, because building them costs more
	// than a measurement.
	addDropped, addStoreHits, addSent []metric.AddOption
	addHits                           [2][]metric.AddOption // indexed by replay: false, true
	recordLength, recordDuration      []metric.RecordOption
	rejected, warned                  map[string][]metric.AddOption // by rule

	queue                  []attribute.KeyValue // attributes of every metric
	sentFailed, callFailed []attribute.KeyValue // attributes of a failed message and of a failed request; error.type is added for each
}

// create creates the instruments. Those of the KFM contract on FIFO deduplication
// (v11.2.3, section 9) keep the names in the contract, even where OpenTelemetry
// conventions differ.
func (i *instruments) create(meter metric.Meter, queueURL string, rules []string, store bool) error {
	i.buildOptions(queueURL, rules)

	var errs []error
	count := func(name, unit, text string) metric.Int64Counter {
		c, err := meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(text))
		errs = append(errs, err)
		return c
	}
	i.collisions = count("sqs_fifo.dedupe.collisions_detected", "{collision}",
		"Messages whose dedupe key or body was used for another message within the deduplication interval.")
	i.violations = count("sqs_fifo.producer.violations", "{violation}", "Findings with which a message was refused or, as a warning, sent.")
	i.hits = count("sqs_fifo.dedupe_window_hits", "{hit}", "Messages that SQS recognised as duplicates within the deduplication interval.")
	if store {
		i.storeHits = count("sqs_fifo.dedupe.store_hits", "{hit}", "Messages that the store knew to be stored, so that no request was made.")
	}
	i.outcomes = count("sqs_fifo.producer.outcomes", "{event}", "Events by outcome, and by error if they failed.")
	i.dropped = count("sqs_fifo.provenance.dropped", "{record}", "Provenance records that the sink did not accept.")

	var err error
	i.bodyLength, err = meter.Int64Histogram("sqs_fifo.body_hash.length_bytes", metric.WithUnit("By"),
		metric.WithDescription("Length of the bodies that SQS hashes."),
		metric.WithExplicitBucketBoundaries(128, 256, 512, 1<<10, 2<<10, 4<<10, 8<<10, 16<<10, 64<<10, 256<<10, 1<<20))
	errs = append(errs, err)
	i.eventDuration, err = meter.Float64Histogram("sqs_fifo.producer.event.duration", metric.WithUnit("s"),
		metric.WithDescription("Time from the submission of an event to its outcome."), metric.WithExplicitBucketBoundaries(eventBounds...))
	errs = append(errs, err)
	sent, err := messagingconv.NewClientSentMessages(meter)
	i.sent, errs = sent.Inst(), append(errs, err)
	duration, err := messagingconv.NewClientOperationDuration(meter, metric.WithExplicitBucketBoundaries(durationBounds...))
	i.duration, errs = duration.Inst(), append(errs, err)
	return errors.Join(errs...)
}

func (i *instruments) buildOptions(queueURL string, rules []string) {
	queue := queueAttributes(queueURL)
	i.queue = queue
	i.addDropped, i.addStoreHits, i.recordLength = addWith(queue), addWith(queue), recordWith(queue)
	for replay := range i.addHits {
		i.addHits[replay] = addWith(queue, attrReplay.Bool(replay == 1))
	}
	i.sentFailed = append(requestAttributes(queueURL), semconv.MessagingOperationName("send"))
	i.callFailed = append(i.sentFailed[:len(i.sentFailed):len(i.sentFailed)], semconv.MessagingOperationTypeSend)
	i.addSent, i.recordDuration = addWith(i.sentFailed), recordWith(i.callFailed)

	i.rejected, i.warned = map[string][]metric.AddOption{}, map[string][]metric.AddOption{}
	for _, rule := range rules {
		i.rejected[rule] = addWith(queue, attrRuleID.String(rule), attrAction.String("reject"))
		i.warned[rule] = addWith(queue, attrRuleID.String(rule), attrAction.String("warn"))
	}
}

// zeros returns the metric series that must exist with the value 0 before their first
// event. Without the 0, alerting rules would miss the increase from 0 to 1.
func (i *instruments) zeros() []series {
	all := []series{{i.dropped, i.addDropped}, {i.hits, i.addHits[0]}, {i.hits, i.addHits[1]}}
	if i.storeHits != nil {
		all = append(all, series{i.storeHits, i.addStoreHits})
	}
	for _, options := range i.rejected {
		all = append(all, series{i.violations, options})
	}
	return all
}

// DroppedRecord counts a provenance record that was lost, because the sink did not take
// it.
func (i *instruments) DroppedRecord() { add(context.Background(), i.dropped, i.addDropped) }

func add(ctx context.Context, counter metric.Int64Counter, options []metric.AddOption) {
	if counter.Enabled(ctx) {
		counter.Add(ctx, 1, options...)
	}
}

func (i *instruments) countEvent(ctx context.Context, e *Ended) {
	if e.Attempts > 0 && i.bodyLength.Enabled(ctx) {
		i.bodyLength.Record(ctx, int64(e.BodyBytes), i.recordLength...)
	}
	if !e.Duplicate {
		return
	}
	switch {
	case e.Recorded && i.storeHits != nil:
		add(ctx, i.storeHits, i.addStoreHits)
	case e.Replay:
		add(ctx, i.hits, i.addHits[1])
	default:
		add(ctx, i.hits, i.addHits[0])
	}
}

// countViolation counts a violation of a rule. It ignores rules that are not in
// Config.Rules.
func (i *instruments) countViolation(ctx context.Context, rule string, warned bool) {
	options := i.rejected[rule]
	if warned {
		options = i.warned[rule]
	}
	if options != nil {
		add(ctx, i.violations, options)
	}
}

func (i *instruments) countCall(ctx context.Context, took time.Duration, answers []attempt.Answer, err error) {
	if i.duration.Enabled(ctx) {
		options := i.recordDuration
		if err != nil {
			options = recordWith(i.callFailed, semconv.ErrorTypeKey.String(requestErrorType(answers)))
		}
		i.duration.Record(ctx, took.Seconds(), options...)
	}
	if !i.sent.Enabled(ctx) {
		return
	}
	var stored int64
	for _, a := range answers {
		if a.Fate == attempt.FateStored {
			stored++
		} else {
			i.sent.Add(ctx, 1, addWith(i.sentFailed, semconv.ErrorTypeKey.String(errorTypeOf(a)))...)
		}
	}
	if stored > 0 {
		i.sent.Add(ctx, stored, i.addSent...)
	}
}

// durationBounds are histogram bounds from the semantic conventions, in seconds.
var durationBounds = []float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10}

// eventBounds are the histogram bounds for the duration of an event, in seconds. The
// largest is above the duration of all retries (275 s). The bound 10 s is the limit of
// the service level objective.
var eventBounds = []float64{0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 120, 300}
