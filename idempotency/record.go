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
	// Absent: there is no such record, or its only claim was released.
	Absent Status = iota

	// Running: a claim was granted and has no proof of its outcome yet.
	Running

	// Succeeded: the operation took effect; the record has its result.
	Succeeded

	// Failed: it is proven that the operation did not take effect. It may run again.
	Failed
)

// String returns the status as SQL stores write it: "absent", "in_progress",
// "succeeded" or "failed".
func (s Status) String() string {
	switch s {
	case Absent:
		return "absent"
	case Running:
		return "in_progress"
	case Succeeded:
		return "succeeded"
	case Failed:
		return "failed"
	default:
		return fmt.Sprintf("Status(%d)", uint8(s))
	}
}

// ParseStatus is the inverse of [Status.String].
func ParseStatus(s string) (Status, error) {
	for status := Absent; status <= Failed; status++ {
		if status.String() == s {
			return status, nil
		}
	}
	return Absent, &InvalidError{Field: "Status", Rule: fmt.Sprintf("%q, want absent, in_progress, succeeded or failed", s)}
}

// Limits of what a record holds, in bytes.
const (
	MaxBody     = 1 << 20 // of Claim.Body, that of an SQS message
	MaxGroup    = 512
	MaxResponse = 1 << 20
	MaxReason   = 1024
	MaxField    = 2048 // of each text of a Dataset, MessageID and SequenceNumber
)

// Result is what an operation returned, kept for its duplicates. The zero Result
// is a result without content.
type Result struct {
	// Response is returned byte for byte. At most [MaxResponse] bytes.
	Response []byte

	// MessageID and SequenceNumber are those of a sent message; UTF-8 without NUL.
	MessageID, SequenceNumber string
}

// Hash returns the SHA-256 of the three parts of the result, each preceded by its
// length as eight bytes in big-endian order.
func (r Result) Hash() [sha256.Size]byte {
	return sum(r.Response, []byte(r.MessageID), []byte(r.SequenceNumber))
}

// Check returns an [*InvalidError] that names the field that breaks its rule, or nil.
func (r Result) Check() error {
	if len(r.Response) > MaxResponse {
		return &InvalidError{Field: "Result.Response", Rule: fmt.Sprintf("%d bytes, want at most %d; store it elsewhere and its address here", len(r.Response), MaxResponse)}
	}
	if err := checkText("Result.MessageID", r.MessageID, MaxField); err != nil {
		return err
	}
	return checkText("Result.SequenceNumber", r.SequenceNumber, MaxField)
}

// Dataset names the pipeline run that a key stands for. The fields are UTF-8
// without NUL, at most [MaxField] bytes each, and may be empty.
type Dataset struct {
	ID, Version, SourceURI      string
	ArtifactChecksum, CARELabel string
	// ReplaySafe says that running again with the same inputs gives the same state.
	ReplaySafe bool
}

// Check returns an [*InvalidError] that names the field that breaks its rule, or nil.
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

// Record is what a store knows of a key. All times are UTC in whole microseconds,
// on the clock of the store.
type Record struct {
	Key Key

	// Generation counts from 1 and grows when an expired key is claimed again.
	Generation int64

	Fingerprint Fingerprint

	// Seal, Group and Body are what the operation was first carried out with in this
	// generation. They win over those of every later claim.
	Seal  Seal
	Group string
	Body  []byte

	Status Status

	// Token is that of the claimant, or zero when no claimant holds the key.
	Token Token

	// Fence is the number of the last grant. See [Ref].
	Fence int64

	// Attempts counts the grants of this generation.
	Attempts int64

	// LeaseUntil is when the claim may be taken over.
	LeaseUntil time.Time

	// DoubtSince is when the first attempt began that may have taken effect and has
	// no proof, or zero.
	DoubtSince time.Time

	// ResendUntil is until when running again is safe although the outcome of an
	// earlier attempt is unknown. Zero means never.
	ResendUntil time.Time

	// Result is set when Status is [Succeeded].
	Result Result

	// Reason is that of the last [Failure].
	Reason string

	// Created is when this generation was first claimed, or claimed again after a
	// failure. Expires is Created plus the TTL, or zero for a record that never
	// expires. Only succeeded and failed records expire.
	Created, Expires time.Time

	Dataset Dataset

	// Prior is the state before the last claim, which Release restores.
	Prior Prior

	// ReadAt is when the store read or wrote the record.
	ReadAt time.Time
}

// Prior is what a record was before its last new or reclaimed claim. Stores keep it;
// nobody else needs it.
type Prior struct {
	Status           Status
	Created, Expires time.Time // of a failed record
}

// Expired reports whether the record is forgotten at now: succeeded or failed, and
// not before Expires.
func (r Record) Expired(now time.Time) bool {
	return (r.Status == Succeeded || r.Status == Failed) && !r.Expires.IsZero() && !now.Before(r.Expires)
}

// Equal reports whether all fields but ReadAt are equal.
func (r Record) Equal(o Record) bool {
	return r.Key == o.Key && r.Generation == o.Generation && r.Fingerprint == o.Fingerprint &&
		r.Seal == o.Seal && r.Group == o.Group && bytes.Equal(r.Body, o.Body) &&
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
