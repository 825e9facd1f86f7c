// Package systemtest has no code: its tests simulate a whole system with a seed, on
// virtual time. Producers with a store send events of durable sources to a fake queue,
// and consumers with a guard handle them; processes crash at any step, requests and
// answers are lost or late, the store fails before and after its commits, and its clock
// differs from theirs.
//
// What must hold after each run: the effect of each event has happened exactly once, in
// the order of its message group; nothing was lost; SQS has stored each event once; each
// receipt names the message that is in the queue. A failing seed prints the history of
// its event.
package systemtest
