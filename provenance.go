package sqsfifo

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"
)

// ProvenanceRecord is what became of one event, for a governance ledger. It holds
// no payload. Fields without a value are left out of the JSON form, but for the two
// booleans.
type ProvenanceRecord struct {
	// Time is when the outcome was known, in UTC.
	Time time.Time `json:"time"`

	Outcome ProvenanceOutcome `json:"outcome"`

	// ErrorType is the error.type of the event's span. It is set for outcomes other
	// than stored and duplicate.
	ErrorType string `json:"error_type,omitempty"`

	EventID      string `json:"event_id,omitempty"`
	DedupeKey    string `json:"dedupe_key,omitempty"`
	MessageGroup string `json:"message_group,omitempty"`

	// BodyHash is what SQS deduplicates by, see [BodyHash].
	BodyHash string `json:"body_hash,omitempty"`

	// MessageID and SequenceNumber are SQS's, of the original if it is a
	// duplicate.
	MessageID      string `json:"message_id,omitempty"`
	SequenceNumber string `json:"sequence_number,omitempty"`

	// Attempts is the number of requests that the event was in.
	Attempts int `json:"attempts,omitempty"`

	// DuplicateDetected is Receipt.Duplicate; ReplayTriggered, that this producer
	// had sent the event before, within the deduplication interval, that the store of
	// Config.Store knew it, or that the message has the [ReplayAttribute].
	DuplicateDetected bool `json:"duplicate_detected"`
	ReplayTriggered   bool `json:"replay_triggered"`

	// These are of the event's Dataset, where it has one: ID and version as they are in
	// its key.
	DatasetID        string `json:"dataset_id,omitempty"`
	Version          string `json:"version,omitempty"`
	IdempotencyKey   string `json:"idempotency_key,omitempty"`
	ArtifactChecksum string `json:"artifact_checksum,omitempty"`
	CARELabel        string `json:"care_label,omitempty"`
}

// ProvenanceOutcome says what became of an event.
type ProvenanceOutcome string

const (
	ProvenanceStored    ProvenanceOutcome = "stored"
	ProvenanceDuplicate ProvenanceOutcome = "duplicate"  // SQS had it already
	ProvenanceNotStored ProvenanceOutcome = "not_stored" // surely
	ProvenanceInDoubt   ProvenanceOutcome = "in_doubt"   // an InDoubtError: it may be stored
	ProvenanceAltered   ProvenanceOutcome = "altered"    // an AlteredError: something else is stored
)

// ProvenanceSink takes the records of a producer, one at a time and in the order
// in which the outcomes were reported. It may be slow: it is called apart from the
// sends and never delays one. A record for which it returns an error, panics or
// ends its goroutine is lost and counted.
type ProvenanceSink func(ProvenanceRecord) error

// ProvenanceWriter returns a sink that writes each record as one line of JSON
// with one call of w.Write. One sink may serve several producers. After a write that
// failed in the middle of a line the next record begins a new one.
func ProvenanceWriter(w io.Writer) ProvenanceSink {
	var mu sync.Mutex
	torn := false
	return func(r ProvenanceRecord) error {
		line, err := json.Marshal(r)
		if err != nil {
			return fmt.Errorf("sqsfifo: encode a provenance record: %w", err)
		}
		mu.Lock()
		defer mu.Unlock()
		if torn {
			line = append([]byte{'\n'}, line...)
		}
		n, err := w.Write(append(line, '\n'))
		torn = err != nil && (torn || n > 0)
		return err
	}
}
