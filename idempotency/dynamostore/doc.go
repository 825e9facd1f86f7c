// Package dynamostore keeps idempotency records in a table of DynamoDB. It is a module
// of its own, so that nobody who uses another store carries the driver.
//
// # Problem
//
// Functions and services on AWS often have no database but DynamoDB, which writes
// durably on several machines before it answers, and which compares before it writes.
//
// # Guarantee
//
// A [Store] keeps the promises of [idempotency.Store] in a table of one region. Reads are
// strongly consistent, and every write is conditional on the version of the record that
// it was decided by: a record that was claimed, completed or has expired since, or has
// another fence, is read and judged again.
//
// # Limits
//
// DynamoDB has no clock. Leases and expiry are judged by the clocks of the
// clients, which must not differ by more than [Config.Slack]: a stored lease is longer
// by the slack than the one that was asked for, and the time for resending shorter.
// A client whose clock is further off may take over a claim that is still held.
//
// A global table is refused: its regions write without seeing each other's conditions.
// There is no ledger, and no transaction that holds both a claim and a side effect.
//
// A body and a response have at most [MaxBytes] bytes each, because an item has at most
// 400 KB. A batch saves no write: its claims are made concurrently.
//
// # Table
//
// The table has the partition key key_id, a string, and no sort key; see [Open]. A record
// is an item whose key_id is the ID of the [idempotency.Key] in hexadecimal. The items
// fence:000 to fence:fff hold the last fences of the records whose IDs begin with these
// digits: a grant costs a read, one or two writes of that item and a write of the record.
// Times are microseconds since 1970.
//
// Enable the time to live of the table on the attribute remove_at, or the table only
// grows. Only succeeded, failed and released records have it: an hour after they expire
// or are released.
package dynamostore
