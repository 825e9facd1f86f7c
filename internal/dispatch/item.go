package dispatch

import (
	"context"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
)

// Item is a message in the dispatcher, from Submit until its outcome is reported. Before
// Submit, the caller sets the exported fields above Outcome. After Submit only Revise
// changes these fields.
type Item[M any] struct {
	// Message belongs to the sender. The dispatcher zeroes Message after reporting the
	// outcome.
	Message M

	Group string   // message group
	Key   string   // items with equal keys are the same event
	ID    [16]byte // event ID
	Size  int      // in bytes, as SQS and the buffer count

	// When Context ends, the item gets its outcome immediately. A nil Context never ends.
	Context context.Context

	// Call identifies the call that submitted the item. It is set if a failure of the item
	// stops later items of the same call and group.
	Call *Call

	// Refused marks an item that will not be sent. Known marks an item that need not be
	// sent, because it is known to be stored. Items of both kinds wait for their turn, so
	// that the outcomes of a group are reported in order.
	Refused, Known bool

	// Outcome is set before the dispatcher calls Sender.Report.
	Outcome Outcome

	done <-chan struct{} // Context.Done()

	// Dispatcher.mu guards the fields below.
	queue      *groupQueue[M]
	prev, next *Item[M] // neighbours in the queue, or in groupQueue.outcomes
	out        bool     // in groupQueue.outcomes, waiting for the report
	epoch      *epoch
	watcher    *watcher[M]
	stop       func() bool // stops watching the context

	watchedBefore, watchedAfter *Item[M] // neighbours in the list of items with the same context

	submitted time.Duration // time of Submit, since d.began
	first     time.Duration // start of the first attempt, since d.began
	attempts  int32
	room      int   // bytes that the item takes in the buffer
	failures  uint8 // failed attempts in a row
	limit     uint8 // most items in the next request; 0 for no limit
	phase     phase
	duplicate bool
	recording bool           // the report waits for the record in the store
	owner     *Dispatcher[M] // nil before Submit
	idle      bool           // no attempt was under way when the outcome was decided
	deferred  bool           // Admit answered Later, so the time for retries has begun
	prepared  bool           // Prepare runs for the item, or has run
	request   uint64         // number of the last request with the item
	doubt     uint64         // number of the first request that may have stored the item, or 0
	overtaker uint64         // first ended request that may have stored a later item, or 0

	delay time.Duration // set by Admit before it answers Later; only the worker reads it
}

// Attempts returns the number of requests with the item. The sender may call Attempts in
// Send; the result then includes the current request.
func (it *Item[M]) Attempts() int { return int(it.attempts) }

// Last returns the answer to the last attempt, zero without an attempt. The sender may
// call Last in Conclude and Release.
func (it *Item[M]) Last() attempt.Answer { return it.Outcome.Answer }

// MarkDuplicate records that an earlier submission stored the event. The sequence number
// from SQS then says nothing about the order of this item. Sender.Send calls
// MarkDuplicate.
func (it *Item[M]) MarkDuplicate() { it.duplicate = true }

// MarkRecording delays the report of a stored item until the store has recorded the item
// (see Recorded). Later items of the group are sent meanwhile. Sender.Send may call
// MarkRecording before Send returns, and Sender.Conclude may call it if IsSubmitted is
// true.
func (it *Item[M]) MarkRecording() { it.recording = true }

// IsSubmitted reports whether a dispatcher has the item, so that Recorded may be called
// on it.
func (it *Item[M]) IsSubmitted() bool { return it.owner != nil }

// Recorded ends the wait of an item that was marked with MarkRecording, so that its
// outcome can be reported. ok is true if the store has the event. The caller must not
// hold a lock that Sender.Conclude takes. A call after the report has no effect.
func (it *Item[M]) Recorded(ok bool) {
	d := it.owner
	d.mu.Lock()
	defer d.mu.Unlock()
	if it.phase == decidedInFlight || !it.recording {
		return
	}
	it.recorded(ok)
	if it.out {
		d.unwatch(it)
		d.queueForReport(it.queue)
		d.startReporter()
	}
}

// recorded ends the item's wait for its record in the store. The caller holds the lock.
func (it *Item[M]) recorded(ok bool) {
	it.recording = false
	it.Outcome.Unrecorded = !ok
}

// isRecording reports whether the report of an item has to wait for the record in the
// store. The caller holds the lock. An item in the phase decidedInFlight does not wait:
// the item already has its outcome, but its request may still call MarkRecording.
func (it *Item[M]) isRecording() bool { return it.phase != decidedInFlight && it.recording }

// MarkIdle records that no attempt of the item is under way. If the item was already
// chosen for a request that has not begun, that request will not contain the item, and
// Outcome.Attempts does not count it. Sender.Conclude calls MarkIdle.
func (it *Item[M]) MarkIdle() { it.idle = true }

// Delay sets the shortest time until the next Admit of an item for which Admit answers
// [Later]. Sender.Admit calls Delay.
func (it *Item[M]) Delay(d time.Duration) { it.delay = d }

// hasEnded reports whether the context of the item has ended.
func (it *Item[M]) hasEnded() bool { return it.watcher != nil && it.watcher.ended }

// phase is the state of an item in the dispatcher.
type phase uint8

const (
	waiting         phase = iota // waiting for the first or next request
	inFlight                     // in a request, or in Prepare
	decidedInFlight              // outcome decided, but still in a request or in Prepare
	decided                      // outcome decided; leaves the queue after all earlier items
	leftQueue                    // no longer in the queue
)

// Outcome is the result of an item.
type Outcome struct {
	Reason Reason

	Fate attempt.Fate

	// Answer is the answer to the last attempt, or the zero Answer without an attempt.
	// Answer is set before the other fields of Outcome.
	Answer attempt.Answer

	// Cause is set if Reason is Withdrawn: it is the cause of the end of the context. By
	// is set if Reason is Paused.
	Cause error
	By    *Pause

	// Overtaken means that a later item of the group was, or may have been, stored
	// before this item.
	Overtaken bool

	Attempts int

	// Unrecorded means that the item is stored, but the sender's store does not have the
	// result.
	Unrecorded bool
}

// Reason is the reason for the end of an item.
type Reason uint8

const (
	// Answered means that the answer to the last attempt ended the item, or that the time
	// for retries is over. If Admit always answered Later, the item had no attempt.
	Answered Reason = iota

	// Refused: the item was not sent because of its content.
	Refused

	// Late: another attempt might arrive at SQS after the deduplication interval.
	Late

	// Paused: an earlier item of the group failed.
	Paused

	// Withdrawn: the context of the item or of Close ended.
	Withdrawn

	// Overtaken: the item failed in a request that stored a later item of its group.
	Overtaken

	// Known: the item is known to be stored, without a request.
	Known
)

// Call identifies the items that one call submitted. If one of them fails, the later
// items of its group in the call are stopped. The zero value is ready to use.
type Call struct {
	stopped map[string]*Pause // the failure that stops each group; guarded by Dispatcher.mu
}

func (c *Call) stop(group string, by *Pause) {
	if c.stopped == nil {
		c.stopped = map[string]*Pause{}
	}
	if c.stopped[group] == nil {
		c.stopped[group] = by
	}
}
