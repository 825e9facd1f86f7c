package sqsfifo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/dedup"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/dispatch"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/ledger"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/observe"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/sqscall"
	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// Queue is one FIFO queue as this process sends to it: its message groups, buffer,
// pacing, memory of what was sent, and telemetry. Producers of several event types
// that send to one queue share one Queue (see [NewProducerOn]): only then is the
// order of a message group kept among them, and a dedupe key that two of them use
// noticed.
//
// A Queue is safe for concurrent use. It runs goroutines only while events are under
// way: at most Delivery.InFlight that make requests, and one that reports outcomes.
// While callbacks block, one more reports for each message group that has outcomes,
// which are at most Delivery.BufferEvents. [Queue.Close] waits for all of them.
type Queue struct {
	courier    *courier
	showKeys   bool // Telemetry.ShowDedupeKeys
	dispatcher *dispatch.Dispatcher[submission]
}

// NewQueue returns a queue for several producers, or every fault of the
// configuration at once ([*ConfigError], joined). It makes no request.
func NewQueue(client Client, config QueueConfig) (*Queue, error) {
	err := config.validate()
	if isNil(client) {
		err = errors.Join(errors.New("sqsfifo: nil client; pass an *sqs.Client"), err)
	}
	if err != nil {
		return nil, err
	}
	return newQueue(client, config)
}

func newQueue(client Client, config QueueConfig) (*Queue, error) {
	explicit := config.Deduplication == ExplicitBodyHash
	c := &courier{
		caller:    sqscall.New(client, config.URL),
		inspector: &inspector{client: client, queueURL: config.URL, explicit: explicit},
		memory:    dedup.New(dedup.Options{AcceptTimes: config.Delivery.Memory.DetectForeignDuplicates, MaxKeys: config.Delivery.Memory.MaxKeys}),
		explicit:  explicit,
	}
	var err error
	c.store, err = newEventStore(config.Store, config.URL, config.Delivery.RetryFor, func() time.Duration { return time.Duration(c.memory.Now()) })
	if err != nil {
		return nil, err
	}
	options := config.Delivery.options()
	if c.store != nil && config.Delivery.RetryFor == 0 {
		options.RetryFor = config.Store.retryFor()
	}
	q := &Queue{courier: c, showKeys: config.Telemetry.ShowDedupeKeys, dispatcher: dispatch.New(c, options)}
	var rules []string
	for _, r := range lint.Rules() {
		rules = append(rules, r.ID)
	}
	c.log = newOperatorLog(config.Telemetry.Logger, config.URL)
	var ofStore func() observe.StoreSnapshot
	if c.store != nil {
		ofStore = q.storeSnapshot
	}
	c.observer, err = observe.New(observe.Config{
		Meter: config.Telemetry.MeterProvider, Tracer: config.Telemetry.TracerProvider, Propagator: config.Telemetry.Propagator,
		QueueURL: config.URL, Version: Version, Rules: rules,
		Snapshot: q.snapshot, StoreSnapshot: ofStore,
		ValidAttribute: func(name, value string) bool {
			return lint.CheckAttribute(name, lint.Attribute{DataType: stringType, StringValue: value}) == nil
		},
	})
	if err != nil {
		return nil, fmt.Errorf("sqsfifo: create instruments: %w", err)
	}
	c.ledger = ledger.New(config.Telemetry.Provenance, mostRecords, func() {
		c.observer.DroppedRecord()
		c.log.recordLost()
	})
	c.requests, c.abort = context.WithCancel(context.Background())
	return q, nil
}

// mostRecords may wait for a provenance sink.
const mostRecords = 10_000

// Preflight asks the queue for its attributes and checks that it is FIFO and
// deduplicates the way that Config.Deduplication expects; its MaximumMessageSize
// is then the limit of each message. The error is a [*QueueError] with all
// problems, or the client's. What works and is worth knowing stands in the
// report's Notes.
//
// The first send does the same. It goes on without an answer where the
// credentials may send but not read attributes: SQS itself refuses what a
// wrong queue cannot accept. After a bad answer, or none, the queue is asked again
// every ten seconds at most.
func (q *Queue) Preflight(ctx context.Context) (QueueReport, error) {
	return q.courier.inspector.ask(ctx)
}

// Flush sends what lingers and waits until every event that was submitted before
// has its outcome. It returns the context's error if that comes first; the events
// still go on then. An [*UnreportedError] reports that events without a callback
// failed.
func (q *Queue) Flush(ctx context.Context) error {
	if err := q.dispatcher.Flush(ctx); err != nil {
		return fmt.Errorf("sqsfifo: events still under way: %w", err)
	}
	return q.courier.takeUnreported()
}

