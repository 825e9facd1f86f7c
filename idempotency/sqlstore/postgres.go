package sqlstore

import (
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/sqldb"
)

// postgres executes a group's endings in one SQL statement and its claims in another.
// Neither statement waits for a key's advisory lock. If another transaction has the lock, a
// claim that the record permits gets InProgress, and an ending that the record permits is
// tried again later.
type postgres struct {
	ledger bool
	hide   hider // hides the keys of ledger entries; may be nil
}

func (postgres) placeholder(i int) string { return fmt.Sprintf("$%d", i) }

func (postgres) now(ctx context.Context, q queryer) (time.Time, error) {
	var us int64
	if err := q.QueryRowContext(ctx, `SELECT idempotency_clock()`).Scan(&us); err != nil {
		return time.Time{}, fmt.Errorf("sqlstore: clock: %w", err)
	}
	return fromMicros(us), nil
}

// postgresBegin returns the statement of begin. In a transaction of the store, PostgreSQL
// keeps the plan of each statement. A plan may be from the time when the table was small,
// so it must use the indexes at any size: all other ways are disabled. In a transaction of
// a caller, these settings would slow the caller's statements: PostgreSQL plans again.
func postgresBegin(own bool) string {
	settings := `set_config('plan_cache_mode', 'force_custom_plan', true)`
	if own {
		settings = `set_config('plan_cache_mode', 'force_generic_plan', true) || set_config('jit', 'off', true) || set_config('enable_seqscan', 'off', true)`
	}
	return `SELECT ` + settings + `, ` + schema.Oldest() + `, idempotency_clock(), (SELECT value FROM idempotency_meta WHERE name = 'clock')`
}

// rememberTime returns a statement that records the database time in row "clock". If
// another transaction has locked the row, the statement ends immediately, without a
// change.
func (postgres) rememberTime() string {
	return `UPDATE idempotency_meta SET value = $1 WHERE name = (SELECT name FROM idempotency_meta WHERE name = 'clock' AND value < $1 FOR UPDATE SKIP LOCKED)`
}

// begin returns an error if the database no longer accepts writes of this version of the
// program.
func (postgres) begin(ctx context.Context, tx writer, _ int, own bool) (at started, err error) {
	var mode string
	var oldest int64
	if err := tx.QueryRowContext(ctx, postgresBegin(own)).Scan(&mode, &oldest, &at.now, &at.recorded); err != nil {
		return at, fmt.Errorf("sqlstore: begin: %w", err)
	}
	return at, schema.CheckOldest(oldest)
}

func (postgres) read(ctx context.Context, q queryer, ids []idempotency.KeyID) (map[idempotency.KeyID]idempotency.Record, error) {
	var list sqldb.Array
	for i := range ids {
		list.Bytes(ids[i][:])
	}
	// LATERAL with LIMIT makes the planner use the index for each key, whatever table
	// size it assumes.
	found := map[idempotency.KeyID]idempotency.Record{}
	err := sqldb.Each(ctx, q, func(rows *sql.Rows) error {
		var id []byte
		var at int64
		r, err := scanRecord(rows, &id, &at)
		if err != nil {
			return err
		}
		r.record.ReadAt = fromMicros(at)
		found[idempotency.KeyID(id)] = r.record
		return nil
	}, `SELECT k.key_id, idempotency_clock(), `+recordColumns+` FROM unnest($1::text::bytea[]) AS i (id) CROSS JOIN LATERAL (SELECT * FROM idempotency_keys WHERE key_id = i.id LIMIT 1) AS k`, list.String())
	if err != nil {
		return nil, fmt.Errorf("sqlstore: read: %w", err)
	}
	return found, nil
}

// lockOf returns the number of a key's advisory lock. Two keys may have the same number.
// Their transactions then exclude each other, which does no harm.
func lockOf(id idempotency.KeyID) int64 { return int64(binary.BigEndian.Uint64(id[:8])) }

// drawnFence is the SQL expression of a new fence: the time in units of 1,024
// microseconds, followed by ten bits of a sequence. A sequence alone is not enough,
// because it may repeat numbers after a crash.
const drawnFence = `(((at >> 10) << 10) | (nextval('idempotency_draws') & 1023))`

// keptWhileRunning has the assignments of postgresClaim for columns that keep their value in
// a record in progress, and otherwise get the claim's value.
var keptWhileRunning = columnName.ReplaceAllString(`body_hash, message_group, body, doubt_since, resend_until, created_at, expires_at, dataset_id, version, source_uri, artifact_checksum, care_label, replay_safe`,
	`$0 = CASE WHEN k.status = 'in_progress' THEN k.$0 ELSE EXCLUDED.$0 END`)

