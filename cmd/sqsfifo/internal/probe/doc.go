// Package probe tests how a queue deduplicates, by sending messages.
//
// Problem: a queue's treatment of equal bodies depends on its attributes, on the permission
// to read them, and on the service: AWS, or an emulator with other rules. A producer that
// assumes another treatment loses or doubles events without an error.
//
// Guarantee: each [Check] reports the messages sent and the facts proven by the answers.
// The body of each message says that it is a probe; the message groups are unique to the
// run. No message is received unless [Config.Clean] is set. Only messages sent by this
// run, known by their message IDs, are deleted.
//
// Limits: consumers of the queue receive the probe's messages. SQS cannot receive by group,
// so Clean also receives other senders' messages. It makes each visible again immediately,
// but the message's receive count grows by one. Clean is therefore refused for a queue with
// a dead-letter queue, and it stops when it no longer receives messages of this run.
package probe
