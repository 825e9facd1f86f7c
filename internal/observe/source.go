package observe

import (
	"context"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/verdict"
)

// Outcome is the result of sending an event, as an attribute of metrics.
type Outcome uint8

// Outcomes of an event.
const (
	OutcomeNotStored Outcome = iota
	OutcomeStored
	OutcomeDuplicate
	OutcomeInDoubt
	OutcomeAltered

	Outcomes = iota // number of outcomes
)

var outcomeNames = [...]string{OutcomeNotStored: "not_stored", OutcomeStored: "stored", OutcomeDuplicate: "duplicate", OutcomeInDoubt: "in_doubt", OutcomeAltered: "altered"}

// String returns the outcome's text, for example "stored": the value of the metric
// attribute sqs_fifo.outcome and of the field Outcome of sqsfifo.ProvenanceRecord.
func (o Outcome) String() string { return outcomeNames[o] }

// Source has the metrics of one event_source: of all producers on the queue with this
// event_source. A Source without a name covers the whole queue.
type Source struct {
	name string

	// The two frequent outcomes are counted here, because a call of OpenTelemetry's SDK
	// costs more than an atomic addition.
	stored, duplicates atomic.Int64

	attributes []attribute.KeyValue // attributes of the queue, and of the source if the source has a name
	collisions [verdict.ReuseOtherAttributes + 1][]metric.AddOption
	durations  [len(outcomeNames)][]metric.RecordOption
	tally      tally
}

// mostSources is the maximum number of event sources for which an Observer has separate
// metrics.
const mostSources = 20

// Source returns the metrics of all producers with this event_source, or of the whole
// queue if the parameter `name` is empty. After 20 different names, all further names share
// one Source with the name _OTHER.
func (o *Observer) Source(name string) *Source {
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		for _, s := range o.sources {
			if s.name == name {
				return s
			}
		}
		if len(o.sources) <= mostSources || name == otherError {
			break
		}
		name = otherError
	}
	s := &Source{name: name, attributes: o.queue}
	if name != "" {
		s.attributes = append(o.queue[:len(o.queue):len(o.queue)], attrEventSource.String(name))
	}
	outcome := func(of Outcome, more ...attribute.KeyValue) series {
		return series{o.outcomes, addWith(s.attributes, append(more, attrOutcome.String(of.String()))...)}
	}
	s.tally.series = []series{
		outcome(OutcomeStored), outcome(OutcomeDuplicate),
		outcome(OutcomeInDoubt, semconv.ErrorTypeKey.String("in_doubt")), outcome(OutcomeAltered, semconv.ErrorTypeKey.String("altered")),
	}
	for _, c := range [...]struct {
		of   verdict.Reuse
		text string
	}{{verdict.ReuseOtherPayload, "conflict"}, {verdict.ReuseOtherBody, "drift"}, {verdict.ReuseOtherAttributes, "attributes"}} {
		s.collisions[c.of] = addWith(s.attributes, attrCollisionKind.String(c.text))
		s.tally.series = append(s.tally.series, series{o.collisions, s.collisions[c.of]})
	}
	s.collisions[verdict.ReuseOtherGroup] = s.collisions[verdict.ReuseOtherBody]
	for of, text := range outcomeNames {
		s.durations[of] = recordWith(s.attributes, attrOutcome.String(text))
	}
	o.sources = append(o.sources, s)
	return s
}

// countSources adds the counts of all sources to the counters of OpenTelemetry's SDK.
func (o *Observer) countSources() {
	o.mu.Lock()
	sources := o.sources
	o.mu.Unlock()
	for i, s := range sources {
		stored, duplicates := s.stored.Load(), s.duplicates.Load()
		// Source 0 has no name. If all events are from named sources, do not report its
		// zeros.
		if i == 0 && len(sources) > 1 && stored+duplicates == 0 {
			continue
		}
		totals := make([]int64, len(s.tally.series))
		totals[0], totals[1] = stored, duplicates
		s.tally.add(totals...)
	}
}

// Collided counts a message whose dedupe key or body was already used for another
// message. The parameter `kind` must not be ReuseNone.
func (o *Observer) Collided(ctx context.Context, from *Source, kind verdict.Reuse) {
	if from == nil {
		from = o.own
	}
	add(ctx, o.collisions, from.collisions[kind])
}

// countOutcome counts an event and records its duration.
func (o *Observer) countOutcome(ctx context.Context, e *Ended) {
	from := e.Source
	if from == nil {
		from = o.own
	}
	switch e.Outcome {
	case OutcomeStored:
		from.stored.Add(1)
	case OutcomeDuplicate:
		from.duplicates.Add(1)
	default:
		if o.outcomes.Enabled(ctx) {
			o.outcomes.Add(ctx, 1, addWith(from.attributes, attrOutcome.String(e.Outcome.String()), semconv.ErrorTypeKey.String(e.ErrorType))...)
		}
	}
	if o.eventDuration.Enabled(ctx) {
		o.eventDuration.Record(ctx, e.Took.Seconds(), from.durations[e.Outcome]...)
	}
}
