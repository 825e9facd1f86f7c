// Package dispatch forms requests from items, starts requests, retries items, and
// reports outcomes in order.
//
// A dispatcher owns the queue of each message group (a groupQueue), the buffer, the pacing,
// the retries, the pauses and every goroutine of a producer. The root package submits
// items through Reserve and Submit. The dispatcher itself knows groups, keys, sizes,
// attempts and time. For everything about messages it calls a [Sender], which knows
// SQS, telemetry and the type of an event.
//
// Order: two requests with the same group are never under way at the same time. With
// [Options].PerGroup 1 an item is sent after the previous item of its group has its
// outcome, so the order of a group holds under every fault. With a larger PerGroup a
// request contains adjacent items of one group, and every item that may have been
// stored after a later item is reported (Outcome.Overtaken or the reason [Overtaken]).
//
// Goroutines, all owned by the [Dispatcher]: at most InFlight workers, each with one
// request, calls of Prepare, and reporters, which report outcomes. One reporter is enough
// while reports are quick. While reports block, another reporter runs for each message
// group that waits for its report, at most one for each item in the buffer. An idle
// dispatcher has no goroutines; Close waits for all. Timers and ended contexts run short
// functions that wait only for the lock.
//
// Locks: Dispatcher.mu guards everything except the buffer. The buffer's own lock may
// be taken under Dispatcher.mu, never the other way round. The sender's Prepare, Admit,
// Send, Sweep and Report run under no lock; its Conclude, Release, GiveUpAt, Refresh,
// Revise and Paused run under mu.
package dispatch

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/pacer"
)

// SQS accepts at most ten messages (F-054) and 1 MiB (F-057) in one request.
const (
	maxEntries = 10
	maxBytes   = 1 << 20
)

var (
	// ErrClosed is returned for an item submitted after Close.
	ErrClosed = errors.New("the producer is closed")

	// ErrFull is returned by TryReserve if the buffer has no room.
	ErrFull = errors.New("dispatch: the buffer is full")
)

// Sender handles messages for the dispatcher. Every method except Report must return
// quickly or within a bounded time. Conclude, Release, GiveUpAt, Refresh, Revise and
// Paused must not call the dispatcher.
type Sender[M any] interface {
	// Admit decides which items may be in the next request: it sets admissions[i] for
	// items[i]. The worker calls Admit before each attempt. Items of one group are
	// adjacent; after an item that is not sent, the later items of its group must get
	// Hold. Admit may block for a bounded time.
	Admit(items []*Item[M], admissions []Admission)

	// Prepare does work in advance, so that the next Admit of the items is quick. The
	// dispatcher calls Prepare if Options.Prepared is not 0. The items are in no request,
	// and none of them is sent before Prepare returns. Prepare may block for a bounded
	// time.
	Prepare(items []*Item[M])

	// Send makes one request with the items and sets answers[i] for items[i]. Meanwhile,
	// no other request contains an item of the same groups.
	Send(items []*Item[M], answers []attempt.Answer) attempt.Load

	// Conclude returns the fate of an item that ends. Conclude is called once for each
	// item, except after an answer that SQS stored the item: the fate is then known. The
	// item may still be in a request; the answer to that request no longer changes the
	// outcome. The fate must stay true: a later Admit must not allow the item to be sent.
	Conclude(it *Item[M]) attempt.Fate

	// Release is called once for each item that was passed to Conclude, when the item is
	// in no request any more. Release is not called if the answer to the item's last
	// request shows that the item is stored. For an item withdrawn during Admit, Release
	// is called even if Admit then refuses the attempt. Release returns the final fate of
	// the item. For an item in doubt, over is the time at which a pause of the group may
	// end, or zero for no such time.
	Release(it *Item[M]) (fate attempt.Fate, over time.Time)

	// GiveUpAt returns the time at which the sender gives a failed item up. A time after
	// the end of RetryFor has no effect. The zero time means never. GiveUpAt is not
	// called for an item that a request may have stored. GiveUpAt is called under the
	// dispatcher's lock and must return quickly.
	GiveUpAt(it *Item[M]) time.Time

	// Refresh is called about once a minute for each item without an outcome, even during
	// its Admit, Prepare or Send.
	Refresh(it *Item[M])

	// Revise may change Message, Size and Group of an item for which Admit answered
	// Change. The item is then in no request. If the item was withdrawn meanwhile,
	// Release is called in place of Revise.
	Revise(it *Item[M])

	// Paused reports that an item paused its group. Paused is called under the
	// dispatcher's lock.
	Paused(group string, p *Pause)

	// Sweep frees memory that the sender no longer needs. It reports whether the
	// dispatcher must call it again in a minute.
	Sweep() (again bool)

	// Report reports the outcome of an item. It is called once for each item. The calls
	// for the items of a group are made in order and one after another. Withdraw is the
	// exception: it calls Report for its items immediately. Report may block, or end its
	// goroutine.
	Report(it *Item[M])
}

// Admission is the result of [Sender].Admit for an item.
type Admission uint8