// In postgresClaim, the condition of DO UPDATE implements Decide of package idempotency;
// the assignments implement Grant. EXCLUDED.created_at is the claim's time, read after
// taking the lock.
var postgresClaim = `WITH shared AS MATERIALIZED (
  SELECT * FROM unnest($7::text::bytea[], $8::text::text[], $9::text::text[], $10::text::bigint[], $11::text::bigint[], $12::text::bigint[], $13::text::bigint[], $14::text::text[], $15::text::text[], $16::text::text[], $17::text::text[], $18::text::text[], $19::text::bigint[])
    WITH ORDINALITY AS t (scope, operation_type, fingerprint_spec, lease, ttl, resend_for, resend, dataset_id, version, source_uri, artifact_checksum, care_label, replay_safe, n)
), input AS MATERIALIZED (
  SELECT s.*, lock_id, substr($1::bytea, i, 32) AS key_id, substr($1, i + 32, 32) AS request_hash, nullif(substr($1, i + 64, 32), decode(repeat('00', 32), 'hex')) AS body_hash, substr($1, i + 96, 16) AS token,
    substr($1, i + 112, k) AS key, substr($1, i + 112 + k, g) AS message_group, substr($1, i + 112 + k + g, b) AS body
  FROM unnest($2::text::bigint[], $3::text::int[], $4::text::int[], $5::text::int[], $6::text::int[], $20::text::int[]) AS t (lock_id, i, k, g, b, n) JOIN shared AS s USING (n)
), locked AS MATERIALIZED (SELECT *, idempotency_clock() AS at FROM input WHERE pg_try_advisory_xact_lock(lock_id))
INSERT INTO idempotency_keys AS k (key_id, ` + recordColumns + `)
SELECT key_id, scope, operation_type, key, 1, fingerprint_spec, request_hash, body_hash, message_group, body, '', NULL, '', '', 'in_progress', 'new', resend, token, ` + drawnFence + `, 1,
  LEAST(at + lease, 253402214400000000), at, CASE WHEN resend_for > 0 THEN LEAST(at + resend_for, 253402214400000000) END, '', at, at + ttl, dataset_id, version, source_uri, artifact_checksum, care_label, replay_safe, 'absent', NULL, NULL
FROM locked ON CONFLICT (key_id) DO UPDATE SET ` + keptWhileRunning + `,
  fingerprint_spec = EXCLUDED.fingerprint_spec, request_hash = EXCLUDED.request_hash, resend = EXCLUDED.resend, token = EXCLUDED.token, lease_until = EXCLUDED.lease_until,
  response = '', response_hash = NULL, message_id = '', sequence_number = '', status = 'in_progress',
  generation = CASE WHEN k.status IN ('succeeded', 'failed') AND k.expires_at <= EXCLUDED.created_at THEN k.generation + 1 ELSE k.generation END,
  decision = CASE WHEN k.status <> 'in_progress' THEN 'new' WHEN k.token = EXCLUDED.token THEN 'renewed' ELSE 'reclaimed' END,
  fence = CASE WHEN k.status = 'in_progress' AND k.token = EXCLUDED.token THEN k.fence ELSE greatest(k.fence + 1, EXCLUDED.fence) END,
  attempts = CASE WHEN k.status = 'in_progress' OR k.status = 'failed' AND (k.expires_at <= EXCLUDED.created_at) IS NOT TRUE THEN k.attempts + 1 ELSE 1 END,
  failure = CASE WHEN k.status = 'in_progress' OR k.status = 'failed' AND (k.expires_at <= EXCLUDED.created_at) IS NOT TRUE THEN k.failure ELSE '' END,
  prior_status = CASE WHEN k.status = 'in_progress' AND k.token = EXCLUDED.token THEN k.prior_status WHEN k.status = 'in_progress' THEN 'in_progress'
    WHEN k.status = 'failed' AND (k.expires_at <= EXCLUDED.created_at) IS NOT TRUE THEN 'failed' ELSE 'absent' END,
  prior_created_at = CASE WHEN k.status = 'in_progress' AND k.token = EXCLUDED.token THEN k.prior_created_at WHEN k.status = 'failed' AND (k.expires_at <= EXCLUDED.created_at) IS NOT TRUE THEN k.created_at END,
  prior_expires_at = CASE WHEN k.status = 'in_progress' AND k.token = EXCLUDED.token THEN k.prior_expires_at WHEN k.status = 'failed' AND (k.expires_at <= EXCLUDED.created_at) IS NOT TRUE THEN k.expires_at END
WHERE k.status = 'released' OR k.status IN ('succeeded', 'failed') AND k.expires_at <= EXCLUDED.created_at
  OR k.fingerprint_spec = EXCLUDED.fingerprint_spec AND k.request_hash = EXCLUDED.request_hash AND (
    k.status = 'failed'
    OR k.status = 'in_progress' AND (
      k.token = EXCLUDED.token
      OR (k.lease_until <= EXCLUDED.created_at OR substr(k.token, 1, 6) = substr(EXCLUDED.token, 1, 6) AND substr(k.token, 7, 6) < substr(EXCLUDED.token, 7, 6)) AND (EXCLUDED.created_at < k.resend_until OR EXCLUDED.resend = 1)))
RETURNING key_id, idempotency_clock(), xmax = 0, decision, fence, created_at, lease_until, resend_until, expires_at`

