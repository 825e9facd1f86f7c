// Package dispatch decides which items share a request, when the request starts,
// which items are tried again and in which order outcomes are reported.
//
// It owns the queue of each message group, the buffer, the pacing, the retries,
// the pauses and every goroutine of a producer. The root package calls it: items
// go in through Reserve and Submit, and everything that concerns a message goes
// out through a [Courier]. It knows groups, keys, sizes, attempts and time; it
// knows neither SQS nor telemetry nor the type of an event.
//
// Order: no two requests with the same group are ever under way at once. With
// [Options].PerGroup 1 an item is sent when the one before it has its outcome, so
// that the order of a group holds under every fault. With more, a request holds a
// run of items of one group; every item that may have been stored after a later
// one is named (Outcome.Overtaken or the reason [Overtaken]).
//
// Goroutines, all owned by the [Dispatcher]: at most InFlight workers, each with
// one request, and tellers, which report outcomes. One teller is enough while
// reports are quick. While reports block, one more runs for each message group
// that waits for its report, so at most as many as the buffer holds items. None of
// them exists while nothing is under way; Close waits for them. Timers, and contexts
// that end, run short functions that wait for nothing but the lock.
//
// Locks: Dispatcher.mu guards everything but the buffer, whose own lock may be taken
// under it and never the other way round. Admit, Send, Sweep and Tell of the courier
// run under no lock; Conclude, Release, Refresh, Revise and Paused run under mu.
package dispatch

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/pacer"
)

// The limits of one request (F-054, F-057).
const (
	maxEntries = 10
	maxBytes   = 1 << 20
)

var (
	// ErrClosed is returned for an item that comes after Close.
	ErrClosed = errors.New("dispatch: closed")

	// ErrFull is returned by TryReserve.
	ErrFull = errors.New("dispatch: the buffer is full")
)

// Courier does what concerns messages. All methods but Tell must be quick or
// bounded in time; Conclude, Release, Refresh, Revise and Paused must
// not call the dispatcher.
type Courier[M any] interface {
	// Admit says which of the items may be in the request that is about to start:
	// it sets admissions[i] for items[i]. It is called before each attempt, by the
	// worker that will make it. Items of one group stand side by side; those that
	// follow one that is not sent must get Hold. It may take a bounded time.
	Admit(items []*Item[M], admissions []Admission)

	// Send makes one request with the items and sets answers[i] for items[i]. No
	// other request with a group of these items is under way.
	Send(items []*Item[M], answers []attempt.Answer) attempt.Load

	// Conclude returns what became of an item that ends without the proof that
	// this attempt stored it. It is called once, and the item may still be in a
	// request, whose answer nobody waits for any more. What it says has to stay true:
	// an item whose Admit comes later must not be sent.
	Conclude(it *Item[M]) attempt.Fate

	// Release is called once for each item that ended without that proof, when no
	// request has it any more, unless the last one stored it. An item that was
	// withdrawn while Admit ran is released without the attempt. It returns what
	// became of the item in the end, and when a doubt about it will be over.
	Release(it *Item[M]) (fate attempt.Fate, over time.Time)

	// Refresh is called at least once a minute for each item that waits.
	Refresh(it *Item[M])

	// Revise is called for an item that was admitted with Change, when no request has
	// it: it may change Message, Size and Group. An item that was withdrawn meanwhile
	// is released instead.
	Revise(it *Item[M])

	// Paused is called when an item pauses its group. It is called under the lock.
	Paused(group string, p *Pause)

	// Sweep frees what the courier no longer needs, and reports whether it has to
	// be called again in a minute.
	Sweep() (again bool)

	// Tell reports the outcome of an item: once, in the order of its group, never
	// for two items of a group at once. It may block, or end its goroutine. Withdraw
	// calls it for its items out of turn.
	Tell(it *Item[M])
}

// Admission is the answer of [Courier].Admit.
type Admission uint8

