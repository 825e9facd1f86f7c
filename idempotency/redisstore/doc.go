// Package redisstore keeps idempotency records in Redis 7 or later, or in Valkey. It is
// a module of its own, so that nobody who uses another store carries the driver.
//
// # Problem
//
// Services that share a Redis and no database need one place that remembers which
// operations have run, judged by one clock.
//
// # Guarantee
//
// A [Store] keeps the promises of [idempotency.Store] on a server that does not fail
// over. Each claim and each transition is one Lua script over one record: atomic, by
// the time of the server, and fsynced before it returns. [Open] refuses settings under
// which an acknowledged write may be lost or evicted. A record in doubt never expires.
// A server whose memory is full refuses new keys ([idempotency.Full]), and still
// records what became of the operations that run.
//
// # Limits
//
// Redis is advisory: it replicates asynchronously. A failover to a replica may lose the
// last acknowledged writes, and an operation of which the claim was lost may run twice;
// no setting of Redis prevents that. Where this is not acceptable use a store over a
// database (package sqlstore). There is no ledger, and no transaction that holds both a
// claim and a side effect.
//
// A fence is the larger of the last one of its bucket plus one and the time in
// milliseconds, followed by the twelve bits of the key ID that choose the bucket. After
// a failover that lost fences they still grow, if the clock of the new primary is not
// behind by more than the failover took.
//
// A batch is a pipeline, not a transaction: after an error some of its claims may have
// been made. The driver repeats calls that had no answer; a claim that it repeated is
// [idempotency.Renewed] instead of [idempotency.New].
//
// # Keys
//
// A record is a hash at idempotency:{operation_type}:ID, after [Config.Prefix], for
// example
//
//	idempotency:payments.create:{3fa}9c01...
//
// where ID is that of the [idempotency.Key] in hexadecimal, with its first three digits
// in braces: all that one script touches is in one slot of a cluster. The fields of the
// hash are named as the columns of package sqlstore. The last fence of
// those slots is at idempotency-fence:{3fa}. Times in them are 12 digits of seconds and
// 6 of microseconds. Succeeded and failed records are removed by the server an hour
// after they expire, released ones an hour after the release.
package redisstore