// Close refuses new events, which then fail with [ErrClosed], and waits for
// those under way: when it returns nil, each has its outcome and no goroutine of
// the queue is left.
//
// When ctx ends first, the remaining events are withdrawn: each gets its outcome,
// a [*NotStoredError] or an [*InDoubtError], before Close returns the context's
// error. Close waits at most one second more for callbacks that block, and its
// error says how many outcomes could not be reported because of them.
//
// An [*UnreportedError] reports that events without a callback failed, a
// [*ProvenanceError] that records are missing from Telemetry.Provenance, and an
// [*UnsettledError] that results are missing from the store, for which Close waits ten
// seconds at most. Close may be called more than once.
func (q *Queue) Close(ctx context.Context) error {
	blocked, err := q.dispatcher.Close(ctx, q.courier.abort)
	switch {
	case blocked > 0:
		err = fmt.Errorf("sqsfifo: close: %d outcomes not reported, because callbacks block: %w", blocked, err)
	case err != nil:
		err = fmt.Errorf("sqsfifo: close: the remaining events were withdrawn: %w", err)
	}
	unsettled := q.closeStore(ctx)
	q.courier.observer.Close()
	return errors.Join(err, q.courier.takeUnreported(), unsettled, q.closeLedger(ctx), q.courier.log.flush(ctx))
}

func (q *Queue) closeStore(ctx context.Context) error {
	if q.courier.store == nil {
		return nil
	}
	if lost, err := q.courier.store.Close(ctx); lost > 0 {
		return &UnsettledError{Lost: lost, Err: err}
	}
	return nil
}

func (q *Queue) closeLedger(ctx context.Context) error {
	l := q.courier.ledger
	if err := l.Flush(ctx); err != nil {
		return fmt.Errorf("sqsfifo: close: provenance records still to be written: %w", err)
	}
	if lost, err := l.Lost(); lost > 0 {
		return &ProvenanceError{Lost: lost, Err: err}
	}
	return nil
}

// Pause is why a message group is paused.
type Pause struct {
	// EventID and DedupeKey are those of the event that failed. It, and no other
	// event of the group, is still sent when it is submitted again.
	EventID   uuid.UUID
	DedupeKey string

	// Fate is InDoubt or Altered, or with PauseOnFailure NotStored.
	Fate Fate

	// Code is the error code of SQS, "" if there was none.
	Code string

	// Since is when the event failed, Until when the pause ends by itself because
	// the doubt is over; the zero time if it does not.
	Since, Until time.Time
}

// Paused returns the message groups that are paused. The map is the caller's.
func (q *Queue) Paused() map[string]Pause {
	pauses := q.dispatcher.Pauses()
	groups := make(map[string]Pause, len(pauses))
	for group, p := range pauses {
		groups[group] = Pause{
			EventID: p.ID, DedupeKey: p.Key, Fate: publicFate(p.Fate), Code: p.Code,
			Since: p.Since.Round(0), Until: p.Until.Round(0),
		}
	}
	return groups
}

// Resume ends the pause of a message group. Events queued after the failed one have
// already failed with ErrGroupPaused, and are not sent by Resume.
//
// Which failures pause a group is Delivery.OnGroupFailure. While it is paused, no
// event of the group is sent but the one that failed, known by its dedupe key:
// sending it again with success ends the pause, too, and keeps the order. To
// call Resume is to go on without it. The pause of an event in doubt also ends by
// itself, when the doubt is over.
func (q *Queue) Resume(group string) { q.dispatcher.Resume(group) }

// ResumeAll ends the pause of every message group and returns how many there were.
func (q *Queue) ResumeAll() int { return q.dispatcher.ResumeAll() }

// Stats returns what the queue holds now. It looks at each message group that has
// events and at each remembered key.
func (q *Queue) Stats() Stats {
	s, m := q.stats(), q.courier.memory
	s.RememberedKeys = m.Len(m.Now())
	return s
}

// stats is Stats without the count of the keys.
func (q *Queue) stats() Stats {
	s, c := q.dispatcher.Stats(), &q.courier.counts
	return Stats{
		Store:  q.storeStats(),
		Events: s.Items, Bytes: s.Bytes, Requests: s.Requests, OldestAge: s.Oldest, PausedGroups: s.Paused, Rate: s.Rate,
		Outcomes: c.outcomes(), Retries: c.retries.Load(), Throttles: c.throttles.Load(),
	}
}

func (q *Queue) storeStats() StoreStats {
	if q.courier.store == nil {
		return StoreStats{}
	}
	return StoreStats(q.courier.store.Stats())
}

func (q *Queue) storeSnapshot() observe.StoreSnapshot {
	s := q.storeStats()
	return observe.StoreSnapshot{
		New: s.New, Renewed: s.Renewed, Reclaimed: s.Reclaimed,
		Duplicates: s.Duplicates, Conflicts: s.Conflicts, InProgress: s.Waits, Indeterminate: s.Indeterminate, Full: s.Full,
		Drifts: s.Drifts, Unclaimed: s.Unclaimed, Errors: s.Errors, Stale: s.Stale, Lost: s.Lost, Unsettled: s.Unsettled,
	}
}

// snapshot is what the readers of the metrics get.
func (q *Queue) snapshot() observe.Snapshot {
	s := q.stats()
	return observe.Snapshot{
		Events: int64(s.Events), Bytes: int64(s.Bytes), Requests: int64(s.Requests), PausedGroups: int64(s.PausedGroups),
		OldestAge: s.OldestAge.Seconds(), RateLimit: s.Rate,
		Stored: s.Outcomes.Stored, Duplicates: s.Outcomes.Duplicates,
		NotStored: s.Outcomes.NotStored, InDoubt: s.Outcomes.InDoubt, Altered: s.Outcomes.Altered,
		Retries: s.Retries, Throttles: s.Throttles,
	}
}
