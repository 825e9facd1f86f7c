package observe_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/observe"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/verdict"
)

const here = "messaging.destination.name=events.fifo"

// starting returns the texts of the metric series whose names begin with one of the
// prefixes. Each text is one line: name, unit, kind, attributes and value.
func starting(streams []stream, prefixes ...string) (out []string) {
	for _, text := range texts(streams) {
		if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(text, p) }) {
			out = append(out, text)
		}
	}
	return out
}

func TestSnapshots(t *testing.T) {
	now := observe.Snapshot{
		Events: 1, Bytes: 2, Requests: 3, PausedGroups: 4, OldestAge: 5.5, RateLimit: 6.5, OldestPause: 7.5, ClockSkew: -2,
		EventLimit: 10, ByteLimit: 20, RequestLimit: 30, Keys: 40, KeyLimit: 50, BlockedCallers: 60,
		Retries: 12, Throttles: 13, Pauses: 14, Waits: 15,
	}
	r := newRig(t, func(c *observe.Config) { c.Snapshot = func() observe.Snapshot { return now } })
	s := r.Source("")
	for _, outcome := range []observe.Outcome{observe.OutcomeStored, observe.OutcomeStored, observe.OutcomeDuplicate, observe.OutcomeInDoubt} {
		ctx, span := r.StartEvent(t.Context())
		r.EndEvent(ctx, span, observe.Ended{Source: s, Outcome: outcome, ErrorType: "in_doubt"})
	}
	assert.ElementsMatch(t, []string{
		"sqs_fifo.producer.event.pending {event} updowncounter " + here + " 1",
		"sqs_fifo.producer.event.limit {event} updowncounter " + here + " 10",
		"sqs_fifo.producer.buffer.usage By updowncounter " + here + " 2",
		"sqs_fifo.producer.buffer.limit By updowncounter " + here + " 20",
		"sqs_fifo.producer.request.active {request} updowncounter " + here + " 3",
		"sqs_fifo.producer.request.limit {request} updowncounter " + here + " 30",
		"sqs_fifo.producer.key.remembered {key} updowncounter " + here + " 40",
		"sqs_fifo.producer.key.limit {key} updowncounter " + here + " 50",
		"sqs_fifo.producer.group.paused {group} updowncounter " + here + " 4",
		"sqs_fifo.producer.caller.blocked {call} updowncounter " + here + " 60",
		"sqs_fifo.producer.oldest_event_age s gauge " + here + " 5.5",
		"sqs_fifo.producer.oldest_pause_age s gauge " + here + " 7.5",
		"sqs_fifo.producer.rate_limit {request}/s gauge " + here + " 6.5",
		"sqs_fifo.producer.clock_skew s gauge " + here + " -2",
		"sqs_fifo.producer.outcomes {event} counter " + here + ",sqs_fifo.outcome=stored 2",
		"sqs_fifo.producer.outcomes {event} counter " + here + ",sqs_fifo.outcome=duplicate 1",
		"sqs_fifo.producer.outcomes {event} counter error.type=in_doubt," + here + ",sqs_fifo.outcome=in_doubt 1",
		"sqs_fifo.producer.outcomes {event} counter error.type=altered," + here + ",sqs_fifo.outcome=altered 0",
		"sqs_fifo.producer.event.duration s histogram " + here + ",sqs_fifo.outcome=stored 2",
		"sqs_fifo.producer.event.duration s histogram " + here + ",sqs_fifo.outcome=duplicate 1",
		"sqs_fifo.producer.event.duration s histogram " + here + ",sqs_fifo.outcome=in_doubt 1",
		"sqs_fifo.producer.retries {attempt} counter " + here + " 12",
		"sqs_fifo.producer.throttles {request} counter " + here + " 13",
		"sqs_fifo.producer.pauses {pause} counter " + here + " 14",
		"sqs_fifo.producer.waits {call} counter " + here + " 15",
		"sqs_fifo.producer.violations {violation} counter " + here + ",sqs_fifo.action=reject,sqs_fifo.rule.id=SF001 0",
		"sqs_fifo.producer.violations {violation} counter " + here + ",sqs_fifo.action=reject,sqs_fifo.rule.id=SF053 0",
	}, starting(collect(t, r.reader), "sqs_fifo.producer."))

	now.RateLimit, now.KeyLimit, now.ClockSkew = 0, 0, math.NaN()
	for _, s := range collect(t, r.reader) {
		for _, absent := range []string{"rate_limit", "key.limit", "clock_skew"} {
			assert.NotContains(t, s.text, absent, "no value is not a value of 0")
		}
	}
}

