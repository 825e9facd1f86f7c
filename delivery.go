package sqsfifo

import (
	"cmp"
	"fmt"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/dispatch"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
)

// Order selects how many events of one message group a request may contain. With either
// value, at most one request of a group is in flight.
type Order uint8

const (
	// OrderStrict puts at most one event of a group into a request. The order of a group holds
	// under every fault.
	//
	// The next event of the group is sent after SQS has answered, so the number of groups
	// limits the rate. With 100 groups and a round trip of 10 ms, the producer sends at
	// most 10,000 events a second.
	OrderStrict Order = iota

	// OrderRuns is the order with up to ten consecutive events of a group in one request. With
	// few groups, it is up to ten times as fast as OrderStrict.
	//
	// The order of a group holds unless SQS stores only part of a request. Outcomes then
	// report the overtaken events:
	//
	//   - A failed event is not sent again if the same request stored a later event, because
	//     it would be stored out of order. The error wraps [ErrOvertaken]. After a passing
	//     failure, such as InternalError or a throttle, the later events of the group are
	//     sent, also those of the same SendBatch, unless OnGroupFailure is
	//     [GroupFailurePause].
	//   - Receipt.Overtaken is true if a retry stored the event after a later event.
	//
	// A receipt waits until the producer knows whether a later event was stored first.
	OrderRuns
)

// GroupFailure selects the failures that pause a message group. No event overtakes the
// failed event during a pause. See [Producer.Resume].
type GroupFailure uint8

const (
	// GroupFailurePauseInDoubt pauses a group after an event with the [Fate] FateInDoubt or
	// FateAltered. The pause ends when the event is stored, or when SQS has forgotten the
	// event: after about five minutes at most. After a failure with the fate FateNotStored,
	// the group continues. It also continues after [ErrOvertaken]: a pause could no
	// longer keep the order.
	//
	// GroupFailurePauseInDoubt suits producers with many groups, for example one group per entity:
	// every pause ends by itself, without a call of Resume.
	GroupFailurePauseInDoubt GroupFailure = iota

	// GroupFailurePause pauses a group after an event that failed in an attempt, and after
	// each event with the [Fate] FateInDoubt or FateAltered. The pause ends when that event
	// is stored or the group is resumed. GroupFailurePause suits a relay that resends the
	// first row of each group until the send succeeds.
	GroupFailurePause

	// GroupFailureSkip continues with the next event of the group. A later resend of the failed
	// event is out of order.
	GroupFailureSkip
)

// Delivery configures order, requests, retries, pauses, the buffer and the memory. The
// zero value is the usual choice.
type Delivery struct {
	// Order is [OrderStrict] by default. With [OrderRuns], a request may contain several events of a
	// group.
	Order Order

	// OnGroupFailure is GroupFailurePauseInDoubt by default.
	OnGroupFailure GroupFailure

	// RetryFor is the time for retries. The producer retries after throttles, failures,
	// missing answers and requests that do not leave this machine. Zero means 4 minutes and
	// 30 seconds.
	//
	// RetryFor counts from the later of two times: the submission of the event, and the last
	// answer of SQS that stored or refused an event of its message group. All events that
	// wait in a group during an outage therefore end at the same time, and the later ones
	// without an attempt. An event that has waited for longer than RetryFor gets one attempt.
	// While no attempt of its group fails, RetryFor has no effect, however long an event
	// waits, unless attempts of other groups fail and SQS answers for no group.
	//
	// With Config.Store, the maximum is 4 minutes and 30 seconds minus Store.Timeout: 4
	// minutes and 25 seconds by default. Zero then means the maximum, and a longer
	// RetryFor is refused.
	//
	// Without a store, RetryFor may be longer. But if SQS may have stored an attempt, the
	// last retry starts at most 4 minutes and 35 seconds after the first such attempt. A
	// later retry might arrive after the deduplication interval, and SQS would deliver a
	// second message.
	RetryFor time.Duration

	// StartFor limits the retries, in addition to RetryFor, while the service that fails
	// (SQS or Config.Store) has never answered this producer. StartFor counts from the
	// call of Send. Zero means 15 seconds, because the network of a new pod may be late.
	// StartFor has no effect after an attempt that may have stored the event.
	//
	// An error for missing credentials, a wrong region or host, a missing permission or a
	// missing queue does not count as an answer. StartFor therefore limits the retries
	// under a wrong configuration.
	StartFor time.Duration

	// Linger is the longest wait for more events in a request. Events wait only while
	// another request is in flight. Zero means 5 milliseconds.
	Linger time.Duration

	// InFlight is the maximum number of concurrent requests. Zero means 10, the number of
	// connections that the SDK's transport keeps; a client of [NewClient] keeps more.
	InFlight int

	// BufferEvents and BufferBytes limit the submitted events without a reported outcome.
	// Zero means 4,096 events and 64 MiB.
	//
	// BufferBytes counts the bytes of a message as SQS does. A BufferBytes below 1 MiB is
	// refused, because a message might never fit.
	BufferEvents int
	BufferBytes  int

	// Memory configures the memory of sent events.
	Memory Memory
}