const (
	// Send puts the item into the request.
	Send Admission = iota

	// Refuse ends the item without a request, because of its content.
	Refuse

	// TooLate ends the item, because the attempt might arrive at SQS after the
	// deduplication interval.
	TooLate

	// Hold keeps the item for a later request, because an earlier item of its group is
	// not sent.
	Hold

	// Stored ends the item without a request, because it is known to be stored.
	Stored

	// Later delays the item, because the sender cannot decide yet whether the item may
	// be sent. The item keeps its place in its group, and Admit is called again after
	// [Item].Delay. The delay does not count as an attempt, but the time for retries
	// begins.
	Later

	// Change keeps the item for a later request, with another message: the dispatcher
	// calls Revise, and later Admit again. If Revise changes the group, the item becomes
	// the last of its new group.
	Change
)

// Policy decides which failures pause a group.
type Policy uint8

const (
	// PauseInDoubt pauses a group after an item that SQS may have stored (in doubt) or
	// has altered. The pause ends at the latest at the time returned by Sender.Release.
	PauseInDoubt Policy = iota

	// PauseOnFailure pauses a group after each item that was tried and failed, and
	// after each item in doubt or altered, until the item is stored or the group is
	// resumed.
	PauseOnFailure

	// NeverPause lets every group continue.
	NeverPause
)

// Options configures a [Dispatcher]. Only Prepared, Policy and Linger may be zero.
type Options struct {
	PerGroup int // items of one group in a request, 1 to 10
	Prepared int // most items prepared in advance; half of them per Prepare
	Policy   Policy
	RetryFor time.Duration // time for retries after the first attempt
	Linger   time.Duration
	InFlight int // most concurrent requests
	Items    int // size of the buffer in items
	Bytes    int // size of the buffer in bytes
}

// Dispatcher sends items. Create a dispatcher with [New]. A Dispatcher is safe for
// concurrent use.
type Dispatcher[M any] struct {
	sender  Sender[M]
	options Options
	began   time.Time // items store times as durations since began
	buffer  buffer

	mu           sync.Mutex
	groups       map[string]*groupQueue[M] // queues of the message groups with items
	spare        *groupQueue[M]            // empty groups for reuse
	spares       int
	prepared     int // number of items prepared in advance for a later request
	ready        groupList[M]
	delayed      groupHeap[M]
	pauses       map[string][]*Pause // by group, in the order of the failures
	paused       int64               // number of pauses so far
	watchers     map[<-chan struct{}]*watcher[M]
	pacer        pacer.Pacer
	calls        int    // number of requests under way
	requests     uint64 // number of requests so far
	workers      int
	spareBatches []*batch[M] // batches for reuse
	items        int         // number of items without a reported outcome
	urgent       int         // running calls of Flush; meanwhile items do not linger
	closed       bool
	forced       bool // closed, and the remaining items were withdrawn

	current *epoch
	epochs  []*epoch      // epochs that waiting calls of Flush have ended
	idle    chan struct{} // closed when the dispatcher is closed and idle

	toReport  groupList[M] // groups with outcomes that no reporter has taken
	reporters int
	records   bool   // an outcome has waited for the store's record
	reported  uint64 // number of reported outcomes

	freed, freedBytes int // room of reported items not yet returned to the buffer

	watchdog *time.Timer
	watching bool
	seen     uint64 // value of reported at the last run of the watchdog
	visited  uint64 // items visited by withdrawals; only tests read it

	timer     *time.Timer // runs when the next request may start
	wakeAt    time.Time   // zero if the timer is not set
	minute    *time.Timer // of housekeeping
	minuteSet bool        // minute is set
}

// New returns a dispatcher. The dispatcher starts no goroutine before the first item is
// submitted.
func New[M any](sender Sender[M], o Options) *Dispatcher[M] {
	return &Dispatcher[M]{
		sender:   sender,
		options:  o,
		began:    time.Now(),
		buffer:   buffer{items: o.Items, bytes: o.Bytes},
		groups:   map[string]*groupQueue[M]{},
		ready:    groupList[M]{kind: readyGroups},
		toReport: groupList[M]{kind: groupsToReport},
		pauses:   map[string][]*Pause{},
		watchers: map[<-chan struct{}]*watcher[M]{},
		current:  &epoch{done: make(chan struct{})},
		idle:     make(chan struct{}),
	}
}

// Reserve takes room for one item in the buffer. Reserve blocks until there is room, the
// context ends (returning the context's cause) or the dispatcher closes (returning
// [ErrClosed]). While Reserve blocks, it calls a non-nil refresh once a minute, as the
// dispatcher calls Sender.Refresh for submitted items. The room is returned after the
// item's outcome was reported.
func (d *Dispatcher[M]) Reserve(ctx context.Context, size int, refresh func()) error {
	return d.buffer.enter(ctx, d.room(size), refresh)
}

// TryReserve is like Reserve but never blocks. It returns [ErrFull] if there is no
// room.
func (d *Dispatcher[M]) TryReserve(size int) error { return d.buffer.tryEnter(d.room(size)) }

// Cancel returns the room of an item that is not submitted.
func (d *Dispatcher[M]) Cancel(size int) { d.buffer.leave(1, d.room(size)) }

