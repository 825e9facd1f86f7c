package observe

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// StoreSnapshot contains counts of a producer's store since the producer's start. Only
// Recording is a current value. The fields are those of StoreStats in the root package.
type StoreSnapshot struct {
	New, Renewed, Reclaimed, Duplicates, Conflicts, Waits, Unresolved, Full, OverQuota int64 // answers to claims

	Drifts, Unclaimed, Errors, Stale int64

	Recording int64 // current value

	Lost, Unrecorded int64
}

const attrDecision = attribute.Key("sqs_fifo.decision")

var decisions = [...]string{"new", "renewed", "reclaimed", "duplicate", "conflict", "in_progress", "unresolved", "full", "over_quota"}

var stores = sharing[StoreSnapshot]{merge: func(s, o StoreSnapshot) StoreSnapshot {
	s.Recording += o.Recording
	return s
}}

// observeStore makes metric readers call c.StoreSnapshot, until the returned function `leave`
// is called. If c.StoreSnapshot is nil, observeStore does nothing.
func (o *Observer) observeStore(c *Config) (leave func(), err error) {
	if c.StoreSnapshot == nil {
		return func() {}, nil
	}
	i := &observables{meter: o.meter, prefix: "sqs_fifo.producer.store."}
	claims := i.count("claims", "{claim}", "Answers of the store to claims, by decision.")
	pending := i.current("result.pending", "{result}", "Results on their way to the store.")
	here := addWith(o.queue)
	counts := &tally{series: []series{
		{i.count("drifts", "{event}", "Events that the store had in other bytes or for another message group."), here},
		{i.count("unclaimed", "{attempt}", "Attempts without a claim, because the store did not answer and the producer fails open."), here},
		{i.count("errors", "{call}", "Calls of the store that failed."), here},
		{i.count("stale", "{result}", "Results that came after another claimant had taken over."), here},
		{i.count("lost", "{result}", "Results that the store did not take, and that were given up."), here},
		{i.count("unrecorded", "{event}", "Events whose receipt came before the store had them, because the store did not answer in time."), here},
	}}
	for _, d := range decisions {
		counts.series = append(counts.series, series{claims, addWith(o.queue, attrDecision.String(d))})
	}
	m := &member[StoreSnapshot]{c.StoreSnapshot, func(s StoreSnapshot) {
		counts.add(s.Drifts, s.Unclaimed, s.Errors, s.Stale, s.Lost, s.Unrecorded,
			s.New, s.Renewed, s.Reclaimed, s.Duplicates, s.Conflicts, s.Waits, s.Unresolved, s.Full, s.OverQuota)
	}}
	return stores.join(groupKey{o.provider, queueAttributes(c.QueueURL)[0]}, m, func(read func() StoreSnapshot) (func(), error) {
		return i.register(func(to metric.Observer) { to.ObserveInt64(pending, read().Recording, setOf(o.queue)) })
	})
}
