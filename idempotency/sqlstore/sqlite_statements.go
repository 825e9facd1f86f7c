package sqlstore

import (
	"strings"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// These statements have parameters ? and not ?1, because some drivers look up ?1 by name,
// which is slow for many parameters.

var sqliteFence = `UPDATE idempotency_meta SET value = max(value + 1, ?) + ? - 1 WHERE name = 'fence' RETURNING value, ` + schema.Oldest() + `, (SELECT value FROM idempotency_meta WHERE name = 'clock')`

const sqliteGrow = `UPDATE idempotency_meta SET value = value + ? WHERE name = 'records'`

const sqliteUnfinished = `SELECT count(*) FROM (SELECT 1 FROM idempotency_keys WHERE scope = ? AND status = 'in_progress' LIMIT ?)`

// sqliteInsert inserts the row of a key's first claim. The values of some columns are the
// same in all such rows: these values are in the statement, and the others are
// parameters.
const sqliteInsert = `INSERT INTO idempotency_keys (key_id, scope, operation_type, key, generation, fingerprint_spec, request_hash, body_hash, message_group, body,
  response, response_hash, message_id, sequence_number, status, decision, resend, token, fence, attempts, lease_until, doubt_since, resend_until, failure, created_at, expires_at,
  dataset_id, version, source_uri, artifact_checksum, care_label, replay_safe, prior_status, prior_created_at, prior_expires_at)
VALUES (?, ?, ?, ?, 1, ?, ?, ?, ?, ?, x'', NULL, '', '', 'in_progress', 'new', ?, ?, ?, 1, ?, ?, ?, '', ?, ?, ?, ?, ?, ?, ?, ?, 'absent', NULL, NULL)
ON CONFLICT (key_id) DO NOTHING`

// sqliteInsertArgs returns the parameters of sqliteInsert for the first claim of a key.
// The record r comes from idempotency.Grant for this claim.
func sqliteInsertArgs(c *claimOf, r *idempotency.Record) []any {
	return []any{
		c.id[:], []byte(r.Key.Scope), r.Key.Operation, []byte(r.Key.Value), r.Fingerprint.Spec, r.Fingerprint.Sum[:], nonZero(r.ExactHash[:]), []byte(r.Group), notNil(r.Body),
		toInt(c.Resend), r.Token[:], r.Fence, r.LeaseUntil.UnixMicro(), r.DoubtSince.UnixMicro(), toNull(r.ResendUntil), r.Created.UnixMicro(), toNull(r.Expires),
		r.Dataset.ID, r.Dataset.Version, r.Dataset.SourceURI, r.Dataset.ArtifactChecksum, r.Dataset.CARELabel, toInt(r.Dataset.ReplaySafe),
	}
}

// sqliteUpsert writes all columns: an existing row has the same scope, operation and key.
var sqliteUpsert = `INSERT INTO idempotency_keys (key_id, ` + recordColumns + `) VALUES (?` + strings.Repeat(", ?", strings.Count(recordColumns, ",")+1) + `)
ON CONFLICT (key_id) DO UPDATE SET ` + columnName.ReplaceAllString(recordColumns, "$0 = excluded.$0")

const sqliteFinish = `UPDATE idempotency_keys SET status = ?, token = ?, lease_until = ?, doubt_since = ?, response = ?, response_hash = ?, message_id = ?, sequence_number = ?,
  failure = ?, created_at = ?, expires_at = ?, prior_status = ?, prior_created_at = ?, prior_expires_at = ? WHERE key_id = ?`

// sqliteComplete implements the first and by far most frequent case of
// idempotency.ApplyEnding: the key's last claim ends with a result.
const sqliteComplete = `UPDATE idempotency_keys SET status = 'succeeded', token = NULL, doubt_since = NULL, response = ?, response_hash = ?, message_id = ?, sequence_number = ?,
  failure = '', prior_status = 'absent', prior_created_at = NULL, prior_expires_at = NULL WHERE key_id = ? AND fence = ? AND status = 'in_progress' AND token IS NOT NULL`

// sqliteRead is a query for up to n keys.
type sqliteRead struct {
	n      int
	text   string // query for the records of the keys
	exists string // query with one result row if any of the keys is in the table, otherwise none
}

// sqliteReads lists the prepared queries. A query for more than idempotency.MaxBatch keys is
// not prepared.
var sqliteReads = [...]sqliteRead{newSQLiteRead(1), newSQLiteRead(16), newSQLiteRead(idempotency.MaxBatch)}

func newSQLiteRead(n int) sqliteRead {
	from := ` FROM idempotency_keys WHERE key_id IN (?` + strings.Repeat(", ?", n-1) + `)`
	return sqliteRead{n: n, text: `SELECT key_id, ` + recordColumns + from, exists: `SELECT 1` + from + ` LIMIT 1`}
}

// sqliteReadOf returns the smallest query for at least n keys.
func sqliteReadOf(n int) sqliteRead {
	for _, r := range sqliteReads {
		if n <= r.n {
			return r
		}
	}
	return newSQLiteRead(n)
}

// sqliteStatements returns all statements worth preparing.
func sqliteStatements() []string {
	texts := []string{sqliteFence, sqliteGrow, sqliteInsert, sqliteUpsert, sqliteFinish, sqliteComplete, sqliteAppend, sqliteUnfinished}
	for _, r := range sqliteReads {
		texts = append(texts, r.text, r.exists)
	}
	return texts
}
