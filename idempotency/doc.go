// Package idempotency remembers which operations have run, across crashes and for longer
// than the five minutes of Amazon SQS. A retried operation gets the result of the first
// run instead of a second run.
//
// # Problem
//
// Retries happen exactly when systems are uncertain: a caller times out after the side
// effect, a consumer restarts between the work and the acknowledgement, or a dead-letter
// redrive delivers a message under a new deduplication ID. Without a durable memory, a
// retry is a second side effect.
//
// # Guarantee
//
// A [Store] keeps one [Record] for each [Key]. An operation runs only after the store
// granted its [Claim], durably. If any number of claims of one key race, one claim is
// granted; the other claims get a [Decision] with the reason for the refusal. Each grant
// has a fence, a number that only grows for a key. A claimant reports the outcome with
// its fence. If another claimant has taken over, the report fails with [ErrStaleClaim]
// and changes nothing. If a claimant dies before the report, the outcome is unknown, not
// a failure: the operation is [DecisionUnresolved] unless a second run is known to be safe.
//
// [Guard] wraps a function in these steps. [Validator] does the same for pipeline runs
// with keys computed from datasets. [Memory] is a store for tests. Package sqlstore keeps
// records in SQLite and PostgreSQL, dynamostore in DynamoDB and redisstore in Redis;
// dynamostore and redisstore are separate modules. A sqlstore can also keep a ledger of
// key changes, and package ledger verifies the ledger.
//
// # Limits
//
// If the side effect and the record are committed together (package sqlstore, ClaimTx and
// CompleteTx), a key has at most one accepted side effect within its TTL. Otherwise a
// crash between a side effect and its completion leaves an unknown outcome. The operation
// then runs again only if an operator or the policy permits a second run. A process that
// was stopped for a while may continue a side effect after its lease, at the same time as
// the next claimant. Only a target that checks fences prevents this. A run under
// [GuardConfig.FailOpen] is not protected.
package idempotency
