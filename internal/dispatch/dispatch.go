// Package dispatch decides when each message of a producer is sent. It collects messages
// (type [Item]) into requests, starts the requests, retries failed items, and reports the
// outcome of each item.
//
// The root package submits items through Reserve and Submit. A [Dispatcher] keeps a queue
// for each message group (type groupQueue). The dispatcher uses the group, the key and the
// size of an item, but never reads the message. A [Sender] does all work with the messages,
// for example the requests to SQS and the telemetry.
//
// # Order
//
// The outcomes of a group are reported in order. An item whose context has ended is an
// exception: its outcome does not wait for the outcomes of earlier items.
//
// At any time, at most one request contains items of a given group. With
// [Options].PerGroup 1, an item is sent only after the previous item of its group has an
// outcome. SQS then stores the items of a group in order, even after failures.
//
// With a larger PerGroup, a request contains several adjacent items of a group. SQS may
// then store a later item before an earlier item, for example if only the earlier item
// fails. If this may have happened, the report of the earlier item says so
// (Outcome.Overtaken).
//
// # Goroutines
//
// A dispatcher has three kinds of goroutines:
//
//   - A worker makes one request after another. At most InFlight workers have a request
//     under way.
//   - Each call of Sender.Prepare has a separate goroutine.
//   - A reporter calls Sender.Report for one outcome after another. Before each call, it
//     starts another reporter if more groups wait and no reporter is free. A report that
//     blocks therefore delays only its group. A worker without a further request becomes a
//     reporter if one is needed.
//
// An idle dispatcher has no goroutines. Close waits until all goroutines have ended, but at
// most [Grace] after the end of its context. Timers and ended contexts call only short
// functions, in goroutines of the Go runtime.
//
// # Locks
//
// Dispatcher.mu guards everything except the buffer, which has a separate lock. A
// goroutine may lock the buffer while it holds Dispatcher.mu, but not the other way round.
//
// The dispatcher calls Prepare, Admit, Send, Sweep and Report of the sender without a
// lock. It holds Dispatcher.mu when it calls Conclude, Drop, Release, GiveUpAt, Refresh, Revise
// and Paused.
package dispatch

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/pacer"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/verdict"
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
// quickly or within a bounded time. Conclude, Drop, Release, GiveUpAt, Refresh, Revise and
// Paused run under the dispatcher's lock, so they must not call the dispatcher.
type Sender[M any] interface {
	// Admit decides which items may be in the next request: it sets verdicts[i] for
	// items[i]. A worker calls Admit before each request. Admit may block for a bounded
	// time. The dispatcher does the following:
	//
	//   - KindGo: the item is in the request.
	//   - KindWait: the item stays in its place in its group, and the dispatcher calls Admit
	//     again after Verdict.Delay. This delay counts toward Options.RetryFor, but not as
	//     an attempt.
	//   - KindHold: the item waits for a later request, because an earlier item of its group
	//     is not sent.
	//   - KindKnown, KindLate, KindRefuse: the item ends without a request.
	//   - KindAdopt: the dispatcher calls Revise, and later Admit again. If Revise changes
	//     the item's group, the item moves to the end of its new group.
	//
	// Items of one group are adjacent. After an item whose Kind is not KindGo, Admit must
	// set KindHold for all later items of the group.
	Admit(items []*Item[M], verdicts []verdict.Verdict)

	// Prepare does work in advance, so that the next call of Admit for the items is quick.
	// The dispatcher calls Prepare only if Options.Prepared is not 0. While Prepare runs,
	// no request contains the items. Prepare may block for a bounded time.
	Prepare(items []*Item[M])

	// Send makes one request with the items and sets answers[i] for items[i]. Until Send
	// returns, no other request contains an item of the same groups.
	Send(items []*Item[M], answers []attempt.Answer) attempt.Load

	// Conclude returns the fate of an item, for the item's outcome. The dispatcher calls
	// Conclude once for each item, when it decides the outcome. There is no call if an
	// answer has already shown that SQS stored the item.
	//
	// When the context of an item ends, the dispatcher calls Conclude immediately, even
	// during a call of Admit, Prepare or Send for the item. The dispatcher sends no item
	// after Conclude, even if Admit admits it: see Drop.
	Conclude(it *Item[M]) attempt.Fate

	// Drop takes back the verdict KindGo of Admit, if Admit has already decided KindGo: the
	// item is not sent. The item's context has ended during Admit, or Admit has ended the
	// goroutine.
	Drop(it *Item[M])

	// Release returns the final fate of an item. The dispatcher calls Release once after
	// Conclude, when no request contains the item and no call of Prepare runs for it. If a
	// request was under way during Conclude, and its answer shows that SQS stored the item,
	// Release is not called.
	//
	// If the item pauses its group under [PolicyPauseInDoubt], the pause ends at pauseEnd at
	// the latest. If pauseEnd is zero, the pause has no time limit: it ends when SQS stores
	// a resend of the item, or when Resume is called.
	Release(it *Item[M]) (fate attempt.Fate, pauseEnd time.Time)

	// GiveUpAt returns a time limit for the retries of an item, in addition to the limit
	// Options.RetryFor. The zero time means no additional limit. GiveUpAt is not called for
	// an item that SQS may have stored.
	GiveUpAt(it *Item[M]) time.Time

	// Refresh updates the sender's knowledge about an item. The dispatcher calls Refresh
	// about once a minute for each item without an outcome, even during a call of Admit,
	// Prepare or Send for the item.
	Refresh(it *Item[M])

	// Revise changes an item after Admit has decided KindAdopt. It may set the fields
	// Message, Size and Group. During this call, no request contains the item. If the
	// item's context ends before this call, the dispatcher calls Release instead.
	Revise(it *Item[M])

	// Paused is called when the failure of an item has paused the item's group.
	Paused(group string, p *Pause)

	// Sweep frees memory that the sender no longer needs. It reports whether the
	// dispatcher must call it again in a minute.
	Sweep() (again bool)

	// Report reports the outcome of an item. The dispatcher calls Report once for each
	// item. Report may block, and may end its goroutine (runtime.Goexit).
	//
	// The dispatcher calls Report for the items of a group one after another, in the order
	// of the group. There are two exceptions. An item whose context has ended does not wait
	// for earlier items. [Dispatcher.Withdraw] calls Report immediately, even while another
	// call of Report for the group runs.
	Report(it *Item[M])
}

