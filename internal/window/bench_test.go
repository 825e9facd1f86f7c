package window_test

import (
	"encoding/binary"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"
	"unsafe"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
)

// answer is a value of 32 bytes without pointers, like the values that the producer and
// the fake queue keep in a window.
type answer [32]byte

// liveIDs returns the number of IDs in the window of a benchmark. The default is 900,000:
// the IDs of five minutes at 3,000 messages a second. SQSFIFO_WINDOW_IDS sets another
// number, for example 21000000 for 70,000 messages a second.
func liveIDs(b *testing.B) int {
	text, ok := os.LookupEnv("SQSFIFO_WINDOW_IDS")
	if !ok {
		return 900_000
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		b.Fatalf("SQSFIFO_WINDOW_IDS=%q: must be a positive number", text)
	}
	return n
}

// stream is a window with a clock. Each call of the method `put` advances the clock by step
// and puts one new ID into the window. IDs thus arrive and expire at a steady rate, as
// for a busy queue.
type stream struct {
	*window.Window[answer]
	step time.Duration
	next uint64
	// text is a buffer for an ID, as long as a hexadecimal SHA-256 hash.
	text [64]byte
}

func (s *stream) id(i uint64) window.Key {
	binary.BigEndian.PutUint64(s.text[:], i)
	return s.Key("", unsafe.String(&s.text[0], len(s.text)))
}

func (s *stream) now() time.Time { return start.Add(time.Duration(s.next) * s.step) }

func (s *stream) put(b *testing.B) {
	s.next++
	now := s.now()
	k := s.id(s.next)
	if _, state := s.Lookup(now, k); state != window.Outside {
		b.Fatal("a new ID is known")
	}
	if err := s.Put(now, k, window.Record[answer]{From: now, To: now}); err != nil {
		b.Fatal(err)
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkWindow measures a steady state, in which as many IDs expire as arrive. The
// case "insert" measures all steps for a new ID: make the key, look the key up, and put
// the record.
func BenchmarkWindow(b *testing.B) {
	n := liveIDs(b)
	before := heap()
	s := &stream{Window: window.New[answer](window.Options{}), step: window.Interval / time.Duration(n)}
	for range n + n/2 {
		s.put(b)
	}
	used := float64(heap()-before) / float64(n)
	rng := uint64(1)
	random := func() uint64 { // splitmix64
		rng += 0x9e3779b97f4a7c15
		z := rng
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		return z ^ z>>31
	}
	b.Run("hit", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, state := s.Lookup(s.now(), s.id(s.next-random()%uint64(n-2))); state != window.Inside {
				b.Fatal("a live ID is not known")
			}
		}
	})
	b.Run("miss", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, state := s.Lookup(s.now(), s.id(1<<63|random())); state != window.Outside {
				b.Fatal("an ID that never was is known")
			}
		}
	})
	b.Run("insert", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s.put(b)
		}
		b.ReportMetric(used, "B/id")
	})
	runtime.KeepAlive(s)
}

func BenchmarkKey(b *testing.B) {
	s := &stream{Window: window.New[answer](window.Options{})}
	b.ReportAllocs()
	for b.Loop() {
		s.id(1)
	}
}
