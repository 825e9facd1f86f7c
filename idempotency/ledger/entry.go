package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// Hash is a SHA-256. The zero Hash stands for none.
type Hash [sha256.Size]byte

// String returns the hash in hexadecimal.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText returns the hash in hexadecimal, and nothing for the zero Hash.
func (h Hash) MarshalText() ([]byte, error) {
	if h == (Hash{}) {
		return []byte{}, nil
	}
	return []byte(h.String()), nil
}

// UnmarshalText is the inverse of MarshalText.
func (h *Hash) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*h = Hash{}
		return nil
	}
	if len(text) != hex.EncodedLen(len(h)) {
		return fmt.Errorf("a hash of %d characters, want %d", len(text), hex.EncodedLen(len(h)))
	}
	_, err := hex.Decode(h[:], text)
	return err
}

// Event is what happened to a key.
type Event string

// The events that a store writes, in the transaction of the change.
const (
	Claimed   Event = "claimed"
	Renewed   Event = "renewed"
	Reclaimed Event = "reclaimed"
	Completed Event = "completed"
	Failed    Event = "failed"   // with a proof; Entry.Status says what became of the operation
	InDoubt   Event = "in_doubt" // failed without a proof
	Released  Event = "released"
	Purged    Event = "purged" // the row of an expired key was deleted
)

// The events that callers remark. A store writes nothing for a claim that it answers
// with Duplicate or Conflict: it changes nothing, and its number has no bound.
const (
	DuplicateDetected Event = "duplicate_detected"
	ConflictDetected  Event = "conflict_detected"
	ReplayTriggered   Event = "replay_triggered"
	CAREEnforced      Event = "care_enforced" // access rules of the CARE label were applied
	Masked            Event = "masked"        // parts of the data were masked or generalised
)

// Remark is an event that a caller adds about a key.
type Remark struct {
	Event Event // one of DuplicateDetected, ConflictDetected, ReplayTriggered, CAREEnforced, Masked
	Key   idempotency.Key

	// Fence is that of the claim under which it happened, or 0.
	Fence int64

	Dataset idempotency.Dataset

	// Note names the rule, the run or the person: UTF-8 without NUL, at most
	// [idempotency.MaxReason] bytes. It must not hold payload or secrets: nothing is
	// ever deleted from a ledger.
	Note string
}

// Check returns an [*idempotency.InvalidError] that names the field that breaks its
// rule, or nil.
func (r Remark) Check() error {
	switch r.Event {
	case DuplicateDetected, ConflictDetected, ReplayTriggered, CAREEnforced, Masked:
	default:
		return &idempotency.InvalidError{Field: "Remark.Event", Rule: fmt.Sprintf("%q, want an event of callers: duplicate_detected, conflict_detected, replay_triggered, care_enforced or masked", string(r.Event))}
	}
	if err := r.Key.Check(); err != nil {
		return err
	}
	if r.Fence < 0 {
		return &idempotency.InvalidError{Field: "Remark.Fence", Rule: fmt.Sprintf("%d, want that of a claim, or 0 for none", r.Fence)}
	}
	if err := r.Dataset.Check(); err != nil {
		return err
	}
	if rule := wrongNote(r.Note); rule != "" {
		return &idempotency.InvalidError{Field: "Remark.Note", Rule: rule}
	}
	return nil
}

func wrongNote(s string) string {
	switch {
	case len(s) > idempotency.MaxReason:
		return fmt.Sprintf("%d bytes, want at most %d", len(s), idempotency.MaxReason)
	case !utf8.ValidString(s):
		return "not UTF-8; use text"
	case strings.IndexByte(s, 0) >= 0:
		return fmt.Sprintf("NUL at position %d; use text without it", strings.IndexByte(s, 0))
	}
	return ""
}

// Entry returns the entry of the remark at a time.
func (r Remark) Entry(at time.Time) Entry {
	return Entry{At: at, Event: r.Event, Key: r.Key, Fence: r.Fence, Dataset: r.Dataset, Note: r.Note}
}

// Entry is one event. Its place is under the hash of its seal, all other fields are
// under its own.
type Entry struct {
	Place

	// At is the time of the event in whole microseconds, on the clock of the store.
	At    time.Time
	Event Event
	Key   idempotency.Key

	Generation, Fence, Attempts int64

	// Status is that of the record after the event, as SQL stores write it; "released"
	// is a record that is absent again, and "" an event that is not a change.
	Status string

	// RunAgain says that the claim asked to run an operation whose outcome was unknown.
	RunAgain bool

	// Fingerprint, Body and Response are the hashes of the record: of the request, of
	// body and group, of the result.
	Fingerprint    idempotency.Fingerprint
	Body, Response Hash

	Dataset idempotency.Dataset

	// Note is the reason of a failure, or the note of a remark.
	Note string

	// Hash is the SHA-256 of the content as it was written. See [Entry.Sum].
	Hash Hash
}

// Place is where an entry stands. Entries are in the order of Transaction and Seq.
type Place struct {
	// Transaction is the number of the transaction that wrote the entry, which is not the
	// order of commits; in SQLite, which has one writer, it is Seq.
	Transaction int64

	// Seq is a number that only this entry has.
	Seq int64
}

// Compare returns -1, 0 or 1.
func (p Place) Compare(o Place) int {
	switch {
	case p == o:
		return 0
	case p.Transaction < o.Transaction || p.Transaction == o.Transaction && p.Seq < o.Seq:
		return -1
	default:
		return 1
	}
}

// Sum returns the SHA-256 of the content: of the text "sqsfifo ledger entry 1", and of
// the fields from At to Note in the order of the struct. A text or hash is preceded by
// its length, and a length, number or truth value (0 or 1) has eight bytes in
// big-endian order. The time is in microseconds since 1970.
func (e Entry) Sum() Hash {
	b := make([]byte, 0, 768)
	b = appendText(b, "sqsfifo ledger entry 1")
	b = appendInt(b, e.At.UnixMicro())
	b = appendText(b, string(e.Event), e.Key.Scope, e.Key.Operation, e.Key.Value)
	b = appendInt(b, e.Generation, e.Fence, e.Attempts)
	b = appendText(b, e.Status)
	b = appendBool(b, e.RunAgain)
	b = appendText(b, e.Fingerprint.Spec, string(e.Fingerprint.Sum[:]), string(e.Body[:]), string(e.Response[:]))
	b = appendText(b, e.Dataset.ID, e.Dataset.Version, e.Dataset.SourceURI, e.Dataset.ArtifactChecksum, e.Dataset.CARELabel)
	b = appendBool(b, e.Dataset.ReplaySafe)
	b = appendText(b, e.Note)
	return sha256.Sum256(b)
}

func appendText(b []byte, texts ...string) []byte {
	for _, s := range texts {
		b = binary.BigEndian.AppendUint64(b, uint64(len(s)))
		b = append(b, s...)
	}
	return b
}

func appendInt(b []byte, numbers ...int64) []byte {
	for _, n := range numbers {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	return b
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return appendInt(b, 1)
	}
	return appendInt(b, 0)
}
