package ledger

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// Hash is a SHA-256 digest. The zero Hash means no hash.
type Hash [sha256.Size]byte

// String returns h in hexadecimal.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText returns h in hexadecimal, or empty text for the zero Hash.
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

// Event is the kind of an [Entry].
type Event string

// A store adds an entry with one of these events for each change of a key's record, in
// the same transaction.
const (
	EventClaimed   Event = "claimed"
	EventRenewed   Event = "renewed"
	EventReclaimed Event = "reclaimed"
	EventCompleted Event = "completed"
	EventFailed    Event = "failed"   // the claimant proved no effect; see Entry.Status
	EventInDoubt   Event = "in_doubt" // it is unknown whether the operation took effect
	EventReleased  Event = "released"
	EventPurged    Event = "purged" // the expired key's row was deleted
)

// Callers of a store may add entries with these events: see [Annotation]. The store itself
// adds none, not even for claims that are duplicates or conflicts: such claims change no
// record and are unlimited in number.
const (
	EventDuplicateDetected Event = "duplicate_detected"
	EventConflictDetected  Event = "conflict_detected"
	EventReplayTriggered   Event = "replay_triggered"
	EventCAREEnforced      Event = "care_enforced" // CARE access rules were applied
	EventMasked            Event = "masked"        // data was partly masked or generalised
)

// Annotation is an event of a key, added to the ledger by a caller of the store.
type Annotation struct {
	Event Event // one of EventDuplicateDetected, EventConflictDetected, EventReplayTriggered, EventCAREEnforced, EventMasked
	Key   idempotency.Key

	// If the annotation is about one claim of the key, Fence is the fence of this claim.
	// Otherwise Fence is 0.
	Fence int64

	Dataset idempotency.Dataset

	// Note names a rule, run or person: UTF-8 without NUL, at most
	// [idempotency.MaxReason] bytes. Leave out payload and secrets: ledger entries never
	// change.
	Note string
}

// Check returns nil, or an [*idempotency.InvalidError] with the name of the invalid
// field.
func (r Annotation) Check() error {
	switch r.Event {
	case EventDuplicateDetected, EventConflictDetected, EventReplayTriggered, EventCAREEnforced, EventMasked:
	default:
		return &idempotency.InvalidError{Field: "Annotation.Event", Rule: fmt.Sprintf("%q, want an event of callers: duplicate_detected, conflict_detected, replay_triggered, care_enforced or masked", string(r.Event))}
	}
	if err := r.Key.Check(); err != nil {
		return err
	}
	if r.Fence < 0 {
		return &idempotency.InvalidError{Field: "Annotation.Fence", Rule: fmt.Sprintf("%d, want that of a claim, or 0 for none", r.Fence)}
	}
	if err := r.Dataset.Check(); err != nil {
		return err
	}
	var invalid *idempotency.InvalidError
	// A note has the same limits as the reason of a failure: use the check of failures.
	if errors.As(idempotency.Failure{Reason: r.Note}.Check(), &invalid) {
		return &idempotency.InvalidError{Field: "Annotation.Note", Rule: invalid.Rule}
	}
	return nil
}

// Entry returns the ledger entry for the annotation. The parameter `at` becomes Entry.At.
func (r Annotation) Entry(at time.Time) Entry {
	return Entry{At: at, Event: r.Event, Key: r.Key, Fence: r.Fence, Dataset: r.Dataset, Note: r.Note}
}

// Entry is one event of a key. Its Hash is the SHA-256 of the fields from At to Note. The
// Position is protected by the [Seal], which covers the Position and Hash of each entry.
type Entry struct {
	Position

	// At is the time of the event in whole microseconds, by the store's clock.
	At    time.Time
	Event Event
	Key   idempotency.Key

	Generation, Fence, Attempts int64

	// Status is the record's status after the event, in the text form of package
	// sqlstore. It is "" for a [Annotation], which changes no record. The text "released"
	// means that the claim of a new or expired key was taken back: the key has no record
	// now.
	Status string

	// Resend is true for a claim that permitted a second run of an operation with an
	// unknown outcome: see [idempotency.Claim].
	Resend bool

	// Fingerprint is the record's fingerprint of the request. Body is the hash of the
	// record's body and message group. Response is the hash of its result.
	Fingerprint    idempotency.Fingerprint
	Body, Response Hash

	Dataset idempotency.Dataset

	// Note is the note of a [Annotation] or the reason of a failure.
	Note string

	// Hash is the recorded SHA-256 of the content; see [Entry.Sum].
	Hash Hash
}

// Position is the position of an entry. Entries are ordered by Transaction, then Seq.
type Position struct {
	// Transaction is the number of the database transaction that wrote the entry. A later
	// commit may have a smaller number. On SQLite, Transaction equals Seq.
	Transaction int64

	// Seq is unique in the ledger.
	Seq int64
}

// Compare returns -1, 0 or 1, like [cmp.Compare].
func (p Position) Compare(o Position) int {
	return cmp.Or(cmp.Compare(p.Transaction, o.Transaction), cmp.Compare(p.Seq, o.Seq))
}

// Sum returns the SHA-256 of the content: the text "sqsfifo ledger entry 1", then the
// fields from At to Note in struct order.
//
// Each text and hash follows its length. Lengths, numbers, booleans (0 or 1) and times
// (microseconds since 1970) take eight big-endian bytes.
func (e Entry) Sum() Hash {
	b := make([]byte, 0, 768)
	b = appendText(b, "sqsfifo ledger entry 1")
	b = appendInt(b, e.At.UnixMicro())
	b = appendText(b, string(e.Event), e.Key.Scope, e.Key.Operation, e.Key.Value)
	b = appendInt(b, e.Generation, e.Fence, e.Attempts)
	b = appendText(b, e.Status)
	b = appendBool(b, e.Resend)
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
