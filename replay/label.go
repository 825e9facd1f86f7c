package replay

import (
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
)

// Interval is the deduplication interval of SQS. Margin allows for the duration of a
// request and for differences between clocks. Within Margin around the end of Interval,
// SQS may or may not suppress an item ([LabelEdge]).
const (
	Interval = window.Interval
	Margin   = Interval - ResendFor
)

// ResendFor is how long a run may resend an item after a first attempt without an answer.
// During this time SQS certainly recognises a copy of a stored item.
const ResendFor = window.RetryFor

// Label predicts whether SQS delivers or suppresses a copy of an item, if the copy is sent
// at a certain time. SQS suppresses copies for five minutes after the original send.
type Label string

const (
	LabelNew     Label = "new"     // SQS never stored the item, so it is delivered
	LabelInside  Label = "inside"  // SQS remembers the item and suppresses a copy
	LabelEdge    Label = "edge"    // SQS may or may not remember the item
	LabelOutside Label = "outside" // SQS has forgotten the item and delivers a copy
)

var labels = []Label{LabelNew, LabelInside, LabelEdge, LabelOutside}

// SentBetween is the range of time in which SQS accepted a message: not before From, not after
// To. A zero From sets no lower bound.
type SentBetween struct {
	From time.Time `json:"from,omitzero"`
	To   time.Time `json:"to,omitzero"`
}

// label returns an item's label at the given time. SQS accepted the item between s.From and
// s.To or, if s.To is zero, never.
func (s SentBetween) label(now time.Time) Label {
	switch {
	case s.To.IsZero():
		return LabelNew
	case !now.Before(s.forgottenAt()):
		return LabelOutside
	case !s.From.IsZero() && now.Before(s.From.Add(ResendFor)) && !now.Before(s.From.Add(-Margin)):
		return LabelInside
	default: // for example near the end of Interval, with an unknown From, or after the clock was set back
		return LabelEdge
	}
}

// forgottenAt returns the time from which SQS certainly delivers a resent message, because
// it has forgotten the original send.
func (s SentBetween) forgottenAt() time.Time { return s.To.Add(Interval + Margin) }
