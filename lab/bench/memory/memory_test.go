package memory

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo"
)

var keys = flag.Int("keys", 100_000, "remembered dedupe keys; 900000 are 3,000 events a second")

// event has a body of about 250 bytes plus the length of Text.
type event struct {
	Number int    `json:"number"`
	Text   string `json:"text"`
}

var (
	small = strings.Repeat("s", 150)
	large = strings.Repeat("l", 5_000-250)
)

var occurred = time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)

func newProducer(t *testing.T, c sqsfifo.Client, groups int, d sqsfifo.Delivery) *sqsfifo.Producer[event] {
	t.Helper()
	p, err := sqsfifo.NewProducer(c, sqsfifo.Config[event]{
		QueueURL: "https://sqs.us-east-1.amazonaws.com/123456789012/memory.fifo",
		Source:   "kfm.remote-sensing.landsat-refresh",
		Identify: func(e event) (sqsfifo.Identity, error) {
			key, err := sqsfifo.JoinKey("scene", strconv.Itoa(e.Number))
			return sqsfifo.Identity{DedupeKey: key, Group: fmt.Sprintf("wrs2-%06d", e.Number%groups), Time: occurred}, err
		},
		Delivery: d,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Preflight(t.Context()); err != nil {
		t.Fatal(err)
	}
	return p
}

type table struct {
	*testing.T
	strings.Builder
}

// row adds a row to the table. The test fails if the figure exceeds the bound.
func (tb *table) row(what string, figure, bound float64, unit string) {
	tb.Helper()
	format := "%.0f %s"
	if figure < 100 {
		format = "%.1f %s"
	}
	text := fmt.Sprintf(format, figure, unit)
	if figure > bound {
		text += " MISSED"
		tb.Errorf("%s: %.1f %s, want at most %v", what, figure, unit, bound)
	}
	fmt.Fprintf(tb, "| %s | %s | %v %s |\n", what, text, bound, unit)
}

// TestMemory prints how many bytes of the heap a producer uses after a garbage collection.
func TestMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("sends some 500,000 events")
	}
	tb := &table{T: t}
	fmt.Fprintf(tb, "%s, %d keys\n\n| what | held | bound |\n|---|---|---|\n", runtime.Version(), *keys)
	tb.batchPeak(100_000)
	tb.queued("small", small, 50_000, 50_000, 2_000)
	tb.queued("small", small, 50_000, 100, 1_500)
	tb.queued("5 kB", large, 20_000, 20_000, 2_500)
	synctest.Test(t, func(t *testing.T) { tb.paused(t, 20_000) })
	synctest.Test(t, func(t *testing.T) { tb.remembered(t, "one group an event", *keys, *keys) })
	synctest.Test(t, func(t *testing.T) { tb.remembered(t, "100 groups", *keys, 100) })
	t.Log("\n\n" + tb.String())
}

// queued measures the memory of events that wait in the buffer while SQS answers no
// request.
func (tb *table) queued(size, text string, n, groups int, bound float64) {
	p := newProducer(tb.T, &silentClient{}, groups, sqsfifo.Delivery{InFlight: 1, BufferEvents: n, BufferBytes: n << 20})
	bodies := 0
	for i := range n {
		m, err := p.Build(event{i, text})
		if err != nil {
			tb.Fatal(err)
		}
		bodies += len(m.Body)
	}
	done := func(sqsfifo.Receipt, error) {} // ignores the outcome: Close below makes all events fail
	before := heap()
	for i := range n {
		p.SendAsync(tb.Context(), event{i, text}, done)
	}
	held := heap() - before
	if s := p.Stats(); s.Events != n {
		tb.Fatalf("%d events wait, want %d", s.Events, n)
	}
	ended, cancel := context.WithCancel(tb.Context())
	cancel()
	_ = p.Close(ended) // returns an error for withdrawn events
	tb.row(fmt.Sprintf("queued event, %s, %d groups, besides its body of %d bytes", size, groups, bodies/n), each(held-bodies, n), bound, "B")
}

