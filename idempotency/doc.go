// Package idempotency remembers which operations have run, for longer than the
// five minutes of Amazon SQS and across crashes, so that a retried operation
// gets the result of the first run instead of a second run.
//
// # Problem
//
// Retries happen exactly when systems are uncertain: a caller times out after the
// side effect, a consumer restarts between the work and the acknowledgement, a
// dead-letter redrive delivers a message under a new deduplication ID. Without a
// durable memory, a retry is a second side effect.
//
// # Guarantee
//
// A [Store] keeps one [Record] for each [Key]. An operation runs only after its
// [Claim] was granted, durably. Of any number of racing claims of one key, one is
// granted; the others get a [Decision] that says why not. Each grant has a fence,
// a number that only grows for a key, and each transition carries it: a claimant
// that was overtaken gets [ErrStaleClaim] and changes nothing. A claim whose
// claimant died without a proof is an unknown outcome, not a failure: it is held as
// [Indeterminate] unless running again is known to be safe.
//
// [Guard] wraps a function in these steps. [Validator] does the same for
// pipeline runs whose key is computed from a dataset. [Memory] is a store for
// tests. Package sqlstore has durable stores over SQLite and PostgreSQL. They can keep a
// ledger of what happened to keys, which package ledger verifies.
//
// # Limits
//
// The guarantee is at most one accepted side effect for a key within its TTL, if
// the side effect and the record are committed together (package sqlstore,
// ClaimTx and CompleteTx), and no accepted duplicate without a decision
// otherwise: a crash between a side effect and its completion leaves an unknown
// outcome, which somebody must resolve. A side effect that outlives its lease,
// because the process was stopped, can run beside the next claimant's unless its
// target checks the fence. A run under [GuardConfig.FailOpen] is not protected.
package idempotency
