// Package probe tests how a queue deduplicates, by sending messages.
//
// Problem: a queue's treatment of equal bodies depends on its attributes, on the
// permission to read them, and on the service: AWS, or an emulator with other rules. A
// producer that assumes another treatment loses or doubles events, and nothing reports
// it before.
//
// Guarantee: each [Check] reports the messages sent and the facts proven by the answers.
// The body of each message says that it is a probe; the message groups are unique to the
// run. No message is received unless [Config.Clean] is set. Only messages sent by this
// run, known by their message IDs, are deleted.
//
// Limits: consumers of the queue receive the probe's messages. Clean also receives other
// senders' messages, because SQS does not receive by group: each is given back
// immediately, and its receive count grows by one. Clean is therefore refused for a queue
// with a dead-letter queue, and it stops when it no longer receives messages of this run.
package probe
