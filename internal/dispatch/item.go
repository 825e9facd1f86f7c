package dispatch

import (
	"context"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/verdict"
)

// Item is a message in the dispatcher, from Submit until its outcome is reported.
//
// Before Submit, the caller sets the exported fields except Outcome. After Submit, only
// Sender.Revise changes these fields, until the dispatcher clears Message.
type Item[M any] struct {
	// Message belongs to the sender. After the report of the outcome, the dispatcher sets
	// Message to the zero value, to free memory.
	Message M

	Group string   // message group
	Key   string   // items with equal keys are the same event
	ID    [16]byte // event ID
	Size  int      // in bytes, as SQS and the buffer count

	// When Context ends, the item gets its outcome immediately. A nil Context never ends.
	Context context.Context

	// Items with the same non-nil Call depend on each other: if an item fails, the later
	// items with the same Call and group are not sent (see type Call).
	Call *Call

	// Verdict is set for an item that is not sent: KindRefuse because of its content, or
	// KindKnown because SQS has already stored the event. Such an item still waits in its
	// group, so that the outcomes of the group are reported in order.
	Verdict verdict.Kind

	// Outcome is set before the dispatcher calls Sender.Report.
	Outcome Outcome

	done <-chan struct{} // Context.Done()

	// Dispatcher.mu guards the fields below.
	queue      *groupQueue[M]
	list       *itemList[M] // the queue, the list groupQueue.outcomes, or nil
	prev, next *Item[M]     // neighbours in the list
	epoch      *epoch
	watcher    *watcher[M] // shared by all items with this Context; nil if Context never ends

	// stop ends the watching of Context. Only the last item of a watcher gets this function
	// (see unwatch). For the other items it is nil.
	stop func() bool

	// Neighbours in the watcher's list of items.
	watchedBefore, watchedAfter *Item[M]

	submitted time.Duration // time of Submit, since d.created
	attempts  int32
	room      int   // bytes that the item takes in the buffer
	failures  uint8 // failed attempts in a row
	limit     uint8 // maximum number of items in the next request; 0 for no limit
	phase     phase
	committed bool // in a request that has been sent or is about to be sent
	detached  bool // withdrawn while being sent or prepared: the outcome is decided, the request goes on
	duplicate bool
	storeWait bool           // the item's report waits for a write to the sender's store (MarkRecording)
	owner     *Dispatcher[M] // nil before Submit
	prepared  bool           // Sender.Prepare has run or is running for the item
	request   uint64         // number of the last request with the item
	doubt     uint64         // number of the first request that may have stored the item, or 0

	// overtaker is the number of the first request that may have stored a later item of the
	// group, or 0. It ignores later items that have no outcome yet (see noteOvertaker).
	overtaker uint64
}

// Attempts returns the number of requests with the item. The sender may call Attempts
// during Admit and Send. During Send, the number includes the current request.
func (it *Item[M]) Attempts() int { return int(it.attempts) }

// IsSent reports whether a request with the item is under way. The sender may call IsSent
// during Conclude.
func (it *Item[M]) IsSent() bool { return it.committed }

// Last returns the answer to the last attempt, or the zero Answer if there was no answer.
// The answer to an attempt during which the item's context ended does not count. The sender
// may call Last during Conclude and Release.
func (it *Item[M]) Last() attempt.Answer { return it.Outcome.Answer }

// MarkDuplicate records that SQS stored the event for an earlier submission and not for
// this item. The sequence number in the answer then belongs to the earlier submission, so
// the dispatcher ignores it. Sender.Send calls MarkDuplicate.
func (it *Item[M]) MarkDuplicate() { it.duplicate = true }

// MarkRecording delays the report of a stored item. The report then waits until the
// sender's store, a database, has recorded the item. The method Recorded ends the wait.
// While the report waits, later items of the group are sent as usual.
//
// The sender may call MarkRecording during Send. It may also call MarkRecording during
// Conclude, if IsSubmitted returns true.
func (it *Item[M]) MarkRecording() { it.storeWait = true }

