// Package systemtest simulates a whole system with a seed, on virtual time, for tests: its
// own, over a store in memory, and those of package sqlstore, over a database that each
// process opens itself. Producers with a store send events of durable sources to a fake queue,
// and consumers with a guard handle them; processes crash at any step, requests and
// answers are lost or late, the store fails before and after its commits, and its clock
// differs from theirs.
//
// What must hold after each run: the effect of each event has happened exactly once, in
// the order of its message group; nothing was lost; SQS has stored each event once; each
// receipt names the message that is in the queue. If the storage has a ledger, it verifies
// against all heads that were kept on the way, and has each change that the store
// confirmed once and in order, also those whose process was dead before it knew. A failing
// seed prints the history of its event.
package systemtest
