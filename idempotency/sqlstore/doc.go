// Package sqlstore keeps idempotency records in SQLite or PostgreSQL.
//
// # Problem
//
// A record that must outlive the process needs a database, and one that must agree
// with a side effect needs the database of that side effect: only one transaction
// over both closes the gap in which the one exists without the other.
//
// # Guarantee
//
// A [Store] keeps the promises of [idempotency.Store]. Claims and transitions of
// concurrent callers share commits: a group is what has arrived while the last one was
// committed, so a lone caller never waits for others. A claim whose key is settled or held
// is answered by a plain read, without a write.
//
// [Store.ClaimTx] and [Store.CompleteTx] take part in a transaction of the caller.
// If it commits, the side effect and its result are stored; if not, neither the side
// effect nor the claim happened.
//
// With [Config.Ledger], each change of a key is also an entry in an append-only [Ledger],
// in the same transaction, and [Ledger.Verify] names an entry that somebody has edited
// since. On PostgreSQL a [Sealer] must run for that.
//
// No driver is imported. The caller opens the *sql.DB, and [Open] checks the settings
// that durability depends on.
//
// # Opening
//
// With modernc.org/sqlite and github.com/jackc/pgx/v5/stdlib:
//
//	db, err := sql.Open("sqlite", "file:keys.db?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(10000)&_pragma=cache_size(-65536)&_pragma=mmap_size(2147418112)")
//	db, err := sql.Open("pgx", "postgres://user@host/database")
//
// then [Migrate] once, for example at each start of the program, and [Open]. The last two
// settings of SQLite are for speed alone, with millions of keys: a cache of 64 MiB for each
// connection, and reads without a system call in the first 2 GiB of the file, which is the most
// that SQLite maps.
//
// # Limits
//
// PostgreSQL: transitions take an advisory transaction lock for each key, and never
// wait for it: a key that another transaction is writing is InProgress. An open
// transaction with a ClaimTx therefore delays nobody else. The database's clock
// judges leases. A ClaimTx in a transaction with an isolation level above READ
// COMMITTED fails with a serialization error under contention, which the caller
// retries. The tables are in the first schema of the search_path.
//
// SQLite: one writer at a time. A transaction with a ClaimTx stops all other writers
// of the file until it ends, so keep it short, and make ClaimTx its first statement.
// The clock of the machine judges leases.
//
// An acknowledged write survives a loss of power if the storage keeps what it
// acknowledges.
package sqlstore
