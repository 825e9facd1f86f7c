package observe

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
)

// StoreSnapshot is what a producer has asked and told its store since it began, but for
// Unsettled.
type StoreSnapshot struct {
	New, Renewed, Reclaimed, Duplicates, Conflicts, InProgress, Indeterminate, Full int64 // answers to claims

	Drifts, Unclaimed, Errors, Stale, Lost int64

	Unsettled int64 // now
}

const attrDecision = attribute.Key("sqs_fifo.decision")

// observeStore is observeSnapshots for the store of a producer.
func observeStore(meter metric.Meter, queue string, snapshot func() StoreSnapshot) (unregister func(), err error) {
	if snapshot == nil {
		return func() {}, nil
	}
	i := &observables{meter: meter, prefix: "sqs_fifo.producer.store."}
	claims := i.count("claims", "{claim}", "What the store has said of events, by its decision.")
	drifts := i.count("drifts", "{event}", "Events that the store had in other bytes or for another message group.")
	unclaimed := i.count("unclaimed", "{attempt}", "Attempts without a claim, because the store did not answer and the producer fails open.")
	failures := i.count("errors", "{call}", "Calls of the store that failed.")
	stale := i.count("stale", "{result}", "Results that came after another claimant had taken over.")
	lost := i.count("lost", "{result}", "Results that the store did not take, and that were given up.")
	unsettled := i.now("unsettled", "{result}", "Results that are on their way to the store.")

	destination := semconv.MessagingDestinationName(queue)
	here := metric.WithAttributeSet(attribute.NewSet(destination))
	decisions := [...]string{"new", "renewed", "reclaimed", "duplicate", "conflict", "in_progress", "indeterminate", "full"}
	var of [len(decisions)]metric.ObserveOption
	for n, d := range decisions {
		of[n] = metric.WithAttributeSet(attribute.NewSet(destination, attrDecision.String(d)))
	}
	return i.register(func(o metric.Observer) {
		s := snapshot()
		for n, answers := range [...]int64{s.New, s.Renewed, s.Reclaimed, s.Duplicates, s.Conflicts, s.InProgress, s.Indeterminate, s.Full} {
			o.ObserveInt64(claims, answers, of[n])
		}
		o.ObserveInt64(drifts, s.Drifts, here)
		o.ObserveInt64(unclaimed, s.Unclaimed, here)
		o.ObserveInt64(failures, s.Errors, here)
		o.ObserveInt64(stale, s.Stale, here)
		o.ObserveInt64(lost, s.Lost, here)
		o.ObserveInt64(unsettled, s.Unsettled, here)
	})
}
