package sqlstore

import (
	"database/sql"
	"errors"
	"regexp"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// recordColumns lists a record's columns except key_id, in scanRecord and recordArgs order.
const recordColumns = `scope, operation_type, key, generation, fingerprint_spec, request_hash, body_hash, message_group, body, response, response_hash, message_id, sequence_number, status, decision, resend, token, fence, attempts, lease_until, doubt_since, resend_until, failure, created_at, expires_at, dataset_id, version, source_uri, artifact_checksum, care_label, replay_safe, prior_status, prior_created_at, prior_expires_at`

var columnName = regexp.MustCompile(`\w+`)

// statusText returns a status as stored in the column `status`. The row of an absent record
// has the text "released".
func statusText(s idempotency.Status) string {
	if s == idempotency.StatusAbsent {
		return "released"
	}
	return s.String()
}

// row is a row of table idempotency_keys.
type row struct {
	record   idempotency.Record
	decision idempotency.Decision // New, Renewed or Reclaimed: how the last claim was granted
}

type scanner interface{ Scan(dest ...any) error }

// scanRecord reads one row: first a column for each pointer in the parameter `leading`, then
// the columns of a record.
func scanRecord(s scanner, leading ...any) (row, error) {
	var (
		r                                            idempotency.Record
		scope, key, hash, seal, group                []byte
		responseHash, token                          []byte
		status, decision, prior                      string
		lease, created, resend, replaySafe           int64
		doubt, resendUntil, expires, priorC, priorEx sql.NullInt64
	)
	err := s.Scan(append(leading,
		&scope, &r.Key.Operation, &key, &r.Generation, &r.Fingerprint.Spec, &hash, &seal, &group, &r.Body,
		&r.Result.Response, &responseHash, &r.Result.MessageID, &r.Result.SequenceNumber, &status, &decision, &resend, &token, &r.Fence, &r.Attempts,
		&lease, &doubt, &resendUntil, &r.Reason, &created, &expires,
		&r.Dataset.ID, &r.Dataset.Version, &r.Dataset.SourceURI, &r.Dataset.ArtifactChecksum, &r.Dataset.CARELabel, &replaySafe,
		&prior, &priorC, &priorEx)...)
	if err != nil {
		return row{}, err
	}
	r.Key.Scope, r.Key.Value, r.Group = string(scope), string(key), string(group)
	copy(r.Fingerprint.Sum[:], hash)
	copy(r.ExactHash[:], seal)
	copy(r.Token[:], token)
	if err := errors.Join(r.Status.UnmarshalText([]byte(status)), r.Prior.Status.UnmarshalText([]byte(prior))); err != nil {
		return row{}, err
	}
	r.LeaseUntil, r.Created = fromMicros(lease), fromMicros(created)
	r.DoubtSince, r.ResendUntil, r.Expires = fromNull(doubt), fromNull(resendUntil), fromNull(expires)
	r.Prior.Created, r.Prior.Expires = fromNull(priorC), fromNull(priorEx)
	r.Dataset.ReplaySafe = replaySafe != 0
	if len(r.Result.Response) == 0 {
		r.Result.Response = nil
	}
	return row{record: r, decision: parseDecision(decision)}, nil
}

// recordArgs returns the values for recordColumns, in the same order.
func recordArgs(r idempotency.Record, d idempotency.Decision, resend bool) []any {
	var responseHash []byte
	if r.Status == idempotency.StatusSucceeded {
		h := r.Result.Hash()
		responseHash = h[:]
	}
	return []any{
		[]byte(r.Key.Scope), r.Key.Operation, []byte(r.Key.Value), r.Generation, r.Fingerprint.Spec, r.Fingerprint.Sum[:], nonZero(r.ExactHash[:]), []byte(r.Group), notNil(r.Body),
		notNil(r.Result.Response), responseHash, r.Result.MessageID, r.Result.SequenceNumber, statusText(r.Status), d.String(), toInt(resend), nonZero(r.Token[:]), r.Fence, r.Attempts,
		r.LeaseUntil.UnixMicro(), toNull(r.DoubtSince), toNull(r.ResendUntil), r.Reason, r.Created.UnixMicro(), toNull(r.Expires),
		r.Dataset.ID, r.Dataset.Version, r.Dataset.SourceURI, r.Dataset.ArtifactChecksum, r.Dataset.CARELabel, toInt(r.Dataset.ReplaySafe),
		r.Prior.Status.String(), toNull(r.Prior.Created), toNull(r.Prior.Expires),
	}
}

// parseDecision returns the granting decision for its text, and DecisionNone for any
// other text.
func parseDecision(s string) idempotency.Decision {
	for _, d := range []idempotency.Decision{idempotency.DecisionNew, idempotency.DecisionRenewed, idempotency.DecisionReclaimed} {
		if d.String() == s {
			return d
		}
	}
	return idempotency.DecisionNone
}

func fromMicros(us int64) time.Time { return time.UnixMicro(us).UTC() }

func fromNull(us sql.NullInt64) time.Time {
	if !us.Valid {
		return time.Time{}
	}
	return fromMicros(us.Int64)
}

func toNull(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}

func toInt(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// nonZero returns b, or nil (NULL) if all bytes are zero.
func nonZero(b []byte) []byte {
	for _, c := range b {
		if c != 0 {
			return b
		}
	}
	return nil
}

// notNil returns b, or empty bytes instead of nil (NULL).
func notNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
