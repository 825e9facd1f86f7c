package replay

import (
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
)

// Interval is the deduplication interval of SQS. Margin is the tolerance for the time of a
// request in transit and for the difference between clocks. An item is at the edge if it is
// sent less than a Margin before or after the end of its interval.
const (
	Interval = window.Interval
	Margin   = Interval - ResendFor
)

// ResendFor is the time after its first attempt in which an item without an answer may be
// sent again, because SQS still recognises it.
const ResendFor = window.RetryFor

// Label describes SQS's treatment of an item that is sent at a certain instant, if SQS
// stored the item before.
type Label string

const (
	LabelNew     Label = "new"     // never stored: SQS delivers the item
	LabelInside  Label = "inside"  // SQS remembers the item and suppresses it
	LabelEdge    Label = "edge"    // SQS may or may not remember the item
	LabelOutside Label = "outside" // SQS has forgotten the item and delivers it again
)

var labels = []Label{LabelNew, LabelInside, LabelEdge, LabelOutside}

// Sent is a range of time in which SQS accepted a message: not before From and not after
// To. A zero From means that there is no lower bound.
type Sent struct {
	From time.Time `json:"from,omitzero"`
	To   time.Time `json:"to,omitzero"`
}

// label returns the label, at the given time, of an item that SQS accepted between s.From
// and s.To.
func (s Sent) label(now time.Time) Label {
	switch {
	case s.To.IsZero():
		return LabelNew
	case !now.Before(s.forgottenAt()):
		return LabelOutside
	case !s.From.IsZero() && now.Before(s.From.Add(ResendFor)) && !now.Before(s.From.Add(-Margin)):
		return LabelInside
	default: // includes the case that the clock was set back
		return LabelEdge
	}
}

// forgottenAt returns the instant at which SQS has certainly forgotten the message.
func (s Sent) forgottenAt() time.Time { return s.To.Add(Interval + Margin) }
