// Package ledger defines and verifies an append-only history of idempotency keys. It
// needs no database.
//
// # Problem
//
// A record shows the current state of a key. An auditor asks for its history: when each
// claim was made, whether data was masked or CARE access rules were applied, whether an
// operator repeated the operation, and whether the history was edited afterwards.
//
// # Guarantee
//
// Each change of a key, and each [Annotation] of a caller, is an [Entry] with the SHA-256 of
// its content. Seals form a chain: a [Seal] lists the [Position] and the hash of each entry
// of a range and includes the hash of the previous seal. [Verify] recomputes all hashes
// and names the first altered, dropped, inserted or swapped entry or seal. The hash in the
// [Head] of the last seal depends on the whole ledger up to this seal. If a head is kept
// out of reach of the database's writers, Verify also finds edits with recomputed hashes,
// and missing seals at the end.
//
// Package sqlstore writes each entry in the transaction of its change, seals entries, and
// exports the ledger as JSON lines: one line per seal, followed by one line per entry.
// [Read] and [Verify] check an export on any machine.
//
// An entry holds key, fences, hashes and dataset. Bodies, responses, groups and tokens
// are left out. A store can hide the scope and the value of the key: see [Hide].
//
// # Limits
//
// Without a separately kept head, Verify cannot detect missing last seals, or a chain
// recomputed from some seal on. Only the database protects unsealed entries. A false
// entry inserted before the next seal looks like any other entry: the ledger proves that
// its content has not changed since the seal, not that the content is true.
package ledger
