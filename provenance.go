package sqsfifo

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"
)

// ProvenanceRecord is the outcome of one event, for a governance ledger. A record
// contains no payload. The JSON form omits empty fields, except the two booleans.
type ProvenanceRecord struct {
	// Time is the time of the outcome, in UTC.
	Time time.Time `json:"time"`

	Outcome ProvenanceOutcome `json:"outcome"`

	// ErrorType is the value of error.type in the event's span. It is empty for the
	// outcomes stored and duplicate.
	ErrorType string `json:"error_type,omitempty"`

	EventID      string `json:"event_id,omitempty"`
	EventSource  string `json:"event_source,omitempty"`
	DedupeKey    string `json:"dedupe_key,omitempty"`
	MessageGroup string `json:"message_group,omitempty"`

	// BodyHash is the SHA-256 of the body, which is the deduplication ID. See the function
	// [BodyHash].
	BodyHash string `json:"body_hash,omitempty"`

	// MessageID and SequenceNumber are from SQS's answer. For a duplicate they are the
	// values of the original message.
	MessageID      string `json:"message_id,omitempty"`
	SequenceNumber string `json:"sequence_number,omitempty"`

	// Attempts is the number of requests with the event.
	Attempts int `json:"attempts,omitempty"`

	// DuplicateDetected is Receipt.Duplicate. ReplayTriggered is true in each of these
	// cases:
	//
	//   - this producer sent the event earlier within the deduplication interval
	//   - Config.Store already knew the event
	//   - the message has the [ReplayAttribute]
	DuplicateDetected bool `json:"duplicate_detected"`
	ReplayTriggered   bool `json:"replay_triggered"`

	// The following fields describe the event's Dataset. DatasetID and Version have the
	// normalised form, which is also the form in the idempotency key.
	DatasetID        string `json:"dataset_id,omitempty"`
	Version          string `json:"version,omitempty"`
	IdempotencyKey   string `json:"idempotency_key,omitempty"`
	ArtifactChecksum string `json:"artifact_checksum,omitempty"`
	CARELabel        string `json:"care_label,omitempty"`
}

// ProvenanceOutcome is the outcome of an event.
type ProvenanceOutcome string

const (
	ProvenanceStored    ProvenanceOutcome = "stored"
	ProvenanceDuplicate ProvenanceOutcome = "duplicate"  // SQS already had the event
	ProvenanceNotStored ProvenanceOutcome = "not_stored" // proven
	ProvenanceInDoubt   ProvenanceOutcome = "in_doubt"   // an InDoubtError: the event may be stored
	ProvenanceAltered   ProvenanceOutcome = "altered"    // an AlteredError: SQS stored another message
)

// ProvenanceSink receives the records of a producer one at a time, in the order of the
// reported outcomes. The calls run on a separate goroutine, so a slow sink delays no send.
//
// If the sink returns an error, panics or ends its goroutine, the record is lost and
// counted.
type ProvenanceSink func(ProvenanceRecord) error

// ProvenanceWriter returns a sink that writes each record as one line of JSON with one call
// of w.Write. Several producers may share one sink.
//
// If a write fails in the middle of a line, the next record starts on a new line.
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

// provenanceRecord returns the record of an outcome. The message is nil if Identify failed.
// The argument `bodyHash` may be empty.
func provenanceRecord(now time.Time, m *Message, bodyHash string, receipt Receipt, err error, attempts int, replay bool) ProvenanceRecord {
	r := ProvenanceRecord{
		Time:              now.UTC(),
		Outcome:           ProvenanceOutcome(outcomeOf(receipt, err).String()),
		MessageID:         receipt.MessageID,
		SequenceNumber:    receipt.SequenceNumber,
		Attempts:          attempts,
		DuplicateDetected: receipt.Duplicate,
		ReplayTriggered:   replay,
		ErrorType:         errorType(err),
	}
	if m == nil {
		return r
	}
	r.DedupeKey, r.MessageGroup = m.DedupeKey, m.Group
	if m.Body != "" {
		r.EventID, r.EventSource = m.EventID.String(), m.source()
		if r.BodyHash = bodyHash; bodyHash == "" {
			r.BodyHash = BodyHash(m.Body)
		}
	}
	if d := m.Dataset; d != nil {
		r.DatasetID, r.Version, r.IdempotencyKey = d.recorded()
		r.ArtifactChecksum, r.CARELabel = d.ArtifactChecksum, d.CARELabel
	}
	return r
}
