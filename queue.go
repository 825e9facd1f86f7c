package sqsfifo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/google/uuid"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/clock"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/dispatch"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/foreign"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/memory"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/observe"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/outage"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/queueurl"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/sink"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/sqscall"
	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// Queue is this process's sender to one FIFO queue, with message groups, buffer, pacing,
// memory and telemetry. A Queue is safe for concurrent use.
//
// Producers of several event types for one queue share one Queue (see [NewProducerOn]).
// Sharing keeps the order of a message group across producers and detects a dedupe key that
// two producers use.
//
// A Queue runs goroutines only while it has events, and [Queue.Close] waits for them:
//
//   - at most Delivery.InFlight goroutines that make requests
//   - one goroutine that reports outcomes
//   - while callbacks block, at most one more reporting goroutine for each message group
//     with unreported outcomes, and at most Delivery.BufferEvents in all
type Queue struct {
	sender     *sender
	showKeys   bool // Telemetry.ShowDedupeKeys
	dispatcher *dispatch.Dispatcher[submission]
	limits     observe.Snapshot // has only the limits, such as EventLimit; snapshot fills in the rest
}

// NewQueue returns a queue for several producers. The error joins one [*InvalidError]
// for each wrong field. NewQueue makes no request.
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

// processBegan lets a store distinguish this process from earlier processes with the same
// StoreConfig.Owner.
var processBegan = time.Now()

// newQueue returns a queue for a checked configuration.
func newQueue(client Client, config QueueConfig) (*Queue, error) {
	explicit := config.Deduplication == DeduplicationExplicit
	c := &sender{}
	c.sqs, c.store = outage.New("SQS", &c.log), outage.New("the store", &c.log)
	c.caller, c.explicit = sqscall.New(client, config.URL), explicit
	c.inspector = &inspector{client: client, queueURL: config.URL, explicit: explicit, service: c.sqs}
	if mistake := sqscall.Misconfigured(client, config.URL); mistake != "" {
		c.inspector.unreachable = &QueueError{QueueURL: config.URL, Problems: []string{mistake}}
	}
	memoryOptions := memory.Options{
		AcceptTimes: config.Delivery.Memory.DetectForeignDuplicates, MaxKeys: config.Delivery.Memory.MaxKeys,
		Store: config.Store.Store, FailOpen: config.Store.FailOpen, Recompute: fingerprintOfBody, Note: c.store.Record,
		Owner: config.Store.Owner, Began: processBegan,
	}
	if simulated, ok := client.(interface{ Clock() *clock.Clock }); ok { // a test of this module simulates the machine
		memoryOptions.Clock = simulated.Clock()
	}
	var err error
	if memoryOptions.Store != nil {
		if memoryOptions.Policy, err = config.Store.policy(config.Delivery.RetryFor); err != nil {
			return nil, err
		}
		c.keys = storeKeys{client: config.Store.Client, queue: cmp.Or(config.Store.Queue, queueurl.ARN(config.URL)), inspector: c.inspector}
	}
	if c.caller.ShowTexts = config.Telemetry.ShowErrorTexts; !c.caller.ShowTexts {
		memoryOptions.Hide = foreign.Known{}.Hide
	}
	c.memory = memory.New(memoryOptions)
	c.clockSkew.Store(math.Float64bits(math.NaN()))
	c.startFor = cmp.Or(config.Delivery.StartFor, usualStartFor)
	options := config.Delivery.options()
	if memoryOptions.Store != nil {
		options.Prepared = maxPrepared
	}
	if memoryOptions.Store != nil && config.Delivery.RetryFor == 0 {
		options.RetryFor = config.Store.retryFor()
	}
	q := &Queue{sender: c, showKeys: config.Telemetry.ShowDedupeKeys, dispatcher: dispatch.New(c, options)}
	q.limits = observe.Snapshot{
		EventLimit: int64(options.Items), ByteLimit: int64(options.Bytes), RequestLimit: int64(options.InFlight),
		KeyLimit: int64(config.Delivery.Memory.MaxKeys),
	}
	var rules []string
	for _, r := range lint.Rules() {
		if r.Passes.Has(lint.OnMessage) || r.Passes.Has(lint.OnStream) { // rules that check messages, not source code
			rules = append(rules, r.ID)
		}
	}
	c.log.Log = sink.NewLog(config.Telemetry.Logger, "sqsfifo", config.URL)
	var ofStore func() observe.StoreSnapshot
	if memoryOptions.Store != nil {
		ofStore = func() observe.StoreSnapshot { return observe.StoreSnapshot(c.memory.StoreStats()) }
	}
	c.observer, err = observe.New(observe.Config{
		Meter: config.Telemetry.MeterProvider, Tracer: config.Telemetry.TracerProvider, Propagator: config.Telemetry.Propagator,
		QueueURL: config.URL, Version: Version, Rules: rules, NoEventSpans: config.Telemetry.NoEventSpans,
		Snapshot: q.snapshot, StoreSnapshot: ofStore,
		ValidAttribute: func(name, value string) bool {
			return lint.CheckAttribute(name, lint.Attribute{DataType: stringType, StringValue: value}) == nil
		},
	})
	if err != nil {
		return nil, fmt.Errorf("sqsfifo: create instruments: %w", err)
	}
	c.sink = sink.New(config.Telemetry.Provenance, maxRecords, func() {
		c.observer.DroppedRecord()
		c.log.recordLost()
	})
	c.requests, c.abort = context.WithCancel(context.Background())
	return q, nil
}

