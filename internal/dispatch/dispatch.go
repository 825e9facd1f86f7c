// Package dispatch forms requests from items, starts requests, retries items, and reports
// outcomes. The outcomes of a group are reported in order, but a withdrawn item's outcome
// does not wait for those of earlier items.
//
// A dispatcher owns the queue of each message group (type groupQueue), the buffer, the
// pacing, the retries, the pauses and every goroutine of a producer. The root package
// submits items through Reserve and Submit. The dispatcher itself knows groups, keys,
// sizes, attempts and time. For everything about messages it calls a [Sender], which
// knows SQS, telemetry and the type of an event.
//
// Order: two requests with the same group are never under way at the same time. With
// [Options].PerGroup 1 an item is sent after the previous item of its group has its
// outcome, so the order of a group holds under every fault. With a larger PerGroup a
// request contains adjacent items of one group. An item may then be stored after a later
// item of its group. Every item to which this may have happened is reported with
// Outcome.Overtaken or with the reason [Overtaken].
//
// Goroutines: the [Dispatcher] owns three kinds. A worker makes one request after
// another; at most InFlight workers have a request under way. Each call of Prepare has a
// separate goroutine. A reporter calls Sender.Report for the outcomes. While Report
// returns quickly, one reporter is enough; a worker between two requests may also report
// outcomes. While calls of Report block, more reporters run: at most one for each message
// group with an outcome to report, and so at most one for each item in the buffer. An
// idle dispatcher has no goroutines; Close waits for all. Timers and ended contexts run
// short functions that wait only for the lock.
//
// Locks: Dispatcher.mu guards everything except the buffer. The buffer's own lock may be
// taken under Dispatcher.mu, never the other way round. The sender's Prepare, Admit,
// Send, Sweep and Report run under no lock; its Conclude, Release, GiveUpAt, Refresh,
// Revise and Paused run under Dispatcher.mu.
package dispatch

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/pacer"
)

// SQS accepts at most ten messages and 1 MiB in one request (F-054 and F-057 in
// sqstest/FACTS.md).
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
// quickly or within a bounded time. Conclude, Release, GiveUpAt, Refresh, Revise and Paused
// run under the dispatcher's lock, so they must not call the dispatcher.
type Sender[M any] interface {
	// Admit decides which items may be in the next request. It sets admissions[i] for
	// items[i]. The worker calls Admit before each attempt. Admit may block for a bounded
	// time.
	//
	// Items of one group are adjacent. If an item does not get [Send], all later items of
	// its group must get [Hold].
	Admit(items []*Item[M], admissions []Admission)

	// Prepare does work in advance, so that the next Admit of the items is quick. The
	// dispatcher calls Prepare if Options.Prepared is not 0. While Prepare runs, no request
	// contains the items. Prepare may block for a bounded time.
	Prepare(items []*Item[M])

	// Send makes one request with the items and sets answers[i] for items[i]. Until Send
	// returns, no other request contains an item of the same groups.
	Send(items []*Item[M], answers []attempt.Answer) attempt.Load

	// Conclude returns the fate of an item when the dispatcher decides its outcome. It is
	// called once for each item, but not if an answer shows that SQS stored the item.
	//
	// A withdrawn item may still be in a request, whose answer no longer changes the
	// outcome. After Conclude, Admit must never let the item be sent. Otherwise a returned
	// fate such as NotStored could become false.
	Conclude(it *Item[M]) attempt.Fate

	// Release returns the final fate of an item that was passed to Conclude. It is called
	// once, as soon as no request contains the item. It is not called if the answer to the
	// item's last request shows that SQS stored the item.
	//
	// If the item pauses its group under [PauseInDoubt], the pause ends at pauseEnd at the
	// latest. The zero time means that the pause does not end by itself.
	Release(it *Item[M]) (fate attempt.Fate, pauseEnd time.Time)

	// GiveUpAt returns the time at which the retries of an item end, if this is earlier
	// than the end of Options.RetryFor. The zero time sets no limit. GiveUpAt is not called
	// for an item that SQS may have stored.
	GiveUpAt(it *Item[M]) time.Time

	// Refresh is called about once a minute for each item without an outcome, even during
	// its Admit, Prepare or Send.
	Refresh(it *Item[M])

	// Revise is called for an item for which Admit answered Change, while no request
	// contains the item. It may change the item's Message, Size and Group. If the item
	// was withdrawn meanwhile, the dispatcher calls Release instead of Revise.
	Revise(it *Item[M])

	// Paused is called when an item has paused its group.
	Paused(group string, p *Pause)

	// Sweep frees memory that the sender no longer needs. It reports whether the
	// dispatcher must call it again in a minute.
	Sweep() (again bool)

	// Report reports the outcome of an item, once for each item. It may block, and may end
	// its goroutine (runtime.Goexit).
	//
	// Calls for the items of a group come one after another, in group order. An item whose
	// context ended does not wait for earlier items. [Dispatcher.Withdraw] calls Report
	// immediately, even during another report of the group.
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

	// Stored ends the item without a request, because SQS is known to have stored the
	// event.
	Stored

	// Later delays the item, because the sender cannot decide yet whether the item may be
	// sent. The item keeps its place in its group. Admit is called again after
	// [Item.Delay].
	//
	// The delay does not count as an attempt, but as time for retries (Options.RetryFor).
	Later

	// Change keeps the item for a later request, with another message: the dispatcher
	// calls Revise, and later Admit again. If Revise changes the group, the item becomes
	// the last of its new group.
	Change
)

