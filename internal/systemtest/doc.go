// Package systemtest simulates a whole system in virtual time: producers, a fake queue
// and consumers, with crashes and other faults. The random choices depend on a seed. The
// tests of this package use a store in memory. The tests in lab/sqlstoretest use a database
// that each process opens separately.
//
// Producers send the events of sources, which survive crashes, to the queue. Consumers of
// package consumer handle the events. Producers and consumers have a store. Processes
// crash at any step. Requests and answers are lost or late. The store fails before and
// after its commits, and its clock differs from the clocks of the processes.
//
// After each run the package checks the promises of the library. The effect of each event
// has happened exactly once. The effects have the order of the message group, unless two
// producer processes used one source simultaneously. SQS has stored each event once, and
// each receipt names the message in the queue. If the storage has a ledger, the ledger is
// valid and contains each head (hash of the last seal) saved during the run. Each change
// confirmed by the store is in the ledger once and in order, even if the process died
// before the confirmation arrived.
//
// If a check fails, the package prints the history of the event concerned and the seed.
package systemtest
