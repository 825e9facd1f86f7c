package sqsfifo

import (
	"fmt"
	"time"
)

// Order says how many events of one message group share a request. With either
// no two requests with the same group are ever under way at once.
type Order uint8

const (
	// Strict sends one event of a group at a time, the next one when SQS has
	// answered it. The order of a group holds under every fault. G groups move
	// at most G events in a round trip: 100 groups and 10 ms make 10,000 a
	// second.
	Strict Order = iota

	// Runs sends up to ten events of a group that follow each other in one
	// request, which is up to ten times as fast where there are few groups. The
	// order of a group holds unless SQS stores a request in part: an event that
	// failed in front of one that was stored is not sent again and its error
	// wraps [ErrOvertaken]; one that turns out to have been stored late, by a
	// retry after a lost answer, has Receipt.Overtaken.
	Runs
)

// GroupFailure says what becomes of a message group in which an event failed.
type GroupFailure uint8

const (
	// PauseGroup stops the group, so that nothing overtakes the event that
	// failed: see [Producer.Resume].
	PauseGroup GroupFailure = iota

	// SkipEvent goes on with the next event of the group. Whoever sends the
	// failed one again sends it out of order.
	SkipEvent
)

// Delivery describes how events are put into requests. The zero value is the
// usual choice.
type Delivery struct {
	// Order is Strict unless a request may hold several events of one group.
	Order Order

	// OnGroupFailure is PauseGroup unless a group goes on without an event that
	// could not be delivered.
	OnGroupFailure GroupFailure

	// RetryFor is how long after its first attempt an event may be tried again
	// when SQS throttles, fails or does not answer. Zero means 4 minutes and 30
	// seconds. More than 4 minutes and 35 seconds is refused: a retry that SQS
	// accepts after the deduplication interval would be a second delivery.
	RetryFor time.Duration

	// Linger is how long an event waits for others to share its request with
	// while a request is under way. With none under way it goes at once. Zero
	// means 5 milliseconds.
	Linger time.Duration

	// InFlight is the greatest number of requests under way at once. Zero means
	// 10, as many as the SDK's transport keeps connections for; [NewClient] makes a
	// client that keeps more.
	InFlight int

	// BufferEvents and BufferBytes bound the events that were handed in and
	// have no outcome yet. Zero means 4,096 events, several times what 64 requests
	// hold and little enough to stay in a processor's cache, and 64 MiB, as SQS
	// counts a message's bytes. Less than 1 MiB is refused: a message might never fit.
	BufferEvents int
	BufferBytes  int

	// AcceptTimes reads from a sequence number when SQS accepted the message, so
	// that Receipt.Duplicate tells of events that another process sent, or this
	// one before a restart. AWS does not document what the number holds (F-008);
	// of one that holds no time of the last five minutes nothing is concluded. The
	// clock of this process has to be right to 5 seconds.
	AcceptTimes bool
}

func (d Delivery) validate(refuse func(field, rule string)) {
	if d.Order > Runs {
		refuse("Delivery.Order", "unknown value; use Strict or Runs")
	}
	if d.OnGroupFailure > SkipEvent {
		refuse("Delivery.OnGroupFailure", "unknown value; use PauseGroup or SkipEvent")
	}
	if d.RetryFor < 0 || d.RetryFor > resendHorizon {
		refuse("Delivery.RetryFor", fmt.Sprintf("%v is not between 0 and %v; a retry must end inside the deduplication interval of the first attempt", d.RetryFor, resendHorizon))
	}
	if d.Linger < 0 || d.Linger > time.Minute {
		refuse("Delivery.Linger", fmt.Sprintf("%v is not between 0 and 1 minute", d.Linger))
	}
	if d.InFlight < 0 {
		refuse("Delivery.InFlight", fmt.Sprintf("%d is negative", d.InFlight))
	}
	if d.BufferEvents < 0 {
		refuse("Delivery.BufferEvents", fmt.Sprintf("%d is negative", d.BufferEvents))
	}
	if d.BufferBytes != 0 && d.BufferBytes < maxMessageBytes {
		refuse("Delivery.BufferBytes", fmt.Sprintf("%d is less than the %d bytes that one message may have", d.BufferBytes, maxMessageBytes))
	}
}

// orDefaults puts the usual value where there is none.
func (d Delivery) orDefaults() Delivery {
	if d.RetryFor == 0 {
		d.RetryFor = defaultRetryFor
	}
	if d.Linger == 0 {
		d.Linger = 5 * time.Millisecond
	}
	if d.InFlight == 0 {
		d.InFlight = 10
	}
	if d.BufferEvents == 0 {
		d.BufferEvents = 4096
	}
	if d.BufferBytes == 0 {
		d.BufferBytes = 64 << 20
	}
	return d
}
