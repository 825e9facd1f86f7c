package sqlstore

// The third schema step indexes the unfinished operations by scope, for Config.Quota. The
// database maintains the index, so programs of version 2 can still write.
const (
	sqliteThird = `CREATE INDEX idempotency_keys_unfinished ON idempotency_keys (scope) WHERE status = 'in_progress'`

	// The function allows only index scans. An index scan marks the entries of completed
	// operations, and later index scans skip them. Other scans would read these entries
	// until the next vacuum.
	//
	// The index includes created_at, so that its entries differ. PostgreSQL would merge
	// equal entries into one list, and mark the list only after all its operations are
	// completed.
	postgresThird = `CREATE INDEX idempotency_keys_unfinished ON idempotency_keys (scope, created_at) WHERE status = 'in_progress';

CREATE FUNCTION idempotency_unfinished(scopes bytea[], most bigint) RETURNS TABLE (tenant bytea, unfinished bigint) LANGUAGE plpgsql STABLE
SET search_path FROM CURRENT SET enable_bitmapscan = off SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS
  'BEGIN
    RETURN QUERY SELECT s.scope, (SELECT count(*) FROM (SELECT 1 FROM idempotency_keys AS k WHERE k.scope = s.scope AND k.status = ''in_progress'' LIMIT most) AS running)
    FROM unnest(scopes) AS s (scope);
  END'`
)