func (e postgres) claim(ctx context.Context, tx writer, _ int64, claims []claimOf) ([]claimed, error) {
	if len(claims) == 0 {
		return nil, nil
	}
	out := make([]claimed, len(claims))
	index := make(map[idempotency.KeyID]int, len(claims))
	for i, c := range claims {
		index[c.id] = i
	}
	err := sqldb.Each(ctx, tx, func(rows *sql.Rows) error {
		var id []byte
		var decision string
		var inserted bool
		var at, fence, created, lease int64
		var resend, expires sql.NullInt64
		if err := rows.Scan(&id, &at, &inserted, &decision, &fence, &created, &lease, &resend, &expires); err != nil {
			return err
		}
		i := index[idempotency.KeyID(id)]
		out[i] = claimed{decision: parseDecision(decision), inserted: inserted}
		if inserted { // all other values of the record are those of the claim
			r := idempotency.Grant(idempotency.Record{}, claims[i].Claim, idempotency.DecisionNew, fence, fromMicros(created))
			r.ReadAt, r.LeaseUntil, r.ResendUntil, r.Expires = fromMicros(at), fromMicros(lease), fromNull(resend), fromNull(expires)
			out[i].record = r
		}
		return nil
	}, postgresClaim, claimArrays(claims)...)
	if err != nil {
		return nil, fmt.Errorf("sqlstore: claim: %w", err)
	}
	var others []idempotency.KeyID
	for i, c := range claims {
		if !out[i].inserted {
			others = append(others, c.id)
		}
	}
	if len(others) == 0 {
		return out, nil
	}
	// Read the rows that existed before, and find out why claims were refused. A new
	// statement also sees rows committed after the start of postgresClaim.
	found, err := e.read(ctx, tx, others)
	if err != nil {
		return nil, err
	}
	for i, c := range claims {
		switch r := found[c.id]; {
		case out[i].inserted:
		case out[i].decision.Granted():
			out[i].record = r
		default:
			d := idempotency.Decide(r, c.Claim, r.ReadAt)
			// The record permits the claim now, but postgresClaim did not grant it: the key
			// was locked, or a lease or record expired only after postgresClaim. InProgress
			// makes the claimant try again.
			if d.Granted() {
				d = idempotency.DecisionInProgress
			}
			out[i] = claimed{decision: d, record: r}
		}
	}
	return out, nil
}

// claimArrays returns the parameters of postgresClaim. Parameter 1 has the bytes of all
// claims, because PostgreSQL reads the text form of an array slowly. Parameters 2 to 6 have
// the position and the lengths of the bytes of each claim. Values that are often equal in
// all claims are in parameters 7 to 19, once for each combination; parameter 20 has the
// number of each claim's combination.
func claimArrays(claims []claimOf) []any {
	var all []byte
	var shared [][]any
	numbers := map[[13]any]int64{}
	rows := make([][]any, len(claims))
	for i := range claims {
		c := &claims[i]
		v := [13]any{
			c.Key.Scope, c.Key.Operation, c.Fingerprint.Spec, duration(c.Terms.Lease), nil, duration(c.Terms.ResendFor), toInt(c.Resend),
			c.Dataset.ID, c.Dataset.Version, c.Dataset.SourceURI, c.Dataset.ArtifactChecksum, c.Dataset.CARELabel, toInt(c.Dataset.ReplaySafe),
		}
		if c.Terms.TTL != idempotency.Forever {
			v[4] = duration(c.Terms.TTL) // otherwise NULL: the record never expires
		}
		n := numbers[v]
		if n == 0 {
			n = int64(len(numbers) + 1)
			numbers[v] = n
			v[0] = []byte(c.Key.Scope)
			shared = append(shared, v[:])
		}
		rows[i] = []any{lockOf(c.id), int64(len(all) + 1), int64(len(c.Key.Value)), int64(len(c.Group)), int64(len(c.Body)), n}
		all = append(append(append(append(all, c.id[:]...), c.Fingerprint.Sum[:]...), c.ExactHash[:]...), c.Token[:]...)
		all = append(append(append(all, c.Key.Value...), c.Group...), c.Body...)
	}
	own := sqldb.Columns(rows)
	return slices.Concat([]any{all}, own[:5], sqldb.Columns(shared), own[5:])
}

// duration returns d in microseconds, rounded up so that positive durations never become
// zero. Forever becomes a number so large that its sum with any time lies after the year
// 9999.
func duration(d time.Duration) int64 {
	if d == idempotency.Forever {
		return math.MaxInt64 / 4
	}
	us := d.Microseconds()
	if d%time.Microsecond > 0 {
		us++
	}
	return us
}
