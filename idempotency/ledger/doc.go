// Package ledger is the form of an append-only list of what happened to idempotency
// keys, and its verification, without a database.
//
// # Problem
//
// A record says how a key is now. An auditor asks how it came to be so: who claimed the
// key when, whether masking or CARE enforcement was applied under it, whether an
// operator ran it again, and whether somebody has edited the answer since.
//
// # Guarantee
//
// Each change of a key, and each [Remark] of the caller, is an [Entry] with the SHA-256
// of its content. Seals follow one another: a [Seal] lists the entries of a range by
// their places and hashes, and has the hash of the seal before it. [Verify] recomputes
// all of it and names the first entry or seal that was altered, dropped, inserted or
// swapped with another. The [Head] of the last seal stands for everything before it:
// if it is kept where those who can write to the database cannot, neither an edit that
// recomputed all hashes nor a tail that was cut off goes unseen.
//
// Package sqlstore writes a ledger in the transactions of the changes, seals it, and
// exports it as JSON lines: a line of each seal, followed by the lines of its entries.
// [Read] and [Verify] check such a file on any machine.
//
// An entry holds the key, fences, hashes and the dataset, but no body, response, group
// or token.
//
// # Limits
//
// Without a head that was kept elsewhere, Verify cannot know that the last seals are
// missing, or that all hashes from some seal on were computed again. What is not sealed
// yet is protected by the database only. An entry that somebody with the right to
// insert adds before the next seal looks like any other: the ledger shows what was
// written and that it stayed so, not that it was true.
package ledger