// Every counter of a new producer exists with the value 0, so that alerting rules see the
// increase from 0 to 1.
func TestCountersBeginAtZero(t *testing.T) {
	r := newRig(t, func(c *observe.Config) {
		c.Snapshot, c.StoreSnapshot = func() observe.Snapshot { return observe.Snapshot{} }, func() observe.StoreSnapshot { return observe.StoreSnapshot{} }
	})
	got := texts(collect(t, r.reader))
	for _, want := range []string{
		"sqs_fifo.dedupe.collisions_detected {collision} counter " + here + ",sqs_fifo.collision.kind=conflict 0",
		"sqs_fifo.dedupe.collisions_detected {collision} counter " + here + ",sqs_fifo.collision.kind=drift 0",
		"sqs_fifo.dedupe.collisions_detected {collision} counter " + here + ",sqs_fifo.collision.kind=attributes 0",
		"sqs_fifo.dedupe_window_hits {hit} counter " + here + ",sqs_fifo.replay=true 0",
		"sqs_fifo.dedupe_window_hits {hit} counter " + here + ",sqs_fifo.replay=false 0",
		"sqs_fifo.dedupe.store_hits {hit} counter " + here + " 0",
		"sqs_fifo.provenance.dropped {record} counter " + here + " 0",
		"sqs_fifo.producer.retries {attempt} counter " + here + " 0",
		"sqs_fifo.producer.throttles {request} counter " + here + " 0",
		"sqs_fifo.producer.store.errors {call} counter " + here + " 0",
		"sqs_fifo.producer.violations {violation} counter " + here + ",sqs_fifo.action=reject,sqs_fifo.rule.id=SF053 0",
	} {
		assert.Contains(t, got, want)
	}
}

// Each source of a shared queue has separate metric series. After 20 sources, further
// sources share one name.
func TestSources(t *testing.T) {
	r := newRig(t, func(c *observe.Config) { c.Snapshot = func() observe.Snapshot { return observe.Snapshot{} } })
	names := map[*observe.Source]bool{}
	for i := range 50 {
		s := r.Source(fmt.Sprint("kfm.a.", i))
		assert.Same(t, s, r.Source(fmt.Sprint("kfm.a.", i)))
		names[s] = true
		ctx, span := r.StartEvent(t.Context())
		r.EndEvent(ctx, span, observe.Ended{Source: s, Outcome: observe.OutcomeStored})
	}
	assert.Len(t, names, 21)
	got := starting(collect(t, r.reader), "sqs_fifo.producer.outcomes {event} counter "+here)
	assert.Contains(t, got, "sqs_fifo.producer.outcomes {event} counter "+here+",sqs_fifo.event.source=kfm.a.3,sqs_fifo.outcome=stored 1")
	assert.Contains(t, got, "sqs_fifo.producer.outcomes {event} counter "+here+",sqs_fifo.event.source=_OTHER,sqs_fifo.outcome=stored 30")
	assert.NotContains(t, got, "sqs_fifo.producer.outcomes {event} counter "+here+",sqs_fifo.outcome=stored 0")
}

func TestStoreSnapshots(t *testing.T) {
	now := observe.StoreSnapshot{
		New: 1, Renewed: 2, Reclaimed: 3, Duplicates: 4, Conflicts: 5, Waits: 6, Unresolved: 7, Full: 8, OverQuota: 16,
		Drifts: 9, Unclaimed: 10, Errors: 11, Stale: 12, Lost: 13, Recording: 14, Unrecorded: 15,
	}
	r := newRig(t, func(c *observe.Config) { c.StoreSnapshot = func() observe.StoreSnapshot { return now } })
	decided := "sqs_fifo.producer.store.claims {claim} counter " + here + ",sqs_fifo.decision="
	counted := []string{
		decided + "new 1", decided + "renewed 2", decided + "reclaimed 3", decided + "duplicate 4",
		decided + "conflict 5", decided + "in_progress 6", decided + "unresolved 7", decided + "full 8", decided + "over_quota 16",
		"sqs_fifo.producer.store.drifts {event} counter " + here + " 9",
		"sqs_fifo.producer.store.unclaimed {attempt} counter " + here + " 10",
		"sqs_fifo.producer.store.errors {call} counter " + here + " 11",
		"sqs_fifo.producer.store.stale {result} counter " + here + " 12",
		"sqs_fifo.producer.store.unrecorded {event} counter " + here + " 15",
		"sqs_fifo.producer.store.lost {result} counter " + here + " 13",
	}
	assert.ElementsMatch(t, append(counted, "sqs_fifo.producer.store.result.pending {result} updowncounter "+here+" 14"), texts(collect(t, r.reader)))
	now.Lost = 20
	r.Close()
	counted[len(counted)-1] = strings.Replace(counted[len(counted)-1], "13", "20", 1)
	assert.ElementsMatch(t, counted, texts(collect(t, r.reader)), "Close takes the last counts, and counters remain")
}