// Memory configures a producer's memory of sent events. The memory covers the five
// minutes of the deduplication interval. The zero value is the usual choice.
type Memory struct {
	// MaxKeys is the maximum number of remembered dedupe keys. Zero means 33 million, the
	// limit of the data structure. A key takes about 75 bytes for five minutes.
	//
	// The producer never forgets a key early. With MaxKeys keys in memory, an event with a
	// further key is not sent, and its error wraps [ErrMemoryFull].
	MaxKeys int

	// DetectForeignDuplicates lets Receipt.Duplicate also recognise an event that another
	// process, or this process before a restart, has already sent. SQS suppresses the
	// second message of such an event in any case, but without DetectForeignDuplicates,
	// Receipt.Duplicate may be false.
	//
	// The proof of a duplicate is the time at which SQS accepted the message. The producer reads this
	// time from the sequence number. AWS does not document the content of sequence
	// numbers, so the producer ignores a sequence number unless it contains a time within
	// the last five minutes.
	//
	// The producer compares the time with the clock of this machine. With the SDK's
	// client, a wrong clock does no harm, because the Date header of SQS's answers shows
	// the difference. With another client, the clock must be right to 5 seconds.
	//
	// A duplicate is not recognised if SQS accepted the first message less than 5 seconds
	// before the first attempt of this call, or if this is so by the clock of this machine
	// alone: the Date header may be wrong too.
	DetectForeignDuplicates bool
}

func (d Delivery) validate(refuse func(field, rule string)) {
	if d.Order > OrderRuns {
		refuse("Delivery.Order", "unknown value; use OrderStrict or OrderRuns")
	}
	if d.OnGroupFailure > GroupFailureSkip {
		refuse("Delivery.OnGroupFailure", "unknown value; use GroupFailurePauseInDoubt, GroupFailurePause or GroupFailureSkip")
	}
	if d.RetryFor < 0 {
		refuse("Delivery.RetryFor", fmt.Sprintf("%v is negative", d.RetryFor))
	}
	if d.StartFor < 0 {
		refuse("Delivery.StartFor", fmt.Sprintf("%v is negative", d.StartFor))
	}
	if d.Linger < 0 || d.Linger > time.Minute {
		refuse("Delivery.Linger", fmt.Sprintf("%v is not between 0 and 1 minute", d.Linger))
	}
	for _, n := range []struct {
		field string
		value int
	}{{"InFlight", d.InFlight}, {"BufferEvents", d.BufferEvents}, {"Memory.MaxKeys", d.Memory.MaxKeys}} {
		if n.value < 0 {
			refuse("Delivery."+n.field, fmt.Sprintf("%d is negative", n.value))
		}
	}
	if d.BufferBytes != 0 && d.BufferBytes < maxMessageBytes {
		refuse("Delivery.BufferBytes", fmt.Sprintf("%d is less than the %d bytes that one message may have", d.BufferBytes, maxMessageBytes))
	}
}

// maxMessageBytes is the size limit of SQS for a message, in bytes.
const maxMessageBytes = 1 << 20

// usualStartFor is the default of Delivery.StartFor. It gives the network of a new pod
// time to start.
const usualStartFor = 15 * time.Second

// options returns the settings of the dispatcher, with defaults in place of zeros.
func (d Delivery) options() dispatch.Options {
	o := dispatch.Options{
		PerGroup: 1,
		RetryFor: cmp.Or(d.RetryFor, window.RetryFor),
		Linger:   cmp.Or(d.Linger, 5*time.Millisecond),
		InFlight: cmp.Or(d.InFlight, 10),
		Items:    cmp.Or(d.BufferEvents, 4096),
		Bytes:    cmp.Or(d.BufferBytes, 64<<20),
	}
	if d.Order == OrderRuns {
		o.PerGroup = 10
	}
	switch d.OnGroupFailure {
	case GroupFailurePauseInDoubt:
		o.Policy = dispatch.PolicyPauseInDoubt
	case GroupFailurePause:
		o.Policy = dispatch.PolicyPauseOnFailure
	case GroupFailureSkip:
		o.Policy = dispatch.PolicyNeverPause
	}
	return o
}
