package sqlstore

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/ledger"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/sqldb"
)

// summaryColumns lists the columns that a ledger entry copies from the key's record, in
// the order of scanSummary.
const summaryColumns = `scope, operation_type, key, generation, fence, attempts, status, fingerprint_spec, request_hash, body_hash, response_hash, dataset_id, version, source_uri, artifact_checksum, care_label, replay_safe`

// entryColumns lists the columns of table idempotency_ledger in the order of entryArgs,
// except the columns epoch, xid and seq, which give the row's position.
const entryColumns = `recorded_at, event, ` + summaryColumns + `, resend, note, hash`

// entryOf returns a ledger entry with the content of a record. The caller sets
// Entry.Event.
func entryOf(r idempotency.Record) ledger.Entry {
	e := ledger.Entry{
		At: r.ReadAt, Key: r.Key, Generation: r.Generation, Fence: r.Fence, Attempts: r.Attempts, Status: statusText(r.Status),
		Fingerprint: r.Fingerprint, Body: ledger.Hash(r.ExactHash), Dataset: r.Dataset,
	}
	if r.Status == idempotency.StatusSucceeded {
		e.Response = r.Result.Hash()
	}
	return e
}

func entryOfClaim(c claimOf, made claimed) ledger.Entry {
	e := entryOf(made.record)
	e.Resend = c.Resend
	switch made.decision {
	case idempotency.DecisionRenewed:
		e.Event = ledger.EventRenewed
	case idempotency.DecisionReclaimed:
		e.Event = ledger.EventReclaimed
	default:
		e.Event = ledger.EventClaimed
	}
	return e
}

// entryOfEnding returns the ledger entry e with the fields Event and Note of the ending t
// (a call of Finish or Extend). For Extend it returns the zero Entry, because the ledger
// does not record extensions of leases.
func entryOfEnding(t idempotency.Ending, e ledger.Entry) ledger.Entry {
	if _, ok := t.Lease(); ok {
		return ledger.Entry{}
	}
	failure, failed := t.Failure()
	e.Note = failure.Reason
	switch _, completed := t.Result(); {
	case completed:
		e.Event = ledger.EventCompleted
	case !failed:
		e.Event = ledger.EventReleased
	case failure.Proof == idempotency.ProofNone:
		e.Event = ledger.EventInDoubt
	default:
		e.Event = ledger.EventFailed
	}
	return e
}

// scanSummary reads one row: first a column for each pointer in the parameter `leading`, then
// the time of a ledger entry and the columns listed in summaryColumns.
func scanSummary(s scanner, leading ...any) (ledger.Entry, error) {
	var e ledger.Entry
	var at, replaySafe int64
	var scope, key, request, body, response []byte
	if err := s.Scan(append(leading, &at, &scope, &e.Key.Operation, &key, &e.Generation, &e.Fence, &e.Attempts, &e.Status, &e.Fingerprint.Spec, &request, &body, &response,
		&e.Dataset.ID, &e.Dataset.Version, &e.Dataset.SourceURI, &e.Dataset.ArtifactChecksum, &e.Dataset.CARELabel, &replaySafe)...); err != nil {
		return ledger.Entry{}, err
	}
	e.At, e.Key.Scope, e.Key.Value, e.Dataset.ReplaySafe = fromMicros(at), string(scope), string(key), replaySafe != 0
	copy(e.Fingerprint.Sum[:], request)
	copy(e.Body[:], body)
	copy(e.Response[:], response)
	return e, nil
}

// returnedEntries executes the statement `query` and makes a ledger entry from each
// returned row. A row has the time of the change and the columns of summaryColumns. The
// function `finishEntry` sets Entry.Event, and may set or change other fields of the entry.
func returnedEntries(ctx context.Context, tx writer, finishEntry func(*ledger.Entry), query string, args ...any) (entries []ledger.Entry, err error) {
	err = sqldb.Each(ctx, tx, func(rows *sql.Rows) error {
		entry, err := scanSummary(rows)
		finishEntry(&entry)
		entries = append(entries, entry)
		return err
	}, query, args...)
	return entries, err
}

// entryArgs returns the values of entryColumns for e.
func entryArgs(e ledger.Entry) []any {
	return []any{
		e.At.UnixMicro(), string(e.Event),
		[]byte(e.Key.Scope), e.Key.Operation, []byte(e.Key.Value), e.Generation, e.Fence, e.Attempts, e.Status,
		e.Fingerprint.Spec, nonZero(e.Fingerprint.Sum[:]), nonZero(e.Body[:]), nonZero(e.Response[:]),
		e.Dataset.ID, e.Dataset.Version, e.Dataset.SourceURI, e.Dataset.ArtifactChecksum, e.Dataset.CARELabel, toInt(e.Dataset.ReplaySafe),
		toInt(e.Resend), e.Note, e.Hash[:],
	}
}