// maxRecords is the number of records that may wait for a provenance sink.
const maxRecords = 10_000

// Preflight reads the queue's attributes and checks the queue: FIFO, and deduplication as
// Config.Deduplication expects. After success, MaximumMessageSize limits each message.
// Notes of the report are advice about a usable queue. The error is a [*QueueError] with
// all problems, or the client's error. For an *sqs.Client without an endpoint, or with the
// endpoint of another region, it comes without a request.
//
// The first send runs the same check. If the credentials permit sending but not reading
// attributes, sends continue without the check, and SQS itself refuses unsuitable messages.
// After a problem or an error, the next check runs at least ten seconds later.
func (q *Queue) Preflight(ctx context.Context) (QueueReport, error) {
	return q.sender.inspector.ask(ctx)
}

// Flush sends the events that wait for Delivery.Linger, and waits for the outcomes of all
// events submitted earlier. If ctx ends first, Flush returns the context's error and the
// events continue. If events submitted with a nil callback have failed, Flush returns an
// [*UnreportedError].
func (q *Queue) Flush(ctx context.Context) error {
	if err := q.dispatcher.Flush(ctx); err != nil {
		return fmt.Errorf("sqsfifo: events still under way: %w", err)
	}
	return q.sender.takeUnreported()
}

// Close refuses new events with [ErrClosed] and waits for the submitted events. After a nil
// error every event has its outcome and all goroutines of the queue have ended. Close may
// be called more than once.
//
// If ctx ends first, Close withdraws the remaining events and returns the context's error.
// Each of these events gets a [*NotStoredError] or an [*InDoubtError]. Close waits at most
// one more second for blocked callbacks; the error contains the number of unreported
// outcomes.
//
// Close also returns these errors:
//
//   - an [*UnreportedError], if events submitted with a nil callback have failed
//   - a [*ProvenanceError], if records are missing from Telemetry.Provenance
//   - an [*UnrecordedError], if results are missing from the store
//
// For the store, Close waits at most ten seconds, plus one second for a store that ignores
// its context.
func (q *Queue) Close(ctx context.Context) error {
	blocked, err := q.dispatcher.Close(ctx, q.sender.abort)
	switch {
	case blocked > 0:
		err = fmt.Errorf("sqsfifo: close: %d outcomes not reported, because callbacks block: %w", blocked, err)
	case err != nil:
		err = fmt.Errorf("sqsfifo: close: the remaining events were withdrawn: %w", err)
	}
	unrecorded := q.closeStore(ctx)
	q.sender.observer.Close()
	return errors.Join(err, q.sender.takeUnreported(), unrecorded, q.closeSink(ctx), q.sender.log.flush(ctx))
}

