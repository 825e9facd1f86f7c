package sqsfifo

import (
	"fmt"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/dedup"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/dispatch"
)

// Order says how many events of one message group share a request. With either
// order, no two requests with the same group are ever under way at once.
type Order uint8

const (
	// Strict sends one event of a group at a time, and the next one when SQS has
	// answered. The order of a group holds under every fault. G groups move
	// at most G events in a round trip: 100 groups and 10 ms make 10,000 a
	// second.
	Strict Order = iota

	// Runs sends up to ten consecutive events of a group in one request, which is
	// up to ten times as fast where there are few groups. The order of a group holds
	// unless SQS stores a request in part. Each event that is known to be stored, or
	// surely not, and that a later one may have overtaken is named: an event that failed in a request that stored a
	// later one is not sent again and its error wraps [ErrOvertaken]; one that was
	// stored late, by a retry, has Receipt.Overtaken. A receipt waits while it is
	// not known whether a later event was stored first.
	Runs
)

// GroupFailure says which failures pause a message group, so that nothing
// overtakes the event that failed. See [Producer.Resume].
type GroupFailure uint8

const (
	// PauseInDoubt pauses a group after an event that is in doubt or altered, and
	// only until the doubt is over, which is at most about five minutes. An event that
	// is surely not stored pauses nothing: it can be sent again at any time. It suits
	// producers with a group for each entity, who must not have to resume groups.
	PauseInDoubt GroupFailure = iota

	// PauseOnFailure pauses a group after each event that was tried and failed,
	// and until that event is stored or the group is resumed. It suits a relay that
	// sends the first row of each group again until it succeeds.
	PauseOnFailure

	// SkipEvent goes on with the next event of the group. A failed event that is sent
	// again is then out of order.
	SkipEvent
)

// Delivery describes how events are put into requests. The zero value is the
// usual choice.
type Delivery struct {
	// Order is Strict unless a request may hold several events of one group.
	Order Order

	// OnGroupFailure is PauseInDoubt unless other failures are to pause a group, or
	// none.
	OnGroupFailure GroupFailure

	// RetryFor is how long after its first attempt an event may be tried again
	// when SQS throttles, fails or does not answer, or when no request leaves this
	// machine. Zero means 4 minutes and 30 seconds, and with Config.Store 4 minutes and 25
	// seconds, or less if Store.Timeout is longer than usual; more is refused then. Whatever it is, an event that
	// may be stored is never tried again later than 4 minutes and 35 seconds after
	// the first attempt in doubt: a retry that SQS accepts after the deduplication
	// interval would be a second delivery.
	RetryFor time.Duration

	// Linger is how long an event waits for others to share its request with
	// while a request is under way. With none under way it goes at once. Zero
	// means 5 milliseconds.
	Linger time.Duration

	// InFlight is the greatest number of requests under way at once. Zero means
	// 10, as many as the SDK's transport keeps connections for; [NewClient] makes a
	// client that keeps more.
	InFlight int

	// BufferEvents and BufferBytes bound the events that were submitted and whose
	// outcome has not been reported. Zero means 4,096 events, several times what 64
	// requests hold and few enough to stay in a processor's cache, and 64 MiB, as
	// SQS counts a message's bytes. Less than 1 MiB is refused: a message might
	// never fit.
	BufferEvents int
	BufferBytes  int

	// Memory says what the producer remembers of the events that it sent.
	Memory Memory
}

// Memory describes what a producer remembers for the five minutes of the
// deduplication interval. The zero value is the usual choice.
type Memory struct {
	// MaxKeys is the greatest number of dedupe keys remembered at a time. A key takes
	// about 75 bytes, for five minutes. An event that would need one more is refused
	// with [ErrMemoryFull]: a key is never forgotten early. Zero means no maximum
	// but that of the structure, 33 million.
	MaxKeys int

	// DetectForeignDuplicates lets Receipt.Duplicate also report that another process
	// sent the event, or this one before a restart. Without it, the replay of an
	// at-least-once source after a restart looks new: SQS suppresses the copies, and
	// their receipts do not say so.
	//
	// It reads from the sequence number when SQS accepted the message. AWS does not
	// document what the number holds (F-008); nothing is concluded from one that holds
	// no time of the last five minutes. The clock of this process must be right to 5
	// seconds, and a message that SQS accepted less than 5 seconds before the first
	// attempt of this call is not recognised.
	DetectForeignDuplicates bool
}

func (d Delivery) validate(refuse func(field, rule string)) {
	if d.Order > Runs {
		refuse("Delivery.Order", "unknown value; use Strict or Runs")
	}
	if d.OnGroupFailure > SkipEvent {
		refuse("Delivery.OnGroupFailure", "unknown value; use PauseInDoubt, PauseOnFailure or SkipEvent")
	}
	if d.RetryFor < 0 {
		refuse("Delivery.RetryFor", fmt.Sprintf("%v is negative", d.RetryFor))
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

// maxMessageBytes is the most that a queue may accept of one message (F-073).
const maxMessageBytes = 1 << 20

// defaultRetryFor leaves a caller some of the horizon for a resend.
const defaultRetryFor = dedup.Horizon - 5*time.Second

// options returns the usual value where there is none.
func (d Delivery) options() dispatch.Options {
	or := func(n, usual int) int {
		if n == 0 {
			return usual
		}
		return n
	}
	o := dispatch.Options{
		PerGroup: 1,
		RetryFor: time.Duration(or(int(d.RetryFor), int(defaultRetryFor))),
		Linger:   time.Duration(or(int(d.Linger), int(5*time.Millisecond))),
		InFlight: or(d.InFlight, 10),
		Items:    or(d.BufferEvents, 4096),
		Bytes:    or(d.BufferBytes, 64<<20),
	}
	if d.Order == Runs {
		o.PerGroup = 10
	}
	switch d.OnGroupFailure {
	case PauseInDoubt:
		o.Policy = dispatch.PauseInDoubt
	case PauseOnFailure:
		o.Policy = dispatch.PauseOnFailure
	case SkipEvent:
		o.Policy = dispatch.NeverPause
	}
	return o
}