// position is the position of a row in the ledger. Rows are ordered by epoch, and in an
// epoch by transaction number and row number (ledger.Position). A new epoch begins after a
// restore to another server, or when the server's transaction numbers went back.
type position struct {
	epoch int64
	ledger.Position
}

// ledgerRow is a row of the ledger table.
type ledgerRow struct {
	position
	entry ledger.Entry
	rule  string // empty for a valid entry; otherwise the fault, such as "hash has 31 bytes"
}

// scanEntry reads the columns of an entry. If a value is impossible in an entry, for
// example a hash of the wrong length, scanEntry describes the value in ledgerRow.rule and
// returns no error.
func scanEntry(s scanner) (ledgerRow, error) {
	var r ledgerRow
	e := &r.entry
	var at, replaySafe, resend int64
	var event string
	var scope, key, request, body, response, hash []byte
	if err := s.Scan(&r.epoch, &r.Transaction, &r.Seq, &at, &event, &scope, &e.Key.Operation, &key, &e.Generation, &e.Fence, &e.Attempts, &e.Status, &e.Fingerprint.Spec, &request, &body, &response,
		&e.Dataset.ID, &e.Dataset.Version, &e.Dataset.SourceURI, &e.Dataset.ArtifactChecksum, &e.Dataset.CARELabel, &replaySafe, &resend, &e.Note, &hash); err != nil {
		return r, err
	}
	e.Position, e.At, e.Event, e.Key.Scope, e.Key.Value = r.Position, fromMicros(at), ledger.Event(event), string(scope), string(key)
	for _, h := range []struct {
		name string
		to   *[32]byte
		from []byte
	}{{"request_hash", &e.Fingerprint.Sum, request}, {"body_hash", (*[32]byte)(&e.Body), body}, {"response_hash", (*[32]byte)(&e.Response), response}, {"hash", (*[32]byte)(&e.Hash), hash}} {
		if rule := readHash(h.to, h.from); rule != "" {
			r.rule = h.name + " " + rule
		}
	}
	for _, b := range []struct {
		name string
		to   *bool
		from int64
	}{{"replay_safe", &e.Dataset.ReplaySafe, replaySafe}, {"resend", &e.Resend, resend}} {
		if *b.to = b.from == 1; toInt(*b.to) != b.from {
			r.rule = fmt.Sprintf("%s is %d, want 0 or 1", b.name, b.from)
		}
	}
	return r, nil
}

// readHash reads a hash. NULL represents the zero hash.
func readHash(to *[32]byte, from []byte) (rule string) {
	switch {
	case from == nil:
		return ""
	case len(from) != len(to) || nonZero(from) == nil:
		return fmt.Sprintf("has %d bytes, want 32 that are not all zero, or NULL", len(from))
	}
	copy(to[:], from)
	return ""
}

// sealColumns lists seal columns in scanSeal and sealArgs order.
const sealColumns = `n, epoch, fence, end_transaction, end_seq, sealed_at, leaves, previous, hash`

// scanSeal reads a seal. The result `rule` describes the fault if a value is impossible in
// a seal, for example a hash of the wrong length, and is otherwise empty. scanSeal does not
// recompute the hash.
func scanSeal(s scanner) (seal ledger.Seal, rule string, err error) {
	var at int64
	var leaves, previous, hash []byte
	if err := s.Scan(&seal.N, &seal.Epoch, &seal.Fence, &seal.End.Transaction, &seal.End.Seq, &at, &leaves, &previous, &hash); err != nil {
		return seal, "", err
	}
	seal.At = fromMicros(at)
	if seal.Entries, err = ledger.ParseSealedEntries(leaves); err != nil {
		return seal, err.Error(), nil
	}
	if rule := readHash((*[32]byte)(&seal.Previous), previous); rule != "" {
		return seal, "previous " + rule, nil
	}
	if rule := readHash((*[32]byte)(&seal.Hash), hash); rule != "" {
		return seal, "hash " + rule, nil
	}
	return seal, "", nil
}

func sealArgs(s ledger.Seal) []any {
	return []any{s.N, s.Epoch, s.Fence, s.End.Transaction, s.End.Seq, s.At.UnixMicro(), ledger.AppendSealedEntries([]byte{}, s.Entries), nonZero(s.Previous[:]), s.Hash[:]}
}

func sealed(s ledger.Seal) ledger.Seal {
	s.Hash = s.Sum()
	return s
}
