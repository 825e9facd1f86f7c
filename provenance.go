package sqsfifo

import (
	"context"
	"encoding/json"
	"errors"
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

	// ErrorType is what the error.type of the event's span is: of outcomes other
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
	// had sent the event before, within the deduplication interval.
	DuplicateDetected bool `json:"duplicate_detected"`
	ReplayTriggered   bool `json:"replay_triggered"`

	// These are of the event's Dataset, where it has one.
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
	ProvenanceDuplicate ProvenanceOutcome = "duplicate" // SQS had it already
	ProvenanceRefused   ProvenanceOutcome = "refused"   // surely not stored
	ProvenanceInDoubt   ProvenanceOutcome = "in_doubt"  // a SendError: it may be stored
	ProvenanceAltered   ProvenanceOutcome = "altered"   // a DigestError: something else is stored
)

// ProvenanceSink takes the records of a producer, one at a time and in the order
// in which the outcomes were known. It may be slow: it is called apart from the
// sends, and never holds one up. A record for which it returns an error, or
// panics, is lost and counted.
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

// ProvenanceError is returned by [Producer.Close] when records of events are
// missing from the sink. The events themselves have their outcomes.
type ProvenanceError struct {
	// Lost is how many are missing: the sink failed, or was so slow that 10,000 were
	// waiting behind those that it was given.
	Lost int64

	// Err is the first error of the sink, nil if it was only slow.
	Err error
}

// Error says how many records are missing.
func (e *ProvenanceError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("sqsfifo: %d provenance records lost: the sink is too slow", e.Lost)
	}
	return fmt.Sprintf("sqsfifo: %d provenance records lost: %v", e.Lost, e.Err)
}

// Unwrap returns Err.
func (e *ProvenanceError) Unwrap() error { return e.Err }

// mostRecords may wait for a sink.
const mostRecords = 10_000

// ledger takes records to a sink. Its goroutine exists only while there are some
// to write; close waits for it. A nil ledger writes nothing.
type ledger struct {
	sink ProvenanceSink
	told func() // of each loss

	mu      sync.Mutex
	waiting []ProvenanceRecord
	writing bool
	idle    chan struct{} // closed when writing ends; made by close
	lost    int64
	err     error
}

func newLedger(sink ProvenanceSink, told func()) *ledger {
	if sink == nil {
		return nil
	}
	return &ledger{sink: sink, told: told}
}

// record never blocks.
func (l *ledger) record(e ended) {
	if l == nil {
		return
	}
	r := e.record(time.Now())
	l.mu.Lock()
	full := len(l.waiting) >= mostRecords
	if full {
		l.lost++
	} else {
		l.waiting = append(l.waiting, r)
		if !l.writing {
			l.writing = true
			go l.write()
		}
	}
	l.mu.Unlock()
	if full {
		l.told()
	}
}

func (l *ledger) write() {
	for {
		l.mu.Lock()
		records := l.waiting
		l.waiting = nil
		if len(records) == 0 {
			l.writing = false
			if l.idle != nil {
				close(l.idle)
				l.idle = nil
			}
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
		for _, r := range records {
			if err := l.hand(r); err != nil {
				l.mu.Lock()
				l.lost++
				if l.err == nil {
					l.err = err
				}
				l.mu.Unlock()
				l.told()
			}
		}
	}
}

// hand gives one record to the sink. A sink that panics must not take the
// process, and the events in it, along.
func (l *ledger) hand(r ProvenanceRecord) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the sink panicked: %v", v)
		}
	}()
	return l.sink(r)
}

// close waits for what is to be written and tells of what is missing.
func (l *ledger) close(ctx context.Context) error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	if l.writing {
		if l.idle == nil {
			l.idle = make(chan struct{})
		}
		idle := l.idle
		l.mu.Unlock()
		select {
		case <-idle:
		case <-ctx.Done():
			return fmt.Errorf("sqsfifo: close: provenance records still to be written: %w", context.Cause(ctx))
		}
		l.mu.Lock()
	}
	defer l.mu.Unlock()
	if l.lost > 0 {
		return &ProvenanceError{Lost: l.lost, Err: l.err}
	}
	return nil
}

// bodyHash is that of an event whose body may have broken a rule.
func (e ended) bodyHash() string {
	if e.p.refusal == nil {
		return e.p.sent.bodyHash()
	}
	return BodyHash(e.p.msg.Body)
}

// record is the outcome as the ledger has it.
func (e ended) record(now time.Time) ProvenanceRecord {
	r := ProvenanceRecord{
		Time:              now.UTC(),
		Outcome:           ProvenanceStored,
		MessageID:         e.receipt.MessageID,
		SequenceNumber:    e.receipt.SequenceNumber,
		Attempts:          e.attempts,
		DuplicateDetected: e.receipt.Duplicate,
		ReplayTriggered:   e.replay,
	}
	if e.receipt.Duplicate {
		r.Outcome = ProvenanceDuplicate
	}
	if e.err != nil {
		r.Outcome, r.ErrorType = ProvenanceRefused, errorType(e.err)
		var (
			doubt   *SendError
			altered *DigestError
		)
		switch {
		case errors.As(e.err, &doubt):
			r.Outcome = ProvenanceInDoubt
		case errors.As(e.err, &altered):
			r.Outcome = ProvenanceAltered
		}
	}
	m := e.p.msg
	if m == nil {
		return r
	}
	r.DedupeKey, r.MessageGroup = m.DedupeKey, m.Group
	if m.Body != "" {
		r.EventID, r.BodyHash = m.EventID.String(), e.bodyHash()
	}
	if d := m.Dataset; d != nil {
		r.DatasetID, r.Version, r.ArtifactChecksum, r.CARELabel = d.ID, d.Version, d.ArtifactChecksum, d.CARELabel
		if key, err := d.IdempotencyKey(); err == nil {
			r.IdempotencyKey = key
		}
	}
	return r
}
