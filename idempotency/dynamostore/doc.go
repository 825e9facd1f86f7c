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
// DynamoDB has no clock. The clients' clocks decide when leases and records end, and must
// not differ by more than [Config.Slack]. The store makes each lease longer by the slack.
// It makes the time in which a second run is safe (ResendFor of [idempotency.Terms])
// shorter by the slack.
//
// If two clocks differ by more than the slack, a client may take over a claim before the
// claim's lease ends, or run an operation again after ResendFor. The same may happen
// after a client's clock was set back by more than the slack. The store does not detect
// such clocks.
//
// Open refuses global tables, because their regions do not check each other's conditions.
// dynamostore has no ledger (see [Config.KeyRecords] for append-only records of the keys
// that succeeded), and no transaction for a claim together with a side effect.
//
// There is no Capacity and no quota of unfinished operations for each scope. To count
// them, all claims of a scope would have to write one counter item, but DynamoDB limits
// the writes of one item per second. Unresolved operations never expire: an operator must
// resolve them.
//
// A body and a response have at most [MaxBytes] bytes each, because DynamoDB limits items
// to 400 KB. A batch saves no writes: its claims are separate concurrent writes.
//
// # Table
//
// The table has the partition key key_id, a string, and no sort key; see [Open]. A record
// is an item. Its key_id is the ID of the record's [idempotency.Key] in hexadecimal.
// Times are microseconds since 1970.
//
// Each granted claim gets a fence, a number greater than all earlier fences of its key.
// The numbers come from counters, the items fence:000 to fence:fff. For example, fence:3fa
// is the counter for all records whose ID begins with 3fa. Granting a claim costs a read
// and a write of the record, and one or two writes of the counter for a new fence.
//
// Enable the table's time to live on the attribute remove_at; otherwise the table only
// grows. Only succeeded, failed and released records have remove_at: one hour after they
// expire or were released.
package dynamostore
