package observe

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
)

// Snapshot is what a producer holds at one instant, and what it has counted since it
// began.
type Snapshot struct {
	// Now.
	Events, Bytes, Requests, PausedGroups int64
	OldestAge                             float64 // seconds
	RateLimit                             float64 // requests a second; 0 means none

	// Since the beginning.
	Stored, Duplicates, NotStored, InDoubt, Altered int64 // Stored without Duplicates
	Retries, Throttles                              int64
}

const attrOutcome = attribute.Key("sqs_fifo.outcome")

// observeSnapshots lets readers of the metrics call snapshot, until unregister is
// called. If snapshot is nil there are no such instruments.
func observeSnapshots(meter metric.Meter, queue string, snapshot func() Snapshot) (unregister func(), err error) {
	if snapshot == nil {
		return func() {}, nil
	}
	i := &observables{meter: meter, prefix: "sqs_fifo.producer."}
	events := i.now("pending_events", "{event}", "Events that were submitted and whose outcome has not been reported.")
	bytes := i.now("pending_bytes", "By", "Size of those events, as SQS counts it.")
	requests := i.now("active_requests", "{request}", "Requests under way.")
	paused := i.now("paused_groups", "{group}", "Message groups that are paused after an event failed.")
	oldest := i.gauge("oldest_event_age", "s", "Time since the oldest event without a reported outcome was submitted.")
	limit := i.gauge("rate_limit", "{request}/s", "Requests a second to which throttles have limited the producer; absent without a limit.")
	outcomes := i.count("outcomes", "{event}", "Events by what became of them.")
	retries := i.count("retries", "{attempt}", "Attempts of an event after its first one.")
	throttles := i.count("throttles", "{request}", "Requests that SQS throttled, in whole or in part.")

	destination := semconv.MessagingDestinationName(queue)
	here := metric.WithAttributeSet(attribute.NewSet(destination))
	of := func(outcome string) metric.ObserveOption {
		return metric.WithAttributeSet(attribute.NewSet(destination, attrOutcome.String(outcome)))
	}
	stored, duplicate, notStored, inDoubt, altered := of("stored"), of("duplicate"), of("not_stored"), of("in_doubt"), of("altered")
	return i.register(func(o metric.Observer) {
		s := snapshot()
		o.ObserveInt64(events, s.Events, here)
		o.ObserveInt64(bytes, s.Bytes, here)
		o.ObserveInt64(requests, s.Requests, here)
		o.ObserveInt64(paused, s.PausedGroups, here)
		o.ObserveFloat64(oldest, s.OldestAge, here)
		if s.RateLimit > 0 {
			o.ObserveFloat64(limit, s.RateLimit, here)
		}
		o.ObserveInt64(outcomes, s.Stored, stored)
		o.ObserveInt64(outcomes, s.Duplicates, duplicate)
		o.ObserveInt64(outcomes, s.NotStored, notStored)
		o.ObserveInt64(outcomes, s.InDoubt, inDoubt)
		o.ObserveInt64(outcomes, s.Altered, altered)
		o.ObserveInt64(retries, s.Retries, here)
		o.ObserveInt64(throttles, s.Throttles, here)
	})
}
