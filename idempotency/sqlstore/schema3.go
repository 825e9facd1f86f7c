package sqlstore

// The third schema step adds an index of the unfinished operations by scope, for
// Config.Quota. Programs of version 2 maintain the index without knowing it.
const (
	sqliteThird = `CREATE INDEX idempotency_keys_unfinished ON idempotency_keys (scope) WHERE status = 'in_progress'`

	// Column created_at lets a query with ORDER BY use only this index: see
	// postgresUnfinished.
	postgresThird = `CREATE INDEX idempotency_keys_unfinished ON idempotency_keys (scope, created_at) WHERE status = 'in_progress'`
)