// room returns the bytes that an item takes in the buffer. An item larger than the
// buffer takes the whole buffer: the sender refuses such an item, and waiting for more
// room would never end.
func (d *Dispatcher[M]) room(size int) int { return min(size, d.options.Bytes) }

// Submit adds items with reserved room to the ends of their groups. If the dispatcher
// is closed, Submit only returns false.
func (d *Dispatcher[M]) Submit(items ...*Item[M]) bool {
	for _, it := range items {
		if it.Context != nil {
			it.done = it.Context.Done()
		}
	}
	watchers, ok := d.add(items)
	for _, w := range watchers {
		d.begin(w)
	}
	return ok
}

func (d *Dispatcher[M]) add(items []*Item[M]) (watchers []*watcher[M], ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, false
	}
	now := time.Now()
	for _, it := range items {
		d.items++
		d.current.items++
		it.epoch = d.current
		it.submitted = now.Sub(d.began)
		it.room = d.room(it.Size)
		g := d.groupQueue(it.Group)
		it.queue = g
		it.owner = d
		if w := d.watch(it); w != nil {
			watchers = append(watchers, w)
		}
		g.push(it)
		if !g.busy && !g.queued {
			d.schedule(g, now)
		}
	}
	d.setMinute()
	d.startWork(now)
	return watchers, true
}

// Stats has a dispatcher's current amounts, and counts since New.
type Stats struct {
	Items    int     // submitted, outcome not yet reported
	Bytes    int     // bytes of the buffer in use
	Requests int     // under way
	Paused   int     // paused groups
	Rate     float64 // requests a second allowed by pacing; 0 if unlimited

	// Oldest is the age of the oldest item since Submit, 0 without items.
	Oldest time.Duration

	// OldestPause is how long ago the oldest pause began, 0 without one.
	OldestPause time.Duration

	Blocked int // callers of Reserve that wait for room

	// Counts since New.
	Pauses, Waits int64 // pauses of groups, and callers of Reserve that waited
}

// Stats returns a snapshot. It visits each group with items.
func (d *Dispatcher[M]) Stats() Stats {
	bytes, blocked, waits := d.buffer.stats()
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	d.endPauses(now)
	return Stats{
		Items: d.items, Bytes: d.options.Bytes - bytes, Requests: d.calls, Paused: len(d.pauses), Rate: d.pacer.Rate(), Oldest: d.oldest(now),
		OldestPause: d.oldestPause(now), Blocked: blocked, Pauses: d.paused, Waits: waits,
	}
}

// oldest returns the age of the oldest item. The oldest item of a group is being reported,
// or is the first of the group's outcomes, or is the first of the group's undecided items.
func (d *Dispatcher[M]) oldest(now time.Time) time.Duration {
	first := now.Sub(d.began)
	for _, g := range d.groups {
		for _, it := range [...]*Item[M]{g.reporting, g.outcomes.head, g.head} {
			if it != nil {
				first = min(first, it.submitted)
			}
		}
	}
	return now.Sub(d.began) - first
}

// housekeepEvery is the interval between refreshes of undecided items and sweeps of the
// sender.
const housekeepEvery = time.Minute

// setMinute sets the timer of housekeeping. The caller holds d.mu.
func (d *Dispatcher[M]) setMinute() {
	if d.minuteSet {
		return
	}
	d.minuteSet = true
	if d.minute == nil {
		d.minute = time.AfterFunc(housekeepEvery, d.housekeep)
	} else {
		d.minute.Reset(housekeepEvery)
	}
}

// housekeep refreshes undecided items, ends pauses and frees memory. It releases the lock
// after every 64 groups, so other calls are quick even with a large buffer.
func (d *Dispatcher[M]) housekeep() {
	d.mu.Lock()
	d.minuteSet = false
	d.endPauses(time.Now())
	groups := make([]string, 0, len(d.groups))
	for group := range d.groups {
		groups = append(groups, group)
	}
	for i, group := range groups {
		if g := d.groups[group]; g != nil {
			for it := g.head; it != nil; it = it.next {
				// Refresh an item in a request, too: Admit may leave the item out of the
				// request.
				if it.phase <= inFlight {
					d.sender.Refresh(it)
				}
			}
		}
		if i%64 == 63 {
			d.mu.Unlock()
			d.mu.Lock()
		}
	}
	waits := d.items > 0 || len(d.pauses) > 0 && !d.closed
	d.shrink()
	d.mu.Unlock()
	if d.sender.Sweep() || waits {
		d.mu.Lock()
		d.setMinute()
		d.mu.Unlock()
	}
}

// shrink replaces each of the dispatcher's maps that is empty by a new map, because a map
// keeps its memory when its entries are deleted.
func (d *Dispatcher[M]) shrink() {
	if len(d.groups) == 0 {
		d.groups = map[string]*groupQueue[M]{}
		d.spare, d.spares, d.spareBatches = nil, 0, nil
	}
	if len(d.pauses) == 0 {
		d.pauses = map[string][]*Pause{}
	}
	if len(d.watchers) == 0 {
		d.watchers = map[<-chan struct{}]*watcher[M]{}
	}
}
