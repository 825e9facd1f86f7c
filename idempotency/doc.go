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
// has a fence, a number that only grows for a key, and the call that ends a claim carries
// the claim's fence. An overtaken claimant gets [ErrStaleClaim] and changes nothing. If a
// claimant dies before it reports whether the operation took effect, the outcome is
// unknown, not a failure: the operation is [Unresolved] unless a second run is known to
// be safe.
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
// CompleteTx), a key has at most one accepted side effect within its TTL. Otherwise, no
// duplicate is accepted without a decision: a crash between a side effect and its
// completion leaves an unknown outcome, and an operator must resolve it. A side effect
// can outlive its lease, for example if the process was stopped. The side effect can then
// run concurrently with the next claimant's, unless its target checks the fence. A run
// under [GuardConfig.FailOpen] is not protected.
package idempotency
