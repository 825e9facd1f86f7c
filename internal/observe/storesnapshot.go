package observe

import (
	"context"
	"errors"

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
	var errs []error
	var instruments []metric.Observable
	count := func(name, unit, text string) metric.Int64ObservableCounter {
		i, err := meter.Int64ObservableCounter("sqs_fifo.producer.store."+name, metric.WithUnit(unit), metric.WithDescription(text))
		errs, instruments = append(errs, err), append(instruments, i)
		return i
	}
	claims := count("claims", "{claim}", "What the store has said of events, by its decision.")
	drifts := count("drifts", "{event}", "Events that the store had in other bytes or for another message group.")
	unclaimed := count("unclaimed", "{attempt}", "Attempts without a claim, because the store did not answer and the producer fails open.")
	failures := count("errors", "{call}", "Calls of the store that failed.")
	stale := count("stale", "{result}", "Results that came after another claimant had taken over.")
	lost := count("lost", "{result}", "Results that the store did not take, and that were given up.")
	unsettled, err := meter.Int64ObservableUpDownCounter("sqs_fifo.producer.store.unsettled", metric.WithUnit("{result}"),
		metric.WithDescription("Results that are on their way to the store."))
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, err
	}

	destination := semconv.MessagingDestinationName(queue)
	here := metric.WithAttributeSet(attribute.NewSet(destination))
	decisions := [...]string{"new", "renewed", "reclaimed", "duplicate", "conflict", "in_progress", "indeterminate", "full"}
	var of [len(decisions)]metric.ObserveOption
	for i, d := range decisions {
		of[i] = metric.WithAttributeSet(attribute.NewSet(destination, attrDecision.String(d)))
	}
	registration, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		s := snapshot()
		for i, n := range [...]int64{s.New, s.Renewed, s.Reclaimed, s.Duplicates, s.Conflicts, s.InProgress, s.Indeterminate, s.Full} {
			o.ObserveInt64(claims, n, of[i])
		}
		o.ObserveInt64(drifts, s.Drifts, here)
		o.ObserveInt64(unclaimed, s.Unclaimed, here)
		o.ObserveInt64(failures, s.Errors, here)
		o.ObserveInt64(stale, s.Stale, here)
		o.ObserveInt64(lost, s.Lost, here)
		o.ObserveInt64(unsettled, s.Unsettled, here)
		return nil
	}, append(instruments, unsettled)...)
	return unregistering(registration, err)
}
