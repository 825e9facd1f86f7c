// Package systemtest simulates a whole system with a seed, in virtual time, with crashes
// and other faults. The tests of this package use a store in memory. The tests of package
// sqlstore use a database that each process opens separately. Producers with a store send
// events of durable sources to a fake queue, and consumers of package consumer with a
// store handle the events. Processes crash at any step, requests and answers are lost or
// late, the store fails before and after its commits, and the store's clock differs from
// the clocks of the processes.
//
// After each run the package checks the promises of the library. The effect of each event
// has happened exactly once, in the order of its message group. No event was lost, SQS
// has stored each event once, and each receipt names the message in the queue. If the
// storage has a ledger, the ledger verifies against every head that was saved during the
// run. Each change that the store confirmed is in the ledger once and in order, even if
// the process died before the confirmation arrived. For a failing seed, the package
// prints the history of the event concerned.
package systemtest
