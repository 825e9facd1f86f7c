package replay

import (
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
)

// Interval is how long SQS recognises a message, and Margin what is left for a
// request on its way and for clocks that differ: within a Margin of the end of an
// interval an item is at its edge.
const (
	Interval = window.Interval
	Margin   = 30 * time.Second
)

// ResendFor is how long after its first attempt an item without an answer may be sent
// again: SQS surely recognises it.
const ResendFor = Interval - Margin

// Label says what SQS does with an item that is sent at some instant, if the item was
// stored before.
type Label uint8

const (
	// New: it was never stored, and will be delivered.
	New Label = iota

	// Inside: SQS remembers it and will suppress it.
	Inside

	// Edge: it is not certain whether SQS still remembers it.
	Edge

	// Outside: SQS has forgotten it and will deliver it again.
	Outside
)

var labelNames = names{"new", "inside", "edge", "outside"}

// String returns the label as a plan has it.
func (l Label) String() string { return labelNames.of(uint8(l), "Label") }

// MarshalText returns String.
func (l Label) MarshalText() ([]byte, error) { return labelNames.marshal(uint8(l), "Label") }

// UnmarshalText is the inverse of MarshalText.
func (l *Label) UnmarshalText(text []byte) error {
	return labelNames.unmarshal(text, (*uint8)(l), "Label")
}

// Sent bounds the instant at which SQS accepted a message: not before From and not
// after To. A zero From means that there is no lower bound.
type Sent struct {
	From time.Time `json:"from,omitzero"`
	To   time.Time `json:"to,omitzero"`
}

// Label returns the label at now of an item that may have been accepted within the
// bounds.
func (s Sent) Label(now time.Time) Label {
	switch {
	case s.To.IsZero():
		return New
	case !now.Before(s.OutsideFrom()):
		return Outside
	case !s.From.IsZero() && now.Before(s.From.Add(ResendFor)) && !now.Before(s.From.Add(-Margin)):
		return Inside
	default: // also when the clock was set back since
		return Edge
	}
}

// OutsideFrom is when SQS has surely forgotten the message.
func (s Sent) OutsideFrom() time.Time { return s.To.Add(Interval + Margin) }
