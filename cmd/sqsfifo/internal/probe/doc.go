// Package probe asks a queue how it deduplicates by sending to it.
//
// Problem: what a queue does with equal bodies depends on its attributes, on who may read
// them, and on what stands behind its address: AWS, or an emulator that differs from it.
// A producer finds out too late.
//
// Guarantee: each [Check] names what was sent and what the answers prove. Messages are
// marked and have message groups that no other run and no producer uses. Nothing is
// received unless [Config.Clean] is set. No message is ever deleted but those that this
// run sent, known by their message IDs.
//
// Limits: whoever consumes the queue gets the marked messages. To receive is to take
// messages of others, too, because SQS does not receive by group: each is given back at
// once, and its receive count grows by one. So Clean is refused for a queue that moves
// messages to a dead-letter queue, and it stops when it receives nothing of its own.
package probe
