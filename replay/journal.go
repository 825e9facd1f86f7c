package replay

import (
	"context"
	"fmt"
	"iter"
	"time"
)

// Journal keeps what the runs of one plan did. Its owner holds it alone: whoever opens
// one takes a lock and fails while another has it, see [LockedError].
type Journal interface {
	// Marks yields all marks in the order of Append. After an error it ends.
	Marks(ctx context.Context) iter.Seq2[Mark, error]

	// Append adds marks. They are durable when it returns nil. After an error it is not
	// known which of them are, and the journal is not used any more. The slice is not
	// retained. It is called by one goroutine at a time. The context ends some time after
	// that of the run: what is known when a run is interrupted is still noted.
	Append(ctx context.Context, marks []Mark) error
}

// MarkKind says what a mark notes.
type MarkKind uint8

const (
	// MarkBegin: a run begins. It has Plan and Run.
	MarkBegin MarkKind = iota + 1

	// MarkTry: the item may be sent from now on. It is durable before it is.
	MarkTry

	// MarkEnd: an item has an Outcome.
	MarkEnd

	// MarkSettle: an operator decided what became of an item, see [Settle].
	MarkSettle
)

var markNames = names{"", "begin", "try", "end", "settle"}

// String returns the kind as a journal has it.
func (k MarkKind) String() string { return markNames.of(uint8(k), "MarkKind") }

// MarshalText returns String.
func (k MarkKind) MarshalText() ([]byte, error) { return markNames.marshal(uint8(k), "MarkKind") }

// UnmarshalText is the inverse of MarshalText.
func (k *MarkKind) UnmarshalText(text []byte) error {
	return markNames.unmarshal(text, (*uint8)(k), "MarkKind")
}

// Outcome is what became of an item.
type Outcome uint8

const (
	// None: it was not reached.
	None Outcome = iota

	// OutcomeSent: SQS stored it.
	OutcomeSent

	// OutcomeSuppressed: SQS, or the producer, had it and took this for a repetition.
	OutcomeSuppressed

	// OutcomeSkipped: the plan says not to send it, or an earlier item of its group stopped.
	OutcomeSkipped

	// OutcomeConflict: its dedupe key belongs to another message. It was not sent.
	OutcomeConflict

	// OutcomeDrift: it is not what was recorded. It was not sent.
	OutcomeDrift

	// OutcomeIndeterminate: it may have been stored, and it is not safe to send it again.
	OutcomeIndeterminate

	// OutcomeFailed: it is surely not stored.
	OutcomeFailed
)

var outcomeNames = names{"none", "sent", "suppressed", "skipped", "conflict", "drift", "indeterminate", "failed"}

// String returns the outcome as a journal has it.
func (o Outcome) String() string { return outcomeNames.of(uint8(o), "Outcome") }

// MarshalText returns String.
func (o Outcome) MarshalText() ([]byte, error) { return outcomeNames.marshal(uint8(o), "Outcome") }

// UnmarshalText is the inverse of MarshalText.
func (o *Outcome) UnmarshalText(text []byte) error {
	return outcomeNames.unmarshal(text, (*uint8)(o), "Outcome")
}

// Mark is an entry of a [Journal]. Zero fields are absent.
type Mark struct {
	Kind MarkKind  `json:"k"`
	Item int       `json:"n,omitempty"` // PlannedItem.Number
	At   time.Time `json:"at"`

	Plan string `json:"plan,omitempty"`
	Run  string `json:"run,omitempty"`

	Outcome Outcome `json:"o,omitzero"`

	// Label is the one at the send, of a MarkTry.
	Label Label `json:"l,omitzero"`

	// Refuted says that no attempt since the last MarkTry stored the item, and Held
	// that it must not be sent again although its outcome is unknown: SQS has
	// something else in its place.
	Refuted bool `json:"refuted,omitempty"`
	Held    bool `json:"held,omitempty"`

	MessageID      string  `json:"message_id,omitempty"`
	SequenceNumber string  `json:"sequence_number,omitempty"`
	Reason         string  `json:"reason,omitempty"`
	Verdict        Verdict `json:"verdict,omitzero"`
}

// LockedError says that another run has the source. Nothing was sent.
type LockedError struct {
	Source string
	Owner  string // the process, as it named itself
	Path   string // of the lock, where it is a file
}

func (e *LockedError) Error() string {
	owner := e.Owner
	if owner == "" {
		owner = "a process that has not named itself yet"
	}
	return fmt.Sprintf("replay: not run: the source %q is being replayed by %s (lock %s); wait for its end or stop it", e.Source, owner, e.Path)
}

// JournalError is a journal that cannot be used. Nothing was sent after it was found.
type JournalError struct {
	Path string
	Line int // from 1; 0 if it is about the file
	Rule string
	Err  error // may be nil
}

func (e *JournalError) Error() string {
	text := "replay: journal " + e.Path
	if e.Line > 0 {
		text += fmt.Sprintf(", line %d", e.Line)
	}
	text += ": " + e.Rule
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns Err.
func (e *JournalError) Unwrap() error { return e.Err }
