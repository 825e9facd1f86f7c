package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/coocood/freecache"
	"github.com/dgraph-io/ristretto/v2"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
	"github.com/kansas-frontier-matrix/sqsfifo/lab/bench/internal/meter"
	"github.com/maypok86/otter/v2"
)

// id is a deduplication ID: a SHA-256. An array has no pointer and is hashed fast, so it is
// the fastest form for the maps and caches.
type id [32]byte

// answer is what SQS answers to a duplicate: the receipt of the first message.
type answer struct {
	message  [16]byte
	sequence uint64
}

// memory is the interface of the compared implementations, which remember IDs for five
// minutes. The method `claim` reports whether an ID is live (remembered), and otherwise makes
// the ID live.
type memory interface {
	claim(now time.Time, i *id, a answer) (live bool)
	known(now time.Time, i *id) bool
	note() string // more information about the run
}

var sides = map[string]func(n int) memory{
	"window":    newWindow,
	"map":       newMap,
	"otter":     newOtter,
	"freecache": newFreecache,
	"ristretto": newRistretto,
}

// sideNames has the names of the compared implementations in the order of the table. The
// first is package window.
var sideNames = []string{"window", "map", "otter", "freecache", "ristretto"}

// realTime has the implementations that use the system clock. The phases "inside" and
// "outside" (of the deduplication interval) move the simulated time, so these
// implementations skip them.
var realTime = map[string]bool{"ristretto": true}

type ours struct{ *window.Window[answer] }

func newWindow(int) memory { return ours{window.New[answer](window.Options{})} }

func (o ours) claim(now time.Time, i *id, a answer) bool {
	k := o.Key("", string(i[:]))
	if _, state := o.Lookup(now, k); state == window.Inside {
		return true
	}
	meter.Check(o.Put(now, k, window.Record[answer]{From: now, To: now, Value: a}))
	return false
}

func (o ours) known(now time.Time, i *id) bool {
	_, state := o.Lookup(now, o.Key("", string(i[:])))
	return state == window.Inside
}

func (o ours) note() string { return "" }

// expiring is the simplest solution: a map, and a queue of its IDs in the order of expiry.
// Each claim deletes the expired IDs.
type expiring struct {
	entries map[id]entry
	due     []id
	head    int
}

type entry struct {
	answer
	until int64
}

func newMap(int) memory { return &expiring{entries: map[id]entry{}} }

func (m *expiring) claim(now time.Time, i *id, a answer) bool {
	at := now.UnixNano()
	for m.head < len(m.due) && m.entries[m.due[m.head]].until <= at {
		delete(m.entries, m.due[m.head])
		m.head++
	}
	if m.head > len(m.due)/2 {
		m.due = m.due[:copy(m.due, m.due[m.head:])]
		m.head = 0
	}
	if m.known(now, i) {
		return true
	}
	m.entries[*i] = entry{a, at + int64(window.Interval)}
	m.due = append(m.due, *i)
	return false
}

func (m *expiring) known(now time.Time, i *id) bool {
	e, ok := m.entries[*i]
	return ok && now.UnixNano() < e.until
}

func (m *expiring) note() string { return "" }

type otterCache struct {
	cache *otter.Cache[id, answer]
	clock *clock
}

type clock struct{ now int64 }

func (c *clock) NowNano() int64                      { return c.now }
func (c *clock) Tick(time.Duration) <-chan time.Time { return nil }

func newOtter(int) memory {
	c := &clock{now: epoch.UnixNano()}
	return otterCache{clock: c, cache: otter.Must(&otter.Options[id, answer]{
		Clock: c, ExpiryCalculator: otter.ExpiryWriting[id, answer](window.Interval),
		Executor: func(task func()) { task() }, // tasks run in the calling goroutine, so that their time counts
	})}
}

func (o otterCache) claim(now time.Time, i *id, a answer) bool {
	o.clock.now = now.UnixNano()
	_, stored := o.cache.SetIfAbsent(*i, a)
	return !stored
}

func (o otterCache) known(now time.Time, i *id) bool {
	o.clock.now = now.UnixNano()
	_, ok := o.cache.GetIfPresent(*i)
	return ok
}

func (o otterCache) note() string { return "" }

// ristrettoCache stores a value only after a delay, and may drop it.
type ristrettoCache struct {
	cache *ristretto.Cache[[]byte, answer]
}

func newRistretto(n int) memory {
	c, err := ristretto.NewCache(&ristretto.Config[[]byte, answer]{
		NumCounters: int64(n) * 10, MaxCost: int64(n) * 2, IgnoreInternalCost: true, BufferItems: 64,
	})
	meter.Check(err)
	return &ristrettoCache{c}
}

func (r *ristrettoCache) claim(now time.Time, i *id, a answer) bool {
	if r.known(now, i) {
		return true
	}
	r.cache.SetWithTTL(i[:], a, 1, window.Interval)
	return false
}

func (r *ristrettoCache) known(_ time.Time, i *id) bool {
	_, ok := r.cache.Get(i[:])
	return ok
}

func (r *ristrettoCache) note() string { return "no clock to set" }

// freecacheBytes is the space per entry in the ring buffer. With less, the cache lost
// entries.
const freecacheBytes = 128

type freeCache struct {
	cache *freecache.Cache
	clock *seconds
	value [24]byte
}

// seconds is the clock of freecache, in whole seconds.
type seconds struct{ now uint32 }

func (s *seconds) Now() uint32 { return s.now }

func newFreecache(n int) memory {
	s := &seconds{now: uint32(epoch.Unix())}
	return &freeCache{cache: freecache.NewCacheCustomTimer(n*freecacheBytes, s), clock: s}
}

func (f *freeCache) claim(now time.Time, i *id, a answer) bool {
	if f.known(now, i) {
		return true
	}
	copy(f.value[:], a.message[:])
	binary.BigEndian.PutUint64(f.value[16:], a.sequence)
	meter.Check(f.cache.Set(i[:], f.value[:], int(window.Interval/time.Second)))
	return false
}

func (f *freeCache) known(now time.Time, i *id) bool {
	f.clock.now = uint32(now.Unix())
	_, err := f.cache.GetWithBuf(i[:], f.value[:])
	if err != nil && !errors.Is(err, freecache.ErrNotFound) {
		meter.Check(err)
	}
	return err == nil
}

func (f *freeCache) note() string {
	if n := f.cache.EvacuateCount(); n > 0 {
		return fmt.Sprintf("evicted %d live entries", n)
	}
	return ""
}
