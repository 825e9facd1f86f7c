// Package sqlstore keeps idempotency records in SQLite or PostgreSQL.
//
// # Problem
//
// A record must be in a database to outlive the process. To agree with a side effect, the
// record must be in the side effect's database. Only a transaction over both ensures that
// both exist or neither.
//
// # Guarantee
//
// A [Store] implements [idempotency.Store]. Concurrent calls share commits: the calls of
// Claim, Finish and Extend that arrive during a commit are written together in the next
// transaction, as far as they fit. A lone caller never waits for others. If a claim cannot
// be granted, because the operation has a result or another claimant is running the
// operation, the store usually only reads and does not write.
//
// [Store.ClaimTx] and [Store.CompleteTx] join a caller's transaction. If the transaction commits,
// the side effect and its result are stored; otherwise neither the side effect nor the claim
// happened.
//
// With [Config.Ledger], the store also writes each key change to an append-only [Ledger], in the
// same transaction, and [Ledger.Verify] identifies entries edited later. On PostgreSQL this
// requires a running [Sealer].
//
// Package sqlstore imports no driver. The caller opens the *sql.DB, and [Open] checks settings
// required for durability.
//
// # Opening
//
// With modernc.org/sqlite and github.com/jackc/pgx/v5/stdlib:
//
//	db, err := sql.Open("sqlite", "file:keys.db?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(10000)&_pragma=cache_size(-65536)&_pragma=mmap_size(2147418112)")
//	db, err := sql.Open("pgx", "postgres://user@host/database")
//
// Then call [Migrate] once, for example at each program start, and [Open]. The last two SQLite
// settings only improve speed with millions of keys: cache_size gives each connection a 64 MiB
// cache, and mmap_size avoids system calls when reading the first 2 GiB of the file, SQLite's
// mapping limit.
//
// # Limits
//
// PostgreSQL: claims and endings take an advisory transaction lock per key, without
// waiting: while another transaction writes a key, claims return InProgress. An open
// transaction with a ClaimTx therefore delays no other transaction. A store holds at most 256
// of these locks at a time, plus one for each ClaimTx and CompleteTx. If there are many stores,
// raise max_locks_per_transaction: the server's lock table has about this number times
// max_connections entries. The database clock
// determines lease expiry. Above isolation level READ COMMITTED, a contended ClaimTx fails
// with a serialization error, and the caller must retry. Tables are in the first schema of
// the search_path.
//
// SQLite: one writer at a time. A transaction with a ClaimTx blocks all other writers of the file
// until it ends: keep it short, and make ClaimTx its first statement. The machine's clock
// determines lease expiry.
//
// If the clock is set back by more than five seconds, the store cannot know how long ago
// an operation in progress began. The operation becomes unresolved when its lease ends:
// only an operator, or a policy with Resend, can permit a second run. The current claimant
// can still finish the operation. Operations that are safe to repeat at any time are not
// affected.
//
// To detect the change, the store compares the clock with the largest earlier time: a time
// recorded in the database or read by this store. If no store uses the database until the
// clock shows this time again, the change remains undetected. A transaction of a caller may
// be rolled back, so the store handles the change in a transaction of its own. Until this
// transaction has committed, ClaimTx returns an error.
//
// A write survives a loss of power after it was acknowledged, if the disk keeps the data
// that it has reported as written.
package sqlstore