// Policy decides which failures pause a group.
type Policy uint8

const (
	// PauseInDoubt pauses a group after an item that SQS may have stored (in doubt), or
	// that SQS stored with other bytes (altered). The pause ends at the latest at the
	// time returned by Sender.Release.
	PauseInDoubt Policy = iota

	// PauseOnFailure pauses a group after each item that was tried and failed, that is in
	// doubt, or that was altered, until this item is stored or the group is resumed.
	PauseOnFailure

	// NeverPause never pauses a group: the later items are sent after every failure, even
	// the later items of the same [Call].
	NeverPause
)

// Options configures a [Dispatcher]. Only Prepared, Policy and Linger may be zero.
type Options struct {
	PerGroup int // maximum number of items of one group in a request, 1 to 10
	// Prepared is the maximum number of items prepared in advance by Sender.Prepare. A
	// call of Prepare gets at most half of this number. 0 turns Prepare off.
	Prepared int
	Policy   Policy
	RetryFor time.Duration // time for retries after the first attempt
	Linger   time.Duration
	InFlight int // maximum number of concurrent requests
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

	mu           sync.Mutex                // guards the fields below
	groups       map[string]*groupQueue[M] // the queue of each message group with items
	spare        *groupQueue[M]            // linked list of empty queues for reuse; its links are next[readyGroups]
	spares       int
	prepared     int                 // number of items prepared in advance for a later request
	ready        groupList[M]        // groups whose next item may be sent
	delayed      groupHeap[M]        // groups whose next attempt has to wait
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
	epochs  []*epoch      // ended by calls of Flush; may still have unreported items
	idle    chan struct{} // closed when the dispatcher is closed and idle

	toReport  groupList[M] // groups with outcomes that no reporter has taken
	reporters int
	// records is true once an outcome had to wait for the store (MarkRecording). While it
	// is false, giveUpRecord skips its search.
	records  bool
	reported uint64 // number of reported outcomes

	// The number and the bytes of reported items whose room is not yet given back to the
	// buffer.
	freed, freedBytes int

	watchdog *time.Timer // calls watchReporters
	watching bool        // the watchdog timer is set
	// seen is the number of reported outcomes at the last run of watchReporters. If the
	// next run finds the same number, the reporters are blocked.
	seen    uint64
	visited uint64 // number of items that withdrawals have looked at; only tests read it

	timer     *time.Timer // calls wake when the next request may start
	wakeAt    time.Time   // zero if the timer is not set
	minute    *time.Timer // calls housekeep
	minuteSet bool        // the timer minute is set
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

// Reserve takes room for one item in the buffer, and blocks until there is room. It returns
// the context's cause if the context ends first, and [ErrClosed] if the dispatcher closes
// first.
//
// While Reserve blocks, it calls a non-nil refresh once a minute. The room becomes free
// again after the item's outcome was reported.
func (d *Dispatcher[M]) Reserve(ctx context.Context, size int, refresh func()) error {
	return d.buffer.enter(ctx, d.room(size), refresh)
}

// TryReserve is like Reserve but never blocks. It returns [ErrFull] if there is no
// room.
func (d *Dispatcher[M]) TryReserve(size int) error { return d.buffer.tryEnter(d.room(size)) }

// Cancel gives the room that Reserve or TryReserve took for an item back to the buffer. The
// item must not be submitted.
func (d *Dispatcher[M]) Cancel(size int) { d.buffer.leave(1, d.room(size)) }

// room returns the bytes that an item takes in the buffer. An item larger than the whole
// buffer takes the whole buffer, because it would otherwise wait for room forever.
func (d *Dispatcher[M]) room(size int) int { return min(size, d.options.Bytes) }

// Submit adds items with reserved room to the ends of their groups. If the dispatcher is
// closed, Submit adds nothing and returns false.
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
	Rate     float64 // requests per second allowed by pacing; 0 if unlimited

	// Oldest is the time since Submit of the oldest item, 0 without items.
	Oldest time.Duration

	// OldestPause is how long ago the oldest pause began, 0 without one.
	OldestPause time.Duration

	Blocked int // callers of Reserve that wait for room

	// Pauses is the number of pauses since New, and Waits is the number of calls of Reserve
	// since New that had to wait for room.
	Pauses, Waits int64
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

// oldest returns the age of the oldest item. It looks only at the front of each group, so
// it may miss an older item that is out of order, for example after giveUpRecord.
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

// housekeepEvery is the interval between two calls of housekeep, which calls Sender.Refresh
// for the items without an outcome and lets the sender free memory (Sender.Sweep).
const housekeepEvery = time.Minute

// setMinute sets the timer that calls housekeep, unless it is set already. The caller holds
// d.mu.
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

// housekeep refreshes the items without an outcome, ends pauses and frees memory. It
// releases the lock after every 64 groups, so other calls are quick even with a large
// buffer.
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
				// An item in a request is refreshed too, because Admit may still leave it
				// out.
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

// shrink replaces the dispatcher's empty maps by new maps, because a map keeps the memory
// of deleted entries.
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
