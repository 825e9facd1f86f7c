package sqlstore

// The third schema step adds an index of the unfinished operations by scope, for
// Config.Quota. Programs of version 2 maintain the index without knowing it.
const (
	sqliteThird = `CREATE INDEX idempotency_keys_unfinished ON idempotency_keys (scope) WHERE status = 'in_progress'`

	// The index keeps an entry of each completed operation until the next vacuum. An index
	// scan marks these entries, and later index scans skip them; a bitmap scan reads all of
	// them. Without statistics PostgreSQL prefers a bitmap scan, and for a scope with a large
	// part of the table a scan of the table. The function therefore allows only index scans.
	// PostgreSQL keeps the function's plan for the session.
	//
	// Column created_at makes index entries different. PostgreSQL merges equal entries into
	// lists, and an index scan marks a list only if all its operations are completed.
	postgresThird = `CREATE INDEX idempotency_keys_unfinished ON idempotency_keys (scope, created_at) WHERE status = 'in_progress';

CREATE FUNCTION idempotency_unfinished(scopes bytea[], most bigint) RETURNS TABLE (tenant bytea, unfinished bigint) LANGUAGE plpgsql STABLE
SET search_path FROM CURRENT SET enable_bitmapscan = off SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS
  'BEGIN
    RETURN QUERY SELECT s.scope, (SELECT count(*) FROM (SELECT 1 FROM idempotency_keys AS k WHERE k.scope = s.scope AND k.status = ''in_progress'' LIMIT most) AS running)
    FROM unnest(scopes) AS s (scope);
  END'`
)