func (q *Queue) closeStore(ctx context.Context) error {
	if lost, err := q.sender.memory.Close(ctx); lost > 0 {
		return &UnrecordedError{Lost: lost, Err: err}
	}
	return nil
}

func (q *Queue) closeSink(ctx context.Context) error {
	l := q.sender.sink
	if err := l.Flush(ctx); err != nil {
		return fmt.Errorf("sqsfifo: close: provenance records still to be written: %w", err)
	}
	if lost, err := l.Lost(); lost > 0 {
		if !q.sender.caller.ShowTexts { // the provenance sink receives dedupe keys, so the text of its error may contain one
			err = foreign.Known{}.Hide(err)
		}
		return &ProvenanceError{Lost: lost, Err: err}
	}
	return nil
}

// Pause describes the pause of a message group.
type Pause struct {
	// EventID and DedupeKey identify the failed event. During the pause, only this event
	// can be sent again; other events of the group are refused.
	EventID   uuid.UUID
	DedupeKey string

	// Fate is FateInDoubt, FateAltered, or, with GroupFailurePause, FateNotStored.
	Fate Fate

	// Code is the error code of SQS, or "" without a code.
	Code string

	// Since is the time of the failure. Until is the latest end of the pause. With
	// GroupFailurePause, Until is zero: only Resume or a stored resend ends the pause.
	Since, Until time.Time
}

// Paused returns all paused message groups. The caller owns the map.
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

// Resume ends the pause of a message group. New events of the group are then sent, even
// if the failed event is never sent again. Delivery.OnGroupFailure decides which failures
// pause a group.
//
// During the pause only the failed event, identified by its dedupe key, may be sent. The
// pause ends without Resume in two cases:
//
//   - The failed event is sent again and stored. The order of the group is then kept.
//   - SQS has forgotten the failed event, after about five minutes at most. This case
//     applies only with GroupFailurePauseInDoubt.
//
// Events queued after the failed event have already failed with [ErrGroupPaused]. Resume
// does not send them.
func (q *Queue) Resume(group string) { q.dispatcher.Resume(group) }

// ResumeAll ends the pauses of all message groups and returns the number of paused
// groups.
func (q *Queue) ResumeAll() int { return q.dispatcher.ResumeAll() }

// Stats returns a snapshot of the queue. It visits each message group with events and
// each remembered key.
func (q *Queue) Stats() Stats {
	s := q.stats()
	s.RememberedKeys = q.sender.memory.Len()
	return s
}

// stats returns the same as Stats, except that RememberedKeys is 0.
func (q *Queue) stats() Stats {
	s, c := q.dispatcher.Stats(), &q.sender.counts
	return Stats{
		Store:  StoreStats(q.sender.memory.StoreStats()),
		Events: s.Items, Bytes: s.Bytes, Requests: s.Requests, OldestAge: s.Oldest, PausedGroups: s.Paused, Rate: s.Rate,
		Outcomes: c.outcomes(), Retries: c.retries.Load(), Throttles: c.throttles.Load(),
	}
}

// snapshot returns the values for OpenTelemetry's asynchronous instruments, such as
// gauges.
func (q *Queue) snapshot() observe.Snapshot {
	s, d, c := q.limits, q.dispatcher.Stats(), q.sender
	s.Events, s.Bytes, s.Requests = int64(d.Items), int64(d.Bytes), int64(d.Requests)
	s.Keys, s.PausedGroups, s.BlockedCallers = int64(c.memory.Held()), int64(d.Paused), int64(d.Blocked)
	s.OldestAge, s.OldestPause, s.RateLimit = d.Oldest.Seconds(), d.OldestPause.Seconds(), d.Rate
	s.ClockSkew = math.Float64frombits(c.clockSkew.Load())
	s.Retries, s.Throttles, s.Pauses, s.Waits = c.counts.retries.Load(), c.counts.throttles.Load(), d.Pauses, d.Waits
	return s
}