// Policy decides which failures pause a group.
type Policy uint8

const (
	// PolicyPauseInDoubt pauses a group after an item with the fate FateInDoubt (SQS may
	// have stored the item) or FateAltered (SQS stored other bytes), unless the item was
	// overtaken (see wasOvertaken). The pause ends at the latest at the time returned by
	// Sender.Release.
	PolicyPauseInDoubt Policy = iota

	// PolicyPauseOnFailure pauses a group after each item sent without success, or with the
	// fate FateInDoubt or FateAltered, until this item is stored or the group is resumed.
	PolicyPauseOnFailure

	// PolicyNeverPause never pauses a group: after a failure, the later items are sent, even
	// the items of the same [Call].
	PolicyNeverPause
)

// Options configures a [Dispatcher]. Only Prepared, Policy and Linger may be zero.
type Options struct {
	PerGroup int // maximum number of items of one group in a request, 1 to 10
	// Prepared is the maximum number of items prepared in advance by Sender.Prepare. A
	// call of Prepare gets at most half of this number. 0 turns Prepare off.
	Prepared int
	Policy   Policy
	// RetryFor is the time for retries. It counts from the later of Submit and the last
	// answer that stored or refused an item of the group.
	RetryFor time.Duration
	// While another request is under way, a request waits up to Linger for further items,
	// unless it is full. It does not wait during Flush or after Close.
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
	created time.Time // items store times as durations since created
	buffer  buffer

	mu     sync.Mutex                // guards the fields below
	groups map[string]*groupQueue[M] // queues of the message groups

	// Empty queues for reuse, and their number. They are linked by
	// groupQueue.next[readyGroups], which is free because they are never ready.
	firstSpare *groupQueue[M]
	spares     int

	prepared int          // number of items that are prepared or being prepared (Sender.Prepare)
	ready    groupList[M] // groups whose next item may be sent
	delayed  groupHeap[M] // groups whose next attempt has to wait

	// The pauses of each group, in the order of the failures that caused them.
	pauses map[string][]*Pause
	paused int64 // number of pauses since New

	watchers     map[<-chan struct{}]*watcher[M]
	answered     time.Time // as groupQueue.answered, of all groups
	failed       time.Time // as groupQueue.failed, of all groups
	pacer        pacer.Pacer
	calls        int    // number of requests under way
	requests     uint64 // number of the newest request
	workers      int
	spareBatches []*batch[M] // batches for reuse
	items        int         // number of items without a reported outcome
	flushCalls   int         // running calls of Flush; meanwhile items do not linger
	closed       bool
	withdrewAll  bool // closed, and the remaining items were withdrawn

	current *epoch        // counts the items submitted since the last Flush
	epochs  []*epoch      // earlier epochs, possibly with unreported items
	idle    chan struct{} // closed when the dispatcher is closed and idle

	toReport      groupList[M] // groups with outcomes that wait for a reporter
	reporters     int
	freeReporters int    // reporters that are not in Sender.Report
	report        func() // reportLoop; `go d.report()` does not allocate
	usesStore     bool   // the sender has a store: MarkRecording was called at least once

	// Number and bytes of reported items whose room is not freed yet (see freeBatch).
	unreturnedItems, unreturnedBytes int

	visited uint64 // number of items visited by withdrawals, for tests

	timer     *time.Timer // calls wake when the next request may start
	wakeAt    time.Time   // zero if the timer is not set
	minute    *time.Timer // calls housekeep
	minuteSet bool        // the timer minute is set
}

