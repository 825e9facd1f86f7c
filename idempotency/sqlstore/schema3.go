package sqlstore

// The third schema step adds an index of the unfinished operations of each scope. With
// this index, stores can count these operations for Config.Quota. Programs of version 2
// do not use the index, but can still write: the database itself updates the index.
const (
	sqliteThird = `CREATE INDEX idempotency_keys_unfinished ON idempotency_keys (scope) WHERE status = 'in_progress'`

	// The function uses only index scans. An index scan marks the index entries of
	// completed operations, so that later index scans skip these entries. The column
	// created_at makes the index entries of a scope different: PostgreSQL stores equal
	// entries together, and marks them only when all their operations are completed.
	postgresThird = `CREATE INDEX idempotency_keys_unfinished ON idempotency_keys (scope, created_at) WHERE status = 'in_progress';

CREATE FUNCTION idempotency_unfinished(scopes bytea[], most bigint) RETURNS TABLE (tenant bytea, unfinished bigint) LANGUAGE plpgsql STABLE
SET search_path FROM CURRENT SET enable_bitmapscan = off SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS
  'BEGIN
    RETURN QUERY SELECT s.scope, (SELECT count(*) FROM (SELECT 1 FROM idempotency_keys AS k WHERE k.scope = s.scope AND k.status = ''in_progress'' LIMIT most) AS running)
    FROM unnest(scopes) AS s (scope);
  END'`
)