const (
	// Send: the item may be in the request.
	Send Admission = iota

	// Refuse: the item is refused for what it is and was never sent.
	Refuse

	// TooLate: the attempt might arrive after the deduplication interval.
	TooLate

	// Hold: the item follows one of its group that is not sent. It waits for
	// another request, and the courier has not looked it up.
	Hold

	// Stored: the item is known to be stored, and is not sent.
	Stored

	// Later: nothing says yet whether the item may be sent. It comes to Admit again
	// after [Item].Delay at its place in its group. That is no attempt, but the time for
	// retries begins with it.
	Later

	// Change: another message has to go in place of this one. Revise is called, and
	// the item comes to Admit again; in another group it is the last one.
	Change
)

// Policy says which failures pause a group.
type Policy uint8

const (
	// PauseInDoubt pauses a group after an item that is in doubt or altered, until
	// the doubt is over.
	PauseInDoubt Policy = iota

	// PauseOnFailure pauses it after each item that was tried and failed, until
	// the item is stored or the group is resumed.
	PauseOnFailure

	// NeverPause goes on.
	NeverPause
)

// Options configure a [Dispatcher]. All of them are required, but for Policy.
type Options struct {
	PerGroup int // items of one group in a request, 1 to 10
	Policy   Policy
	RetryFor time.Duration // after the first attempt
	Linger   time.Duration
	InFlight int // requests under way
	Items    int // of the buffer
	Bytes    int // of the buffer
}

// Dispatcher sends items. Create one with [New]. It is safe for concurrent use.
type Dispatcher[M any] struct {
	courier Courier[M]
	options Options
	began   time.Time // items count their times from here
	buffer  buffer

	mu       sync.Mutex
	lanes    map[string]*lane[M] // those with items
	spare    *lane[M]            // lanes to use again
	spares   int
	ready    laneList[M]
	delayed  laneHeap[M]
	pauses   map[string][]*Pause // by group, in the order of the failures
	watchers map[<-chan struct{}]*watcher[M]
	pacer    pacer.Pacer
	calls    int    // requests under way
	requests uint64 // so far
	workers  int
	idlers   []*batch[M] // batches to use again
	items    int         // without a reported outcome
	urgent   int         // flushes under way: nothing lingers
	closed   bool
	forced   bool // closed, and what was left has been withdrawn

	current *epoch
	epochs  []*epoch      // those that a flush waits for
	idle    chan struct{} // closed when closed and nothing is left

	telling  tellList[M] // lanes with outcomes that no teller has
	tellers  int
	reported uint64 // outcomes

	freed, freedBytes int // places in the buffer that are not given back yet

	watchdog *time.Timer
	watching bool
	seen     uint64 // reported, when the watchdog last looked

	timer  *time.Timer // of the next retry, linger or pacing deadline
	wakeAt time.Time   // zero: the timer is not set
	minute *time.Timer // of housekeeping
	kept   bool        // minute is set
}

// New returns a dispatcher. It has no goroutine until the first item comes.
func New[M any](courier Courier[M], o Options) *Dispatcher[M] {
	return &Dispatcher[M]{
		courier:  courier,
		options:  o,
		began:    time.Now(),
		buffer:   buffer{items: o.Items, bytes: o.Bytes},
		lanes:    map[string]*lane[M]{},
		pauses:   map[string][]*Pause{},
		watchers: map[<-chan struct{}]*watcher[M]{},
		current:  &epoch{done: make(chan struct{})},
		idle:     make(chan struct{}),
	}
}

// Reserve takes the place of one item in the buffer. It waits for it until the
// context ends, whose cause it returns, or the dispatcher closes: [ErrClosed]. While
// it waits it calls still, once a minute, unless that is nil: an item that waits for
// its place has to be refreshed like one that waits for its turn.
// The place is given back when the outcome of the item has been reported.
func (d *Dispatcher[M]) Reserve(ctx context.Context, size int, still func()) error {
	return d.buffer.enter(ctx, d.room(size), still)
}