// New returns a dispatcher. The dispatcher starts no goroutine before the first item is
// submitted.
func New[M any](sender Sender[M], o Options) *Dispatcher[M] {
	d := &Dispatcher[M]{
		sender:   sender,
		options:  o,
		created:  time.Now(),
		buffer:   buffer{items: o.Items, bytes: o.Bytes},
		groups:   map[string]*groupQueue[M]{},
		ready:    groupList[M]{kind: readyGroups},
		toReport: groupList[M]{kind: groupsToReport},
		pauses:   map[string][]*Pause{},
		watchers: map[<-chan struct{}]*watcher[M]{},
		current:  &epoch{done: make(chan struct{})},
		idle:     make(chan struct{}),
	}
	d.report = d.reportLoop
	return d
}

// Reserve takes room for one item in the buffer, and blocks until there is room. It returns
// the context's cause if the context ends first, and [ErrClosed] if the dispatcher closes
// first.
//
// While Reserve blocks, it calls the function `refresh` once a minute, unless `refresh` is nil.
// The room becomes free again after the item's outcome was reported.
func (d *Dispatcher[M]) Reserve(ctx context.Context, size int, refresh func()) error {
	return d.buffer.enter(ctx, d.room(size), refresh)
}

// TryReserve is like Reserve but never blocks. It returns [ErrFull] if there is no
// room.
func (d *Dispatcher[M]) TryReserve(size int) error { return d.buffer.tryEnter(d.room(size)) }

// Cancel undoes a successful call of Reserve or TryReserve: it frees the room of an item
// that will not be submitted.
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
		d.startWatching(w)
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
		it.submitted = now.Sub(d.created)
		it.room = d.room(it.Size)
		g := d.groupQueue(it.Group)
		it.queue = g
		it.owner = d
		if w := d.watch(it); w != nil {
			watchers = append(watchers, w)
		}
		g.push(it)
		if !g.busy && !g.queued {
			d.schedule(g, now, false)
		}
	}
	d.setMinute()
	d.startWork(now)
	return watchers, true
}

// Stats is a snapshot of a dispatcher.
type Stats struct {
	Items    int     // submitted, outcome not yet reported
	Bytes    int     // bytes of the buffer in use
	Requests int     // under way
	Paused   int     // paused groups
	Rate     float64 // requests per second allowed by pacing; 0 if unlimited

	// Oldest is the age of the oldest item, counted from Submit; 0 without items.
	Oldest time.Duration

	// OldestPause is the age of the oldest pause; 0 without a pause.
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

// oldest returns the age of the oldest item, counted from Submit. The result may be too
// low: oldest looks only at the first items of each group, and in a few groups an older
// item comes later.
func (d *Dispatcher[M]) oldest(now time.Time) time.Duration {
	first := now.Sub(d.created)
	for _, g := range d.groups {
		for _, it := range [...]*Item[M]{g.reporting, g.outcomes.head, g.head} {
			if it != nil {
				first = min(first, it.submitted)
			}
		}
	}
	return now.Sub(d.created) - first
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

// housekeep calls Sender.Refresh for each item without an outcome, ends items that wait for
// a request although their time for retries is over, removes the pauses that are over, and
// frees memory. It releases the lock after every 64 groups, so that other
// calls need not wait long for the lock.
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
				// Refresh all items without an outcome. Even an item in a request may need
				// another request.
				if it.phase != ended {
					d.sender.Refresh(it)
				}
			}
			if g.queued {
				d.endStopped(g, time.Now())
			}
		}
		if i%64 == 63 {
			d.mu.Unlock()
			d.mu.Lock()
		}
	}
	waits := d.items > 0 || len(d.pauses) > 0 && !d.closed
	d.startReporter()
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
		d.firstSpare, d.spares, d.spareBatches = nil, 0, nil
	}
	if len(d.pauses) == 0 {
		d.pauses = map[string][]*Pause{}
	}
	if len(d.watchers) == 0 {
		d.watchers = map[<-chan struct{}]*watcher[M]{}
	}
}
