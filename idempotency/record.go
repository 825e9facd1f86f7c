package idempotency

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"time"
)

// Status is the state of a [Record].
type Status uint8

const (
	// StatusAbsent: the store has no record, or only a released claim of the key.
	StatusAbsent Status = iota

	// StatusRunning: a claim was granted, and [Store.Finish] has not yet recorded whether the
	// operation took effect. The attempt may be over.
	StatusRunning

	// StatusSucceeded: the operation took effect; the record has the result.
	StatusSucceeded

	// StatusFailed: the operation provably had no effect. It may run again.
	StatusFailed
)

// String returns the status as written by SQL stores: "absent", "in_progress",
// "succeeded" or "failed".
func (s Status) String() string {
	switch s {
	case StatusAbsent:
		return "absent"
	case StatusRunning:
		return "in_progress"
	case StatusSucceeded:
		return "succeeded"
	case StatusFailed:
		return "failed"
	default:
		return fmt.Sprintf("Status(%d)", uint8(s))
	}
}

// MarshalText returns the text of [Status.String].
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a status from a store's record: a text of [Status.String]. An empty
// text, and "released", are StatusAbsent.
func (s *Status) UnmarshalText(text []byte) error {
	switch string(text) {
	case "", "released", "absent":
		*s = StatusAbsent
	case "in_progress":
		*s = StatusRunning
	case "succeeded":
		*s = StatusSucceeded
	case "failed":
		*s = StatusFailed
	default:
		return &InvalidError{Field: "Status", Found: fmt.Sprintf("%q", text), Rule: "want absent, in_progress, succeeded or failed"}
	}
	return nil
}

// Size limits of record fields, in bytes.
const (
	MaxBody     = 1 << 20 // limit of Claim.Body; SQS limits messages to the same size
	MaxGroup    = 512
	MaxResponse = 1 << 20
	MaxReason   = 1024
	MaxField    = 2048 // limit of each text of a Dataset, of MessageID and of SequenceNumber
)

// Result is the result of an operation, stored for duplicates of the operation. The zero
// Result has no content.
type Result struct {
	// Response is returned byte for byte and holds at most [MaxResponse] bytes.
	Response []byte

	// MessageID and SequenceNumber identify a sent message; UTF-8 without NUL.
	MessageID, SequenceNumber string
}

// Hash returns the SHA-256 of the three fields, each preceded by its length as eight
// bytes in big-endian order.
func (r Result) Hash() [sha256.Size]byte {
	return sum(r.Response, []byte(r.MessageID), []byte(r.SequenceNumber))
}

// Check returns nil, or an [*InvalidError] naming the invalid field.
func (r Result) Check() error {
	if len(r.Response) > MaxResponse {
		return &InvalidError{Field: "Result.Response", Rule: fmt.Sprintf("%d bytes, want at most %d; store it elsewhere and its address here", len(r.Response), MaxResponse)}
	}
	if err := checkText("Result.MessageID", r.MessageID, MaxField); err != nil {
		return err
	}
	return checkText("Result.SequenceNumber", r.SequenceNumber, MaxField)
}

// Dataset describes the pipeline run that a key stands for. The fields are UTF-8 without
// NUL, at most [MaxField] bytes each, and may be empty.
type Dataset struct {
	ID, Version, SourceURI      string
	ArtifactChecksum, CARELabel string
	// ReplaySafe: a second run with the same inputs gives the same state.
	ReplaySafe bool
}

// Check returns nil, or an [*InvalidError] naming the invalid field.
func (d Dataset) Check() error {
	for _, f := range []struct{ name, text string }{
		{"Dataset.ID", d.ID},
		{"Dataset.Version", d.Version},
		{"Dataset.SourceURI", d.SourceURI},
		{"Dataset.ArtifactChecksum", d.ArtifactChecksum},
		{"Dataset.CARELabel", d.CARELabel},
	} {
		if err := checkText(f.name, f.text, MaxField); err != nil {
			return err
		}
	}
	return nil
}

// Record is the state of a key in a store. All times are UTC in whole microseconds, on
// the store's clock.
type Record struct {
	Key Key

	// Generation counts from 1 and grows when an expired key is claimed again.
	Generation int64

	Fingerprint Fingerprint

	// ExactHash, Group and Body come from the last claim granted as [DecisionNew]. Later claims
	// granted as [DecisionRenewed] or [DecisionReclaimed] do not change them.
	ExactHash ExactHash
	Group     string
	Body      []byte

	Status Status

	// Token is the token of the claim that has not ended, or zero if the last claim has
	// ended.
	Token Token

	// Fence is the number of the last grant. See [Ref].
	Fence int64

	// Attempts counts the granted claims of the key. The count begins again at 1 after
	// the record has expired or was released to [StatusAbsent].
	Attempts int64

	// LeaseUntil is the end of the lease. From then on, another claimant may take the
	// claim over.
	LeaseUntil time.Time

	// DoubtSince is the start of the first attempt with an unknown outcome, or zero.
	DoubtSince time.Time

	// ResendUntil is the end of the time in which a further attempt is safe, even if an
	// earlier attempt took effect: see [Terms.ResendFor]. If it is zero, a further attempt
	// is never safe.
	ResendUntil time.Time

	// Result is set if Status is [StatusSucceeded].
	Result Result

	// Reason is the reason of the last [Failure].
	Reason string

	// Created is the time of the last [DecisionNew] claim that was not released. Expires is
	// Created plus the TTL, or zero for a permanent record. Only succeeded and failed
	// records expire.
	Created, Expires time.Time

	Dataset Dataset

	// Prior is for stores: the values that the record gets back if the claim is released.
	Prior PriorState

	// ReadAt is the time of the store's read or write of the record.
	ReadAt time.Time
}

// PriorState holds values of a record from before the last claim granted as [DecisionNew] or
// [DecisionReclaimed]. If this claim ends with [Released], the record gets the values back.
type PriorState struct {
	Status           Status
	Created, Expires time.Time // zero unless Status is StatusFailed
}

// Expired reports whether the record has ended at the time `now`: the operation succeeded
// or failed, and Expires is set and not after now. A claim of the key is then [DecisionNew].
func (r Record) Expired(now time.Time) bool {
	return (r.Status == StatusSucceeded || r.Status == StatusFailed) && !r.Expires.IsZero() && !now.Before(r.Expires)
}

// Equal reports whether all fields except ReadAt are equal.
func (r Record) Equal(o Record) bool {
	return r.Key == o.Key && r.Generation == o.Generation && r.Fingerprint == o.Fingerprint &&
		r.ExactHash == o.ExactHash && r.Group == o.Group && bytes.Equal(r.Body, o.Body) &&
		r.Status == o.Status && r.Token == o.Token && r.Fence == o.Fence && r.Attempts == o.Attempts &&
		r.LeaseUntil.Equal(o.LeaseUntil) && r.DoubtSince.Equal(o.DoubtSince) && r.ResendUntil.Equal(o.ResendUntil) &&
		r.Result.Hash() == o.Result.Hash() && r.Reason == o.Reason &&
		r.Created.Equal(o.Created) && r.Expires.Equal(o.Expires) && r.Dataset == o.Dataset &&
		r.Prior.Status == o.Prior.Status && r.Prior.Created.Equal(o.Prior.Created) && r.Prior.Expires.Equal(o.Prior.Expires)
}

// clone returns a copy that shares no memory with r.
func (r Record) clone() Record {
	r.Body = bytes.Clone(r.Body)
	r.Result.Response = bytes.Clone(r.Result.Response)
	return r
}
