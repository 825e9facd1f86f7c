package observe

import (
	"math"

	"go.opentelemetry.io/otel/metric"
)

// Snapshot contains a producer's state at an instant and its counts since its start.
type Snapshot struct {
	// Current state. A limit of 0 means unlimited.
	Events, EventLimit, Bytes, ByteLimit, Requests, RequestLimit int64
	Keys, KeyLimit                                               int64
	PausedGroups, BlockedCallers                                 int64

	OldestAge, OldestPause float64 // seconds
	RateLimit              float64 // requests per second; 0 means unlimited
	ClockSkew              float64 // how many seconds SQS's clock is ahead of this machine's; NaN if unknown

	// Counts since the start.
	Retries, Throttles, Pauses, Waits int64
}

var producers = sharing[Snapshot]{merge: Snapshot.merge}

// merge combines the current states of two producers: the sums of their amounts, the larger
// ages, and the clock skew that is further from zero.
func (s Snapshot) merge(o Snapshot) Snapshot {
	s.Events, s.EventLimit = s.Events+o.Events, s.EventLimit+o.EventLimit
	s.Bytes, s.ByteLimit = s.Bytes+o.Bytes, s.ByteLimit+o.ByteLimit
	s.Requests, s.RequestLimit = s.Requests+o.Requests, s.RequestLimit+o.RequestLimit
	s.Keys, s.KeyLimit = s.Keys+o.Keys, s.KeyLimit+o.KeyLimit
	s.PausedGroups, s.BlockedCallers = s.PausedGroups+o.PausedGroups, s.BlockedCallers+o.BlockedCallers
	s.OldestAge, s.OldestPause = max(s.OldestAge, o.OldestAge), max(s.OldestPause, o.OldestPause)
	s.RateLimit += o.RateLimit
	if math.IsNaN(s.ClockSkew) || math.Abs(o.ClockSkew) > math.Abs(s.ClockSkew) {
		s.ClockSkew = o.ClockSkew
	}
	return s
}

// observeSnapshots makes metric readers call c.Snapshot, until the returned function `leave`
// is called. If c.Snapshot is nil, observeSnapshots does nothing.
func (o *Observer) observeSnapshots(c *Config) (leave func(), err error) {
	if c.Snapshot == nil {
		return func() {}, nil
	}
	i := &observables{meter: o.meter, prefix: "sqs_fifo.producer."}
	events := i.current("event.pending", "{event}", "Events that were submitted and have no reported outcome.")
	eventLimit := i.current("event.limit", "{event}", "Largest number of pending events (Delivery.BufferEvents).")
	bytes := i.current("buffer.usage", "By", "Size of the pending events, as SQS counts it.")
	byteLimit := i.current("buffer.limit", "By", "Largest size of the pending events (Delivery.BufferBytes).")
	requests := i.current("request.active", "{request}", "Requests under way.")
	requestLimit := i.current("request.limit", "{request}", "Largest number of requests under way (Delivery.InFlight).")
	keys := i.current("key.remembered", "{key}", "Dedupe keys in memory, some of them no longer needed.")
	keyLimit := i.current("key.limit", "{key}", "Largest number of dedupe keys in memory (Delivery.Memory.MaxKeys); absent without a limit.")
	paused := i.current("group.paused", "{group}", "Message groups that are paused after an event failed.")
	blocked := i.current("caller.blocked", "{call}", "Calls that wait for room in the buffer.")
	oldest := i.gauge("oldest_event_age", "s", "Time since the oldest event without a reported outcome was submitted.")
	oldestPause := i.gauge("oldest_pause_age", "s", "Time since the oldest pause of a message group began; 0 without a pause.")
	limit := i.gauge("rate_limit", "{request}/s", "Requests a second to which throttles have limited the producer; absent without a limit.")
	skew := i.gauge("clock_skew", "s", "Seconds that SQS's clock is ahead of this machine's; absent before the first answer.")

	retries := i.count("retries", "{attempt}", "Attempts of an event after its first one.")
	throttles := i.count("throttles", "{request}", "Requests that SQS throttled, in whole or in part.")
	pauses := i.count("pauses", "{pause}", "Pauses of message groups that began.")
	waits := i.count("waits", "{call}", "Calls that found no room in the buffer and waited.")

	counts := &tally{series: []series{{retries, addWith(o.queue)}, {throttles, addWith(o.queue)}, {pauses, addWith(o.queue)}, {waits, addWith(o.queue)}}}
	begun := &tally{series: o.zeros()}
	m := &member[Snapshot]{c.Snapshot, func(s Snapshot) {
		begun.add(make([]int64, len(begun.series))...)
		counts.add(s.Retries, s.Throttles, s.Pauses, s.Waits)
		o.countSources()
	}}
	here := setOf(o.queue)
	return producers.join(groupKey{o.provider, queueAttributes(c.QueueURL)[0]}, m, func(read func() Snapshot) (func(), error) {
		return i.register(func(to metric.Observer) {
			s := read()
			for _, at := range []struct {
				of    metric.Int64Observable
				value int64
			}{
				{events, s.Events},
				{eventLimit, s.EventLimit},
				{bytes, s.Bytes},
				{byteLimit, s.ByteLimit},
				{requests, s.Requests},
				{requestLimit, s.RequestLimit},
				{keys, s.Keys},
				{paused, s.PausedGroups},
				{blocked, s.BlockedCallers},
			} {
				to.ObserveInt64(at.of, at.value, here)
			}
			to.ObserveFloat64(oldest, s.OldestAge, here)
			to.ObserveFloat64(oldestPause, s.OldestPause, here)
			if s.KeyLimit > 0 {
				to.ObserveInt64(keyLimit, s.KeyLimit, here)
			}
			if s.RateLimit > 0 {
				to.ObserveFloat64(limit, s.RateLimit, here)
			}
			if !math.IsNaN(s.ClockSkew) {
				to.ObserveFloat64(skew, s.ClockSkew, here)
			}
		})
	})
}