// TryReserve is Reserve that does not wait: [ErrFull].
func (d *Dispatcher[M]) TryReserve(size int) error { return d.buffer.tryEnter(d.room(size)) }

// Cancel gives the place of an item back that is not submitted.
func (d *Dispatcher[M]) Cancel(size int) { d.buffer.leave(1, d.room(size)) }

// room is what an item takes of the buffer. One that is larger than the buffer, and
// refused for that, gets all of it: to wait for more would never end.
func (d *Dispatcher[M]) room(size int) int { return min(size, d.options.Bytes) }

// Submit adds items, whose places are reserved, after those of their groups. It
// reports false, and has done nothing, when the dispatcher is closed.
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
		l := d.lane(it.Group)
		it.lane = l
		if w := d.watch(it); w != nil {
			watchers = append(watchers, w)
		}
		l.push(it)
		if !l.busy && !l.queued {
			d.schedule(l, now)
		}
	}
	d.keep()
	d.pump(now)
	return watchers, true
}

// Stats is what a dispatcher holds at one instant.
type Stats struct {
	Items    int     // submitted and without a reported outcome
	Bytes    int     // of the buffer in use
	Requests int     // under way
	Paused   int     // groups
	Rate     float64 // requests a second that pacing allows; 0 is no limit

	// Oldest is how long ago the oldest of the items was submitted, 0 without one.
	Oldest time.Duration
}

// Stats returns what the dispatcher holds now. It looks at each group that has items.
func (d *Dispatcher[M]) Stats() Stats {
	_, bytes := d.buffer.used(d.options)
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	d.endPauses(now)
	return Stats{Items: d.items, Bytes: bytes, Requests: d.calls, Paused: len(d.pauses), Rate: d.pacer.Rate(), Oldest: d.oldest(now)}
}

// oldest returns the age of the oldest item. It is the first of a lane, or has its
// outcome already and waits for a teller, or a teller has it.
func (d *Dispatcher[M]) oldest(now time.Time) time.Duration {
	first := now.Sub(d.began)
	for _, l := range d.lanes {
		for _, it := range [...]*Item[M]{l.reporting, l.out.head, l.head} {
			if it != nil {
				first = min(first, it.submitted)
			}
		}
	}
	return now.Sub(d.began) - first
}

// keepEvery is how often waiting items are refreshed, and what the courier holds
// is swept.
const keepEvery = time.Minute

// keep sets the timer of housekeeping. It is for the holder of the lock.
func (d *Dispatcher[M]) keep() {
	if d.kept {
		return
	}
	d.kept = true
	if d.minute == nil {
		d.minute = time.AfterFunc(keepEvery, d.housekeep)
	} else {
		d.minute.Reset(keepEvery)
	}
}

// housekeep looks after what only waits. The lock is let go of between some lanes
// and the next, so that a large buffer holds up nothing.
func (d *Dispatcher[M]) housekeep() {
	d.mu.Lock()
	d.kept = false
	d.endPauses(time.Now())
	groups := make([]string, 0, len(d.lanes))
	for group := range d.lanes {
		groups = append(groups, group)
	}
	for i, group := range groups {
		if l := d.lanes[group]; l != nil {
			for it := l.head; it != nil; it = it.next {
				if it.phase == waiting {
					d.courier.Refresh(it)
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
	if d.courier.Sweep() || waits {
		d.mu.Lock()
		d.keep()
		d.mu.Unlock()
	}
}

// shrink gives back what a burst of groups left: a map keeps its memory when its
// entries go.
func (d *Dispatcher[M]) shrink() {
	if len(d.lanes) == 0 {
		d.lanes = map[string]*lane[M]{}
		d.spare, d.spares, d.idlers = nil, 0, nil
	}
	if len(d.pauses) == 0 {
		d.pauses = map[string][]*Pause{}
	}
	if len(d.watchers) == 0 {
		d.watchers = map[<-chan struct{}]*watcher[M]{}
	}
}
