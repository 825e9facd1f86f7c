package process_test

import (
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/memory/process"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/verdict"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
)

// stream sends one event in each step, and gets the answer 20 steps later. Each event has
// a different message group: this is the most expensive case.
type stream struct {
	*process.Memory
	clocks *process.Clocks
	step   time.Duration
	next   int
	events [20]process.Event
	subs   [20]process.Submission
	texts  [][3]string // key, message ID, sequence number
	body   string
}

func newStream(live, texts int) *stream {
	s := &stream{clocks: &process.Clocks{}, step: window.Interval / time.Duration(live)}
	s.Memory = process.NewAt(process.Options{}, s.clocks)
	for i := range texts {
		at := process.ClocksStart.Add(time.Duration(i) * s.step)
		s.texts = append(s.texts, [3]string{"dataset|scene|" + strconv.Itoa(i), "f8d3a1c0-0000-4000-8000-" + strconv.Itoa(i), sequenceAt(at, int64(i%100))})
	}
	s.body = string(make([]byte, 400))
	return s
}

func (s *stream) send(tb testing.TB) {
	i := s.next
	s.next++
	s.clocks.Awake += s.step
	now := s.Now()
	slot := i % len(s.events)
	ev, t := &s.events[slot], &s.subs[slot]
	if i >= len(s.events) {
		texts := &s.texts[(i-len(s.events))%len(s.texts)]
		if s.Record(now, ev, t, process.Result{Fate: attempt.FateStored, MessageID: texts[1], Sequence: texts[2]}) {
			tb.Fatal("a duplicate")
		}
		s.Release(now, ev, t)
	}
	key := s.texts[i%len(s.texts)][0]
	*ev = s.Event(key, key, s.body, s.body[100:], [32]byte{})
	*t = process.Submission{}
	s.Refresh(now, ev, t)
	if v := s.Admit(now, ev, t, false); kindOf(v) != kindGo {
		tb.Fatal(kindOf(v))
	}
}

func heapInUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkSteadyLoad measures the calls of Event, Refresh, Admit, Record and Release for
// one event, with 900,000 other events in the Memory.
func BenchmarkSteadyLoad(b *testing.B) {
	const live = 900_000
	s := newStream(live, 4*live)
	before := heapInUse()
	for range live + live/2 {
		s.send(b)
	}
	used := float64(heapInUse()-before) / live
	b.ReportAllocs()
	for b.Loop() {
		s.send(b)
	}
	b.ReportMetric(used, "B/key")
}

func BenchmarkEvent(b *testing.B) {
	m := process.New(process.Options{})
	body := string(make([]byte, 400))
	b.ReportAllocs()
	for b.Loop() {
		m.Event("dataset|scene|1", "group", body, body[100:], [32]byte{})
	}
}

func TestNothingIsAllocated(t *testing.T) {
	if testing.Short() {
		t.Skip("sends 250,000 events")
	}
	const live = 50_000
	s := newStream(live, 6*live)
	for range 3 * live {
		s.send(t)
	}
	assert.Zero(t, testing.AllocsPerRun(live, func() { s.send(t) }))
	assert.Less(t, s.Len(s.Now()), live*11/10)

	s.clocks.Awake += time.Hour
	for i := range s.events {
		s.Record(s.Now(), &s.events[i], &s.subs[i], refused)
		s.Release(s.Now(), &s.events[i], &s.subs[i])
	}
	assert.True(t, s.Sweep(s.Now()))
	texts := s.texts
	before := heapInUse()
	s.Memory = process.New(process.Options{})
	assert.Less(t, int64(before)-int64(heapInUse()), int64(4<<10), "the sweep had given all back")
	runtime.KeepAlive(texts)
	runtime.KeepAlive(s)
}

// Eight goroutines share a Memory and submit the same events. For each event, exactly one
// submission is not a duplicate.
func TestConcurrentUse(t *testing.T) {
	m := process.New(process.Options{})
	const events, workers = 200, 8
	fresh := make([]int, events)
	var mu sync.Mutex
	var all sync.WaitGroup
	for worker := range workers {
		all.Go(func() {
			for i := range events {
				key := strconv.Itoa(i)
				body := key + strconv.Itoa(i%2)
				ev := m.Event(key, "g", body, body, [32]byte{})
				var sub process.Submission
				m.Refresh(m.Now(), &ev, &sub)
				for try := range 3 {
					v := m.Admit(m.Now(), &ev, &sub, false)
					for ; kindOf(v) == kindRetained; v = m.Admit(m.Now(), &ev, &sub, false) {
						runtime.Gosched() // an attempt of another submission is under way
					}
					if kindOf(v) != kindGo {
						t.Error(kindOf(v))
						return
					}
					r := []process.Result{refused, lost, stored(key)}[try]
					if !m.Record(m.Now(), &ev, &sub, r) && try == 2 {
						mu.Lock()
						fresh[i]++
						mu.Unlock()
					}
				}
				other := m.Event(key, "g", "other"+strconv.Itoa(worker), "other", [32]byte{})
				if i%3 == 0 && kindOf(m.Admit(m.Now(), &other, &process.Submission{}, true)) != kindGo {
					t.Error("not admitted")
				}
				m.Release(m.Now(), &ev, &sub)
				if i%50 == 0 {
					m.Sweep(m.Now())
					m.Len(m.Now())
				}
				if m.Look(m.Now(), &ev).State != verdict.StateStored {
					t.Error("forgotten")
				}
			}
		})
	}
	all.Wait()
	for i, n := range fresh {
		require.Equal(t, 1, n, "event %d", i)
	}
}
