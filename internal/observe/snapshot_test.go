package observe_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/observe"
)

const here = "messaging.destination.name=events.fifo"

func TestSnapshots(t *testing.T) {
	now := observe.Snapshot{
		Events: 1, Bytes: 2, Requests: 3, PausedGroups: 4, OldestAge: 5.5, RateLimit: 6.5,
		Stored: 7, Duplicates: 8, NotStored: 9, InDoubt: 10, Altered: 11, Retries: 12, Throttles: 13,
	}
	r := newRig(t, func(c *observe.Config) { c.Snapshot = func() observe.Snapshot { return now } })
	assert.ElementsMatch(t, []string{
		"sqs_fifo.producer.pending_events {event} updowncounter " + here + " 1",
		"sqs_fifo.producer.pending_bytes By updowncounter " + here + " 2",
		"sqs_fifo.producer.active_requests {request} updowncounter " + here + " 3",
		"sqs_fifo.producer.paused_groups {group} updowncounter " + here + " 4",
		"sqs_fifo.producer.oldest_event_age s gauge " + here + " 5.5",
		"sqs_fifo.producer.rate_limit {request}/s gauge " + here + " 6.5",
		"sqs_fifo.producer.outcomes {event} counter " + here + ",sqs_fifo.outcome=stored 7",
		"sqs_fifo.producer.outcomes {event} counter " + here + ",sqs_fifo.outcome=duplicate 8",
		"sqs_fifo.producer.outcomes {event} counter " + here + ",sqs_fifo.outcome=not_stored 9",
		"sqs_fifo.producer.outcomes {event} counter " + here + ",sqs_fifo.outcome=in_doubt 10",
		"sqs_fifo.producer.outcomes {event} counter " + here + ",sqs_fifo.outcome=altered 11",
		"sqs_fifo.producer.retries {attempt} counter " + here + " 12",
		"sqs_fifo.producer.throttles {request} counter " + here + " 13",
	}, texts(collect(t, r.reader)))

	now.RateLimit = 0
	for _, s := range collect(t, r.reader) {
		assert.NotContains(t, s.text, "rate_limit", "no limit is not a limit of 0")
	}
}

func TestStoreSnapshots(t *testing.T) {
	now := observe.StoreSnapshot{
		New: 1, Renewed: 2, Reclaimed: 3, Duplicates: 4, Conflicts: 5, InProgress: 6, Indeterminate: 7, Full: 8,
		Drifts: 9, Unclaimed: 10, Errors: 11, Stale: 12, Lost: 13, Unsettled: 14,
	}
	r := newRig(t, func(c *observe.Config) { c.StoreSnapshot = func() observe.StoreSnapshot { return now } })
	decided := "sqs_fifo.producer.store.claims {claim} counter " + here + ",sqs_fifo.decision="
	assert.ElementsMatch(t, []string{
		decided + "new 1", decided + "renewed 2", decided + "reclaimed 3", decided + "duplicate 4",
		decided + "conflict 5", decided + "in_progress 6", decided + "indeterminate 7", decided + "full 8",
		"sqs_fifo.producer.store.drifts {event} counter " + here + " 9",
		"sqs_fifo.producer.store.unclaimed {attempt} counter " + here + " 10",
		"sqs_fifo.producer.store.errors {call} counter " + here + " 11",
		"sqs_fifo.producer.store.stale {result} counter " + here + " 12",
		"sqs_fifo.producer.store.lost {result} counter " + here + " 13",
		"sqs_fifo.producer.store.unsettled {result} updowncounter " + here + " 14",
	}, texts(collect(t, r.reader)))
	r.Close()
	assert.Empty(t, collect(t, r.reader))
}

// pausedIn returns the value of one instrument.
func pausedIn(t *testing.T, reader *metric.ManualReader) string {
	t.Helper()
	for _, s := range texts(collect(t, reader)) {
		if value, ok := strings.CutPrefix(s, "sqs_fifo.producer.paused_groups {group} updowncounter "+here+" "); ok {
			return value
		}
	}
	return ""
}

// Close ends the calls of Snapshot. The other instruments go on.
func TestCloseUnregisters(t *testing.T) {
	var calls atomic.Int64
	r := newRig(t, func(c *observe.Config) {
		c.Snapshot = func() observe.Snapshot { return observe.Snapshot{PausedGroups: calls.Add(1)} }
	})
	assert.Equal(t, "1", pausedIn(t, r.reader))
	assert.Equal(t, "2", pausedIn(t, r.reader), "it is asked in each collection")
	r.Close()
	r.Close()
	r.Collided(t.Context())
	assert.Equal(t, []string{"sqs_fifo.dedupe.collisions_detected {collision} counter " + here + " 1"}, texts(collect(t, r.reader)))
	assert.EqualValues(t, 2, calls.Load())
}

// The producers of one queue share a stream.
func TestSnapshotsOfTwoProducers(t *testing.T) {
	reader := metric.NewManualReader()
	provider := metric.NewMeterProvider(metric.WithReader(reader))
	var observers []rig
	for i := range 2 {
		observers = append(observers, newRig(t, func(c *observe.Config) {
			c.Meter, c.Snapshot = provider, func() observe.Snapshot { return observe.Snapshot{PausedGroups: int64(i + 2)} }
		}))
	}
	assert.Equal(t, "5", pausedIn(t, reader))
	observers[0].Close()
	assert.Equal(t, "3", pausedIn(t, reader))
}

// After Close has returned, Snapshot is not running and is not called again.
func TestCloseWaitsForASnapshot(t *testing.T) {
	running, release := make(chan struct{}), make(chan struct{})
	r := newRig(t, func(c *observe.Config) {
		c.Snapshot = func() observe.Snapshot { close(running); <-release; return observe.Snapshot{} }
	})
	collected, closed := make(chan struct{}), make(chan struct{})
	go func() { defer close(collected); collect(t, r.reader) }()
	<-running
	go func() { defer close(closed); r.Close() }()
	select {
	case <-closed:
		t.Error("Close returned while Snapshot was running")
	case <-time.After(50 * time.Millisecond):
	}
	close(release)
	<-collected
	<-closed
}