// paused measures the memory of paused message groups, each with one event in doubt. A
// producer slows down when its requests fail, so the measurement takes minutes of virtual
// time.
func (tb *table) paused(t *testing.T, n int) {
	p := newProducer(t, &failingClient{}, n, sqsfifo.Delivery{RetryFor: 1})
	events := make([]event, n)
	for i := range events {
		events[i] = event{i, small}
	}
	before := heap()
	results := p.SendBatch(t.Context(), events)
	for _, r := range results {
		if sqsfifo.FateOf(r.Err) != sqsfifo.FateInDoubt {
			t.Fatal(r.Err)
		}
	}
	withErrors := heap() - before
	runtime.KeepAlive(results)
	results = nil
	held := heap() - before
	if paused := p.Stats().PausedGroups; paused != n {
		t.Fatalf("%d groups are paused, want %d", paused, n)
	}
	if each(withErrors, n) < errorBytes {
		t.Errorf("the errors take %.0f bytes each: they are smaller than they should be", each(withErrors, n))
	}
	tb.row("paused group with its event in doubt", each(held, n), 1_000, "B")

	time.Sleep(10 * time.Minute)
	// The producer has now replaced its empty maps, because a Go map does not shrink.
	tb.row("the same after 10 idle minutes", each(heap()-before, n), 20, "B")
	if s := p.Stats(); s.PausedGroups > 0 || s.RememberedKeys > 0 {
		t.Errorf("still held after 10 minutes: %+v", s)
	}
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
	runtime.KeepAlive(events)
}

// remembered measures a producer's memory for each dedupe key. A producer remembers a key
// for five minutes, so the n events are sent in less time.
func (tb *table) remembered(t *testing.T, what string, n, groups int) {
	const seconds = 290
	p := newProducer(t, &client{}, groups, sqsfifo.Delivery{})
	before := heap()
	events := make([]event, 0, n/seconds+1)
	for sent := 0; sent < n; {
		events = events[:0]
		for range min(n-sent, cap(events)) {
			events = append(events, event{sent, small})
			sent++
		}
		if err := p.SendBatch(t.Context(), events).Err(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
	}
	held := heap() - before
	if remembered := p.Stats().RememberedKeys; remembered != n {
		t.Errorf("%d keys are remembered, want %d", remembered, n)
	}
	tb.row("remembered key, "+what, each(held, n), 120, "B")

	time.Sleep(10 * time.Minute)
	tb.row("the same after 10 idle minutes", each(heap()-before, n), 5, "B")
	if remembered := p.Stats().RememberedKeys; remembered != 0 {
		t.Errorf("%d keys are remembered after 10 minutes", remembered)
	}
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
	runtime.KeepAlive(events)
}

// batchPeak measures the heap while one call sends many events through a small buffer.
func (tb *table) batchPeak(n int) {
	p := newProducer(tb.T, &client{}, 1_000, sqsfifo.Delivery{BufferBytes: 1 << 20})
	events := make([]event, n)
	for i := range events {
		events[i] = event{i, large}
	}
	before := heap()
	stop, peaks := make(chan struct{}), make(chan [2]int)
	go samplePeaks(stop, peaks)
	results := p.SendBatch(tb.Context(), events)
	close(stop)
	peak := <-peaks
	if err := results.Err(); err != nil {
		tb.Fatal(err)
	}
	after := heap() - before
	runtime.KeepAlive(results)
	results = nil
	kept := heap() - before
	const mb = 1e6
	what := fmt.Sprintf("SendBatch of %d x 5 kB, BufferBytes 1 MiB: ", n)
	tb.row(what+"peak of what is live", float64(peak[0]-before)/mb, 150, "MB")
	tb.row(what+"peak with garbage", float64(peak[1]-before)/mb, 300, "MB")
	tb.row("of this, the results that the caller gets", float64(after-kept)/mb, 100, "MB")
	tb.row("and what the producer remembers", float64(kept)/mb, 20, "MB")
	if err := p.Close(tb.Context()); err != nil {
		tb.Error(err)
	}
	runtime.KeepAlive(events)
}

// When the channel `stop` is closed, samplePeaks sends two peaks in bytes: of the heap that
// was live after a collection, and of the heap with garbage.
func samplePeaks(stop <-chan struct{}, peaks chan<- [2]int) {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/objects:bytes"}}
	var most [2]int
	for {
		metrics.Read(samples)
		for i := range most {
			most[i] = max(most[i], int(samples[i].Value.Uint64()))
		}
		select {
		case <-stop:
			peaks <- most
			return
		case <-time.After(200 * time.Microsecond):
		}
	}
}

// heap returns the heap bytes in use after a collection.
func heap() int {
	for range 3 { // a collection frees pooled objects and finalized objects only at its second or third run
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc) // #nosec G115 -- far below the limit
}

func each(bytes, n int) float64 { return float64(bytes) / float64(n) }
