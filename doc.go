// Package sqsfifo sends typed events to Amazon SQS FIFO queues so that no event is
// lost to deduplication, and none is delivered twice because its body changed on a
// retry.
//
// # Problem
//
// A FIFO queue with content-based deduplication remembers the SHA-256 of each
// accepted body for five minutes and swallows a second message with the same
// body. Attributes never count, so two events that differ only in an attribute
// become one; a body with a fresh ID or clock reading makes two events of one
// retry. SQS answers both with plain success.
//
// # Guarantee
//
//   - A body is a function of the event: the same event has the same bytes and
//     the same hash on any machine, on any day. [Producer.Build] shows them.
//   - What distinguishes two events is in the body, as dedupe_key. A message that
//     keeps it only in an attribute is refused before it is sent.
//   - Each event ends in one [Receipt] or one typed error, and [FateOf] says what
//     the error means: the event is not stored, or in doubt, or something else was
//     stored. No outcome is stronger than its proof: a receipt needs SQS's message
//     ID, sequence number and digests; "not stored" needs SQS's own refusal, or a
//     request that never left this machine.
//   - Doubt belongs to the event, not to the call. Whether an event may already be
//     stored is looked up before each attempt of each call, and an attempt that might
//     arrive after the deduplication interval of the first one is never made.
//   - Order within a message group is the order of the calls, also under retries and
//     partial failures.
//   - A duplicate is a success that says so: [Receipt].Duplicate.
//   - With a store ([StoreConfig]) the first and the last hold beyond the deduplication
//     interval and across restarts, for as long as the store keeps an event.
//
// # Limits
//
//   - Without a store exactly-once ends with the deduplication interval: an event that is
//     submitted again after five minutes is delivered again. Consumers still need an
//     idempotent handler for those.
//   - Without a store the producer remembers what it sent in memory. After a restart the body
//     hash still protects the queue, as SQS itself holds it. What is forgotten is
//     which key had which body, so that a key reused across a restart is not
//     noticed; which messages were duplicates of earlier ones; and which events were
//     in doubt: a process that resends after a restart has to keep
//     [InDoubtError].ResendBefore itself.
//   - The proof is that of an honest network that delivers no request later than 20
//     seconds after it was made.
//   - With the order Strict one event of a group is under way at a time, so a
//     group moves at one event per round trip; throughput comes from having many
//     groups. [Runs] moves ten, at a price that its comment names.
//
// # Use
//
// Describe what an event is once, in [Config].Identify, and send:
//
//	producer, err := sqsfifo.NewProducer(client, sqsfifo.Config[Scene]{
//		QueueURL: queueURL,
//		Source:   "kfm.remote-sensing.landsat-refresh",
//		Identify: func(s Scene) (sqsfifo.Identity, error) {
//			key, err := sqsfifo.JoinKey("landsat", s.ID)
//			return sqsfifo.Identity{DedupeKey: key, Group: s.PathRow, Time: s.Acquired}, err
//		},
//	})
//	receipt, err := producer.Send(ctx, scene)
//
// Several event types on one queue share a [Queue], see [NewProducerOn]. Package
// sqstest has the fake queue for unit tests, package lint the rules on messages,
// package canonicaljson the bytes.
//
// The envelope is that of the KFM message body contract v11.2.3, the idempotency
// key that of the KFM key specification v10.3.1. Numbers such as F-001 in this
// module name observed facts about SQS, listed in sqstest/FACTS.md; package sqstest has a test for
// each fact that the fake follows.
package sqsfifo

// Version is the version of this module that telemetry reports.
const Version = "0.1.0"
