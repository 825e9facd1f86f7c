package dispatch

import (
	"context"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
)

// Item is one submitted message until its one outcome is reported. The exported
// fields above the outcome are set before Submit and not changed after it, but by
// Revise.
type Item[M any] struct {
	// Message is the courier's. The dispatcher sets it to its zero value when the
	// outcome has been reported.
	Message M

	Group string   // message group
	Key   string   // items with the same key are the same event
	ID    [16]byte // of the event
	Size  int      // bytes, as SQS counts them and as the buffer does

	// Context ends the wait for an outcome; nil is never.
	Context context.Context

	// Call is the call that the item came with, if a failure is to stop the items
	// of its group that follow it in the call.
	Call *Call

	// Refused is set for an item that will not be sent, Known for one that need not be
	// sent, because it is known to be stored. Both wait for their turn, so that the
	// outcomes of a group come in order.
	Refused, Known bool

	// Outcome is set before Tell.
	Outcome Outcome

	done <-chan struct{} // of Context

	// The fields below belong to Dispatcher.mu.
	lane       *lane[M]
	prev, next *Item[M] // in the lane; next also among its outcomes
	epoch      *epoch
	watcher    *watcher[M]
	stop       func() bool // of the watch on the context

	watchedBefore, watchedAfter *Item[M] // by the same watcher

	submitted time.Duration // since the dispatcher began
	first     time.Duration // likewise, when the first attempt began
	attempts  int32
	room      int   // its place in the buffer, in bytes
	failures  uint8 // attempts in a row that failed
	limit     uint8 // entries that its next request may have; 0 is no limit
	phase     phase
	duplicate bool
	deferred  bool   // an Admit put it off; the time for retries has begun
	request   uint64 // the last one that it was in
	doubt     uint64 // the first one that may have stored it; 0 is none
	passed    uint64 // the first one that may have stored a later item, which has ended; 0 is none

	delay time.Duration // of an Admit that put it off; the worker's
}

// Attempts is how many requests the item has been in. The courier may call it in
// Send; it counts the request under way.
func (it *Item[M]) Attempts() int { return int(it.attempts) }

// Last is the answer to the last attempt, zero if there was none. The courier may
// call it in Conclude and Release.
func (it *Item[M]) Last() attempt.Answer { return it.Outcome.Answer }

// MarkDuplicate is for the courier's Send: the item was stored, by an earlier
// submission, so that its sequence number says nothing about this one's order.
func (it *Item[M]) MarkDuplicate() { it.duplicate = true }

// Delay is for the courier's Admit, which puts the item off ([Later]): the least time
// until the next Admit.
func (it *Item[M]) Delay(d time.Duration) { it.delay = d }

// phase says where an item is on its way.
type phase uint8

const (
	waiting   phase = iota // for its first or next request
	flying                 // in a request
	abandoned              // in a request, and its outcome is decided
	settled                // decided; it leaves the lane when those before it have left
	left                   // the lane
)

// Outcome says how an item ended.
type Outcome struct {
	Reason Reason

	// Fate is what became of the item.
	Fate attempt.Fate

	// Answer is that of the last attempt, zero if there was none. It is known before the
	// rest.
	Answer attempt.Answer

	// Cause is set with the reason Withdrawn, By with Paused.
	Cause error
	By    *Pause

	// Overtaken: a later item of the group was, or may have been, stored before
	// this one.
	Overtaken bool

	Attempts int
}

// Reason says why an item ended.
type Reason uint8

const (
	// Answered: by the answer to its last attempt, or because the time for
	// retries is over, also if it was only put off.
	Answered Reason = iota

	// Refused: for what it is, before it was sent.
	Refused

	// Late: another attempt might arrive after the deduplication interval.
	Late

	// Paused: an earlier item of the group failed.
	Paused

	// Withdrawn: its context ended, or that of Close.
	Withdrawn

	// Overtaken: it failed in a request that stored a later item of its group.
	Overtaken

	// Known: it is known to be stored, without a request.
	Known
)

// Call is the items of one call in which a failure stops the later items of its
// group. The zero value is ready to use.
type Call struct {
	stopped map[string]*Pause // by group; guarded by Dispatcher.mu
}

func (c *Call) stop(group string, by *Pause) {
	if c.stopped == nil {
		c.stopped = map[string]*Pause{}
	}
	if c.stopped[group] == nil {
		c.stopped[group] = by
	}
}