// IsSubmitted reports whether the item was submitted to a dispatcher. The method Recorded
// may be called only for a submitted item.
func (it *Item[M]) IsSubmitted() bool { return it.owner != nil }

// Recorded ends the wait after MarkRecording, so that the item's outcome can be reported.
// The parameter `ok` is true if the store has recorded the item. After the report, Recorded
// has no effect.
//
// Recorded locks the dispatcher. To avoid a deadlock, the caller must not hold a lock that
// Sender.Conclude takes: the dispatcher calls Conclude while it is locked.
func (it *Item[M]) Recorded(ok bool) {
	d := it.owner
	d.mu.Lock()
	defer d.mu.Unlock()
	if it.detached || !it.storeWait {
		return
	}
	it.endStoreWait(ok)
	if it.isIn(&it.queue.outcomes) {
		d.unwatch(it)
		d.queueForReport(it.queue)
		d.startReporter()
	}
}

// endStoreWait ends the wait for the sender's store. The parameter `ok` is true if the
// store has recorded the item. The caller holds the lock.
func (it *Item[M]) endStoreWait(ok bool) {
	it.storeWait = false
	it.Outcome.Unrecorded = !ok
}

// waitsForStore reports whether the report of an item must wait until the sender's store
// has recorded the item. The caller holds the lock.
func (it *Item[M]) waitsForStore() bool {
	// If the item is detached, do not read storeWait: Sender.Send may be writing it without
	// the lock.
	return !it.detached && it.storeWait
}

// hasEnded reports whether the context of the item has ended.
func (it *Item[M]) hasEnded() bool { return it.watcher != nil && it.watcher.ended }

// phase is the state of an item in the dispatcher.
type phase uint8

const (
	queued  phase = iota // waits for the first or next request
	sending              // in a request, or being prepared; see also Item.detached
	ended                // has an outcome, and is in no request
)

// Outcome is the result of an item.
type Outcome struct {
	Reason Reason

	Fate attempt.Fate

	// Answer is the answer to the last attempt, or the zero Answer if there was no answer
	// (see Item.Last). Answer is set before the other fields of Outcome.
	Answer attempt.Answer

	// Cause is set if Reason is ReasonWithdrawn: it is the cause of the ended context. The
	// field `By` is set if Reason is ReasonPaused: it is the pause that stopped the item.
	Cause error
	By    *Pause

	// Overtaken means that SQS stored, or may have stored, a later item of the group before
	// this item. A failed item has Overtaken set if it gets no retry, because SQS has stored a
	// later item of its request.
	Overtaken bool

	Attempts int

	// Unrecorded means that SQS stored the item, but the sender's store had no record of
	// this at the time of the report.
	Unrecorded bool
}

// Reason is the reason for the end of an item.
type Reason uint8

const (
	// ReasonAnswered: the answer to the last attempt decided the outcome, or the time for
	// retries ended. The time can end without any attempt of the item, because Admit may
	// always decide KindWait, or because only attempts of earlier items of the group failed.
	ReasonAnswered Reason = iota

	// ReasonRefused: the item was not sent because of its content.
	ReasonRefused

	// ReasonLate: the next attempt was not made, because it might have arrived at SQS after
	// the deduplication interval.
	ReasonLate

	// ReasonPaused: an earlier item of the group failed.
	ReasonPaused

	// ReasonWithdrawn: the context of the item or of Close ended.
	ReasonWithdrawn

	// ReasonKnown: no request was necessary, because SQS is known to have stored the event.
	ReasonKnown
)

// Call marks items that a caller has submitted together. If an item fails, the later items
// with the same Call and group are not sent, unless the policy is PolicyNeverPause or the
// item was overtaken (see wasOvertaken). The zero value is ready to use.
type Call struct {
	// stopped describes, for each group, the first item that failed. Dispatcher.mu guards the
	// map.
	stopped map[string]*Pause
}

func (c *Call) stop(group string, by *Pause) {
	if c.stopped == nil {
		c.stopped = map[string]*Pause{}
	}
	if c.stopped[group] == nil {
		c.stopped[group] = by
	}
}
