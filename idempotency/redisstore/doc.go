// Package redisstore keeps idempotency records in Redis 7 or later, or in Valkey. It is a
// separate module, so users of other stores do not depend on the driver.
//
// # Problem
//
// Services that share a Redis but no database need one place, with one clock, that
// remembers finished operations.
//
// # Guarantee
//
// A [Store] keeps the promises of [idempotency.Store] on a server without failover. Each
// claim and each ending is one Lua script over one record: atomic, timed by the server's
// clock, and fsynced before the server answers. [Open] refuses server settings that may
// lose or evict acknowledged writes, unless [Config.AllowLoss] is set. A record in doubt
// never expires. A server with full memory refuses new keys ([idempotency.DecisionFull]) but still
// records the results of running operations.
//
// # Limits
//
// A store in Redis is advisory: it cannot rule out a second run, because Redis replicates
// asynchronously. A failover to a replica may lose the last acknowledged writes, and an
// operation with a lost claim may run twice; no Redis setting prevents this. If this is
// not acceptable, use a store over a database (package sqlstore). redisstore is not a store of
// record: it has no append-only records of keys and no ledger, and no transaction for a claim together with a side effect.
//
// Each granted claim gets a fence, a number greater than all earlier fences of its key.
// The records are divided into buckets by the first twelve bits of their key IDs. A fence
// consists of a counter of the bucket and these twelve bits. The counter's next value is
// the time in milliseconds, or the last value plus 1 if that is larger. Fences therefore
// grow even after a failover that lost counters, unless the new primary's clock lags by
// more than the duration of the failover. A fence must also show whether its operation was
// claimed before or after a step of the clock (see below). After a step, the counter's next
// value is therefore not the time, but much larger than all times before the step. Smaller
// fences come from claims before the step.
//
// The server's clock decides when leases end, and until when a second run is safe
// (ResendUntil of [idempotency.Record]). If the clock is set back by more than five
// seconds (a step), the store cannot know how long ago an operation in progress began.
// The operation becomes unresolved when its lease ends: only an operator, or a policy with
// Resend, can permit a second run. Its claimant can still finish it. Leases end at the
// same clock time as before the step, so they last longer by the length of the step.
// Operations that are safe to repeat at any time are not affected.
//
// To detect a step, each claim compares the clock with the largest time so far: the time
// in the server's clock record, or a later time that this store read in an earlier call.
// New and reclaimed claims write the clock record, at most once a second. [Config.Logger] and
// [Store.Stats] report steps. A step remains undetected if no claim is made until the clock
// has passed the largest time again. A short step may also remain undetected after a
// failover, because a failover may lose the last writes of the clock record.
//
// In a cluster a script sees only one bucket, and the servers have different clocks. The
// store therefore watches the clock separately for each bucket. It detects a step only in
// a bucket that was in use shortly before the step, and only by a claim in this bucket
// soon after the step. Let the time service slew the clocks of a cluster (adjust them
// gradually). After a step, resolve the operations in progress.
//
// There is no Capacity and no quota of unfinished operations for each scope: a script sees
// the records of one cluster slot and cannot count a scope. Limit the server's memory and
// resolve unresolved operations, which never expire.
//
// A batch is a pipeline, not a transaction: after an error, some claims may have been
// granted. The driver repeats calls without an answer; a repeated claim may return
// [idempotency.DecisionRenewed] instead of [idempotency.DecisionNew].
//
// # Keys
//
// A record is a Redis hash. Its name has [Config.Prefix], the word idempotency, the
// operation and the ID, for example
//
//	idempotency:payments.create:{3fa}9c01...
//
// ID is the ID of the [idempotency.Key] in hexadecimal, with the first three digits in
// braces, so that all keys of one script share a cluster slot. The fields of the hash
// have the names of sqlstore's columns. The server removes succeeded and failed records
// one hour after they expire (or after their end, if that is later), and released records
// one hour after the release.
//
// The key idempotency-fence:{3fa} holds the bucket's counter. The hash idempotency-clock,
// the clock record, holds the largest time seen and the last clock step; a cluster has
// one such hash for each bucket, idempotency-clock:{3fa}. Times are 12 digits of seconds
// and 6 digits of microseconds.
package redisstore
