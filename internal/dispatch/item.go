package dispatch

import (
	"context"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
)

// Item is a message in the dispatcher, from Submit until its outcome is reported.
//
// The caller sets the fields from Message to Known before Submit. Later only Sender.Revise
// changes them, and the dispatcher finally zeroes Message.
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

	// Call identifies a call that submitted several items: if one of them fails, the
	// later items of the same call and group are not sent. It is nil for an item without
	// this rule.
	Call *Call

	// Refused and Known mark items that are not sent. A Refused item must not be sent; a
	// Known item is stored already. Both wait for their turn, so that the outcomes of a
	// group are reported in order.
	Refused, Known bool

	// Outcome is set before the dispatcher calls Sender.Report.
	Outcome Outcome

	done <-chan struct{} // Context.Done()

	// Dispatcher.mu guards the fields below.
	queue      *groupQueue[M]
	prev, next *Item[M] // neighbours in the queue, or in the list groupQueue.outcomes
	inOutcomes bool     // the item is in groupQueue.outcomes: its outcome is decided and not reported yet
	epoch      *epoch
	watcher    *watcher[M]
	stop       func() bool // stops watching the context

	// Neighbours in the list of the watcher, which has all items with the same context.
	watchedBefore, watchedAfter *Item[M]

	submitted time.Duration // time of Submit, since d.began
	first     time.Duration // start of the first attempt, since d.began
	attempts  int32
	room      int   // bytes that the item takes in the buffer
	failures  uint8 // failed attempts in a row
	limit     uint8 // maximum number of items in the next request; 0 for no limit
	phase     phase
	duplicate bool
	recording bool           // the outcome is reported only when the store has recorded it
	owner     *Dispatcher[M] // nil before Submit
	idle      bool           // no attempt was under way when the outcome was decided (MarkIdle)
	deferred  bool           // Admit has answered Later or Change; later attempts do not change first
	prepared  bool           // Prepare is running for the item, or has returned
	request   uint64         // number of the last request with the item
	doubt     uint64         // number of the first request that may have stored the item, or 0
	overtaker uint64         // the first request that may have stored a later item with a decided outcome; 0 for none

	delay time.Duration // set by Delay, for the answer [Later] of Admit; only the worker reads it
}

// Attempts returns the number of requests with the item. The sender may call Attempts in
// Send; the result then includes the current request.
func (it *Item[M]) Attempts() int { return int(it.attempts) }

// Last returns the answer to the last attempt, zero without an attempt. The sender may
// call Last in Conclude and Release.
func (it *Item[M]) Last() attempt.Answer { return it.Outcome.Answer }

// MarkDuplicate records that SQS stored the event for an earlier submission and not for
// this item. The sequence number in the answer then belongs to the earlier submission, so
// the dispatcher ignores it. Sender.Send calls MarkDuplicate.
func (it *Item[M]) MarkDuplicate() { it.duplicate = true }

// MarkRecording delays the report of a stored item until the store has recorded the item
// (see Recorded). Later items of the group are sent meanwhile.
//
// Sender.Send may call MarkRecording before Send returns. Sender.Conclude may call it if
// IsSubmitted is true.
func (it *Item[M]) MarkRecording() { it.recording = true }

// IsSubmitted reports whether the item was submitted to a dispatcher. Only then may
// Recorded be called.
func (it *Item[M]) IsSubmitted() bool { return it.owner != nil }

// Recorded ends the wait caused by MarkRecording, so that the item's outcome can be
// reported. The parameter ok is true if the store has the event.
//
// The caller must hold no lock taken by Sender.Conclude. After the report, a call has no
// effect.
func (it *Item[M]) Recorded(ok bool) {
	d := it.owner
	d.mu.Lock()
	defer d.mu.Unlock()
	if it.phase == decidedInFlight || !it.recording {
		return
	}
	it.recorded(ok)
	if it.inOutcomes {
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

// isRecording reports whether the report of an item waits for the store to record the item.
// The caller holds the lock. In phase decidedInFlight, Sender.Send may be setting the field
// recording without the lock.
func (it *Item[M]) isRecording() bool { return it.phase != decidedInFlight && it.recording }

// MarkIdle records that no attempt of the item is under way. Sender.Conclude calls it.
//
// A request with the item that Sender.Send has not begun is sent without the item. This
// attempt does not count in Outcome.Attempts.
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
	decided                      // outcome decided, but still in the queue (see leave)
	leftQueue                    // outcome decided, and no longer in the queue
)

// Outcome is the result of an item.
type Outcome struct {
	Reason Reason

	Fate attempt.Fate

	// Answer is the answer to the last attempt, or the zero Answer without an attempt.
	// Answer is set before the other fields of Outcome.
	Answer attempt.Answer

	// Cause is the cause of the context's end, for Reason Withdrawn. By is set for Reason
	// Paused.
	Cause error
	By    *Pause

	// Overtaken means that a later item of the group was, or may have been, stored
	// before this item.
	Overtaken bool

	Attempts int

	// Unrecorded means that SQS stored the item, but the sender's own store had no record
	// of this at the time of the report.
	Unrecorded bool
}

// Reason is the reason for the end of an item.
type Reason uint8

const (
	// Answered means that the answer to the last attempt decided the outcome, or that the
	// time for retries ended. This time may end without an attempt, if Admit always
	// answers Later.
	Answered Reason = iota

	// Refused: the item was not sent because of its content.
	Refused

	// Late: the item was not sent, or not sent again, because this attempt might have
	// reached SQS after the deduplication interval.
	Late

	// Paused: an earlier item of the group failed.
	Paused

	// Withdrawn: the context of the item or of Close ended.
	Withdrawn

	// Overtaken: the item failed in a request that stored a later item of its group.
	Overtaken

	// Known: the item ended without a request, because its event is known to be stored.
	Known
)

// Call marks items that one function call submitted together. If one of them fails, later
// items of the same group and Call are not sent, unless the policy is NeverPause. The
// zero value is ready to use.
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
