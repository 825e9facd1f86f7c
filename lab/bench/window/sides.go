package main

import (
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
	"github.com/kansas-frontier-matrix/sqsfifo/lab/bench/internal/meter"
	"github.com/maypok86/otter/v2"
)

// id is a deduplication ID: a SHA-256. An array has no pointer and is hashed fast, so it is
// the fastest form for the maps and caches.
type id [32]byte

// answer is what SQS answers to a duplicate: the receipt of the first message.
type answer struct {
	_        [16]byte // the message ID
	sequence uint64
}

// memory is the interface of the compared implementations, which remember IDs for five
// minutes. The method `claim` reports whether an ID is live (remembered), and otherwise makes
// the ID live.
type memory interface {
	claim(now time.Time, i *id, a answer) (live bool)
	known(now time.Time, i *id) bool
}

var sides = map[string]func() memory{
	"window": newWindow,
	"map":    newMap,
	"otter":  newOtter,
}

// sideNames has the names of the compared implementations in the order of the table. The
// first is package window.
var sideNames = []string{"window", "map", "otter"}

type ours struct{ *window.Window[answer] }

func newWindow() memory { return ours{window.New[answer](window.Options{})} }

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

func newMap() memory { return &expiring{entries: map[id]entry{}} }

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

type otterCache struct {
	cache *otter.Cache[id, answer]
	clock *clock
}

type clock struct{ now int64 }

func (c *clock) NowNano() int64                      { return c.now }
func (c *clock) Tick(time.Duration) <-chan time.Time { return nil }

func newOtter() memory {
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
