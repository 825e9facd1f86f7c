// Package dynamostore keeps idempotency records in a DynamoDB table. It is a separate
// module, so users of other stores do not depend on the driver.
//
// # Problem
//
// DynamoDB is often the only database of functions and services on AWS. It writes durably
// to several machines before it answers, and it supports conditional writes.
//
// # Guarantee
//
// A [Store] keeps the promises of [idempotency.Store] in a table of one region. Reads are
// strongly consistent. Every write has a condition: the record is still the version that
// the store has read. If another call changed the record meanwhile, the store reads and
// decides again.
//
// # Limits
//
// DynamoDB has no clock. The clients' clocks decide when leases and records end; they
// must not differ by more than [Config.Slack]. The store therefore adds the slack to each
// lease and subtracts it from ResendFor of [idempotency.Terms]. If two clocks differ by
// more than the slack, a client may take over a claim during its lease, or reclaim an
// operation after ResendFor. The same may happen after a client's clock was set back by
// more than the slack. The store detects neither error.
//
// Open refuses global tables, because their regions do not check each other's conditions.
// dynamostore has no ledger, and no transaction for a claim together with a side effect.
//
// There is no Capacity and no quota of unfinished operations for each scope. To count
// them, all claims of a scope would have to write one counter item, and DynamoDB limits
// the writes a second of one item. Resolve unresolved operations, which never expire.
//
// A body and a response have at most [MaxBytes] bytes each, because DynamoDB limits items
// to 400 KB. A batch saves no writes: its claims are separate concurrent writes.
//
// # Table
//
// The table has the partition key key_id, a string, and no sort key; see [Open]. A record
// is an item with the [idempotency.Key]'s ID in hexadecimal as key_id. The items fence:000
// to fence:fff hold the last fences: fence:3fa the last fence of all records whose ID
// begins with the digits 3fa. A grant reads and writes the record; a new fence costs one
// or two writes of the fence item. Times are microseconds since 1970.
//
// Enable the table's time to live on the attribute remove_at; otherwise the table only
// grows. Only succeeded, failed and released records have remove_at: one hour after they
// expire or were released.
package dynamostore