// pausedIn returns the value of the metric for paused groups, or "" if the metric does
// not exist.
func pausedIn(t *testing.T, reader *metric.ManualReader) string {
	t.Helper()
	for _, s := range texts(collect(t, reader)) {
		if value, ok := strings.CutPrefix(s, "sqs_fifo.producer.group.paused {group} updowncounter "+here+" "); ok {
			return value
		}
	}
	return ""
}

// After Close, Snapshot is no longer called. The other instruments continue to work.
func TestCloseUnregisters(t *testing.T) {
	var calls atomic.Int64
	r := newRig(t, func(c *observe.Config) {
		c.Snapshot = func() observe.Snapshot { return observe.Snapshot{PausedGroups: calls.Add(1)} }
	})
	assert.Equal(t, "1", pausedIn(t, r.reader))
	assert.Equal(t, "2", pausedIn(t, r.reader), "it is asked in each collection")
	r.Close()
	r.Close()
	r.Collided(t.Context(), nil, verdict.ReuseOtherBody)
	assert.Contains(t, texts(collect(t, r.reader)), "sqs_fifo.dedupe.collisions_detected {collision} counter "+here+",sqs_fifo.collision.kind=drift 1")
	assert.Empty(t, pausedIn(t, r.reader))
	assert.EqualValues(t, 3, calls.Load(), "Close takes the last counts")
}

// Two producers of the same queue share each metric series: amounts are added, ages are
// reported as the maximum, and no counter decreases when one producer is closed.
func TestSnapshotsOfTwoProducers(t *testing.T) {
	reader := metric.NewManualReader()
	provider := metric.NewMeterProvider(metric.WithReader(reader))
	var observers []rig
	for i := range 2 {
		observers = append(observers, newRig(t, func(c *observe.Config) {
			c.Meter = provider
			c.Snapshot = func() observe.Snapshot {
				return observe.Snapshot{PausedGroups: int64(i + 2), OldestAge: float64(9 - i), RateLimit: float64(i + 1), ClockSkew: float64(-3 * i), Retries: int64(i + 5)}
			}
		}))
	}
	const prefix = "sqs_fifo.producer."
	streams := func(paused, age, limit, skew, retries string) []string {
		out := []string{prefix + "retries {attempt} counter " + here + " " + retries}
		if paused != "" {
			out = append(out, prefix+"group.paused {group} updowncounter "+here+" "+paused, prefix+"oldest_event_age s gauge "+here+" "+age,
				prefix+"rate_limit {request}/s gauge "+here+" "+limit, prefix+"clock_skew s gauge "+here+" "+skew)
		}
		return out
	}
	got := func() []string {
		return starting(collect(t, reader), prefix+"group.paused", prefix+"oldest_event_age", prefix+"rate_limit", prefix+"clock_skew", prefix+"retries")
	}
	assert.ElementsMatch(t, streams("5", "9", "3", "-3", "11"), got())
	observers[0].Close()
	assert.ElementsMatch(t, streams("3", "8", "2", "-3", "11"), got())
	observers[1].Close()
	assert.ElementsMatch(t, streams("", "", "", "", "11"), got())

	again := newRig(t, func(c *observe.Config) {
		c.Meter, c.Snapshot = provider, func() observe.Snapshot { return observe.Snapshot{PausedGroups: 1, Retries: 1} }
	})
	assert.ElementsMatch(t, append(streams("1", "0", "", "0", "12")[:3], prefix+"clock_skew s gauge "+here+" 0"), got())
	again.Close()
}

// After Close returns, Snapshot is not running and is not called again.
func TestCloseWaitsForASnapshot(t *testing.T) {
	running, release := make(chan struct{}), make(chan struct{})
	r := newRig(t, func(c *observe.Config) {
		first := sync.OnceFunc(func() { close(running) })
		c.Snapshot = func() observe.Snapshot { first(); <-release; return observe.Snapshot{} }
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
