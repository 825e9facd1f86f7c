// Package sqsfifo sends typed events to Amazon SQS FIFO queues so that no event is lost to
// deduplication, and none is delivered twice because its body changed on a retry.
//
// # Problem
//
// A FIFO queue with content-based deduplication remembers the SHA-256 of each accepted body
// for five minutes and drops a second message with the same body. Attributes never count,
// so two events that differ only in an attribute become one message. A body with a fresh ID
// or clock reading makes each retry a second message. SQS reports success in both cases.
//
// # Guarantee
//
//   - A body is a function of the event: the same event has the same bytes and the same
//     hash on any machine, on any day. [Producer.Build] returns the bytes.
//   - The identity of an event is in the body, as dedupe_key. A message with its identity
//     only in an attribute is refused before the send, if the attribute's name is one of
//     the listed names of package lint.
//   - Each event ends with one [Receipt] or one typed error, and [FateOf] classifies the
//     error: not stored, in doubt, or altered. No outcome is stronger than its proof: a
//     receipt needs SQS's message ID, sequence number and digests; "not stored" needs SQS's
//     own refusal, or a request that never left this machine.
//   - Doubt belongs to the event, not to the call. Before each attempt of each call the
//     producer checks whether the event may already be stored, and never makes an attempt
//     that might arrive after the deduplication interval of the first attempt.
//   - Order within a message group is the order of the calls to one producer or [Queue],
//     even after retries and partial failures.
//   - A duplicate is a success, reported in [Receipt].Duplicate.
//   - With a store ([StoreConfig]) an event keeps its first bytes, and its duplicates are
//     reported, beyond the deduplication interval and across restarts, for as long as the
//     store keeps the event.
//
// # Limits
//
//   - Without a store, a producer knows only the attempts of its own process since the
//     start of the process. After "not stored", the event may still be stored by another
//     process, or by this process before a restart.
//   - With a store, all times are those of the store's clock. If this clock is set back
//     by more than the store tolerates, for example five seconds in package sqlstore, an
//     old claim looks young, and the event may be sent again outside of the interval.
//     Packages sqlstore and redisstore detect most backward steps and make the events in
//     progress unresolved; dynamostore detects none. See [StoreConfig].
//   - Without a store, deduplication ends with the interval: a resend after five minutes is
//     delivered again. Consumers need an idempotent handler for such events.
//   - Without a store, the memory of sent events is in this process. After a restart SQS
//     still deduplicates by the body hash. Three facts are lost: the body of each key, so a
//     key reused across a restart goes unnoticed; the duplicates among earlier messages;
//     and the events in doubt. A process that resends after a restart has to keep
//     [InDoubtError].ResendBefore itself.
//   - A suspension of the machine counts as elapsed time; a step of the wall clock does
//     not. On systems other than Linux a forward step counts as a suspension.
//   - The age of an event of another process is the difference between the time in its
//     sequence number and this machine's clock, corrected by the Date header of SQS's
//     answers. With a client that is not the SDK's, the clock must be right to 5 seconds.
//   - The guarantees assume that the network delivers no request later than 20 seconds
//     after the request was made.
//   - With the order [Strict] a group has one event in flight, so a group sends one event
//     per round trip; use many groups for a high rate. [Runs] sends up to ten events of a
//     group in one request, with the limits that its comment describes.
//
// # Use
//
// Define the identity of an event in [Config].Identify, and send:
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
// Several event types on one queue share a [Queue], see [NewProducerOn]. Package sqstest
// has the fake queue for unit tests, package lint the rules on messages, and package
// canonicaljson the canonical form.
//
// The envelope follows the KFM message body contract v11.2.3, and the idempotency key the
// KFM key specification v10.3.1. Numbers such as F-001 refer to observed facts about SQS,
// listed in sqstest/FACTS.md; package sqstest tests each fact that the fake implements.
package sqsfifo

// Version is the version of this module in telemetry.
const Version = "0.1.0"
