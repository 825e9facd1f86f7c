// Package sqsfifo sends typed events to Amazon SQS FIFO queues so that deduplication
// loses no event, and no event is delivered twice because its body changed on a retry.
//
// # Use
//
// Define the identity of an event in [Config].Identify, and send:
//
//	producer, err := sqsfifo.NewProducer(sqsfifo.NewClient(cfg), sqsfifo.Config[Scene]{
//		QueueURL: queueURL,
//		Source:   "kfm.remote-sensing.landsat-refresh",
//		Identify: func(s Scene) (sqsfifo.Identity, error) {
//			key, err := sqsfifo.JoinKey("landsat", s.ID)
//			return sqsfifo.Identity{DedupeKey: key, Group: s.PathRow, Time: s.Acquired}, err
//		},
//	})
//	receipt, err := producer.Send(ctx, scene)
//
// A first program needs these names, and no others:
//
//   - [NewClient] makes the SQS client, and [NewProducer] a producer for it, from a [Config].
//   - [Config].Identify returns an [Identity]. [JoinKey] makes its key from several values.
//   - [Producer.Preflight] checks the queue at the start. [Producer.Close] ends the producer.
//   - [Producer.Send], [Producer.SendBatch] and [Producer.SendAsync] send events. Each event
//     ends with a [Receipt] or an error.
//   - [FateOf] classifies the error: [FateNotStored], [FateInDoubt] or [FateAltered]. An
//     [InDoubtError] says until when a resend is safe.
//   - [StoreConfig] adds a memory for longer than five minutes.
//
// # Problem
//
// A FIFO queue with content-based deduplication remembers the SHA-256 of each accepted
// body for five minutes, the deduplication interval, and drops a second message with the
// same body. Attributes do not count, so two events that differ only in an attribute
// become one message. A fresh ID or the current time in the body makes each retry a new
// message. SQS reports success in both cases.
//
// # Guarantee
//
//   - The body depends only on the event: the same event has the same bytes and the same
//     hash on any machine, on any day. [Producer.Build] returns the bytes.
//   - The identity of an event is in the body, as dedupe_key. A message with its identity
//     only in an attribute is refused before the send, if the attribute's name is one of
//     the listed names of package lint.
//   - Each event ends with one [Receipt] or one typed error. [FateOf] classifies the
//     error: not stored, in doubt (SQS may have stored the event) or altered (SQS stored
//     a changed message).
//   - Each outcome is proven. A receipt requires SQS's message ID, sequence number and
//     matching digests. "Not stored" requires a refusal by SQS, or a request that never
//     left this machine. Without such a proof, the event is in doubt.
//   - Each call takes earlier calls with the same event into account. Before each attempt,
//     the producer checks whether SQS may already have the event. It makes no attempt that
//     might arrive after the deduplication interval of the first attempt.
//   - The events of a message group are stored in the order of the calls to one producer
//     or [Queue], even after retries and partial failures.
//   - A duplicate is a success, reported in [Receipt].Duplicate.
//   - With a store ([StoreConfig]), the producer sends the same bytes in each attempt and
//     reports duplicates even after the deduplication interval and after restarts, for as
//     long as the store keeps the event.
//
// # Limits
//
//   - Without a store, a producer knows only the attempts of this process since the
//     start of the process. After "not stored", another process, or this process before a
//     restart, may still have stored the event.
//   - With a store, all times are readings of the store's clock. If this clock is set
//     back by more than the store tolerates, for example five seconds in package
//     sqlstore, an old claim looks young. The event may then be sent again after the
//     deduplication interval. Packages sqlstore and redisstore detect most backward steps
//     and make the events in progress unresolved (see [UnresolvedPolicy]). Package
//     dynamostore detects none.
//   - Without a store, deduplication ends with the interval: a resend after five minutes
//     is delivered again. Consumers need an idempotent handler for such events.
//   - Without a store, a restart loses the memory of sent events. SQS still deduplicates
//     by the body hash, but the producer does not notice a key used again for another
//     event, does not report duplicates of earlier messages, and does not know the events
//     in doubt. A process that resends after a restart has to keep
//     [InDoubtError].ResendBefore itself.
//   - A suspension of the machine counts as elapsed time; a step of the wall clock does
//     not. On systems other than Linux a forward step counts as a suspension.
//     After a suspension, a new send of an earlier event may wait for up to about two
//     minutes, if a submission from before the suspension has no outcome yet: the producer
//     keeps old records for this submission.
//   - If another process sent an event first, the producer computes the age of this
//     message. It compares the time in SQS's sequence number with this machine's clock,
//     and corrects the clock by the Date header of SQS's answers. With a client other
//     than the SDK's, the clock must be right to 5 seconds.
//   - The guarantees assume that the network delivers no request later than 20 seconds
//     after the request was made.
//   - With [OrderStrict], a group has one event in flight, so it sends one event per
//     round trip; use many groups for a high rate. With [OrderRuns], a request
//     contains up to ten events of a group. Their order may change if SQS stores only a
//     part of the request.
//
// # Beside the producer
//
// Several event types on one queue share a [Queue], see [NewProducerOn]. Package sqstest
// has the fake queue for unit tests, package lint the rules on messages, and package
// canonicaljson the canonical form.
//
// The envelope (the JSON object in the body) follows the KFM message body contract
// v11.2.3. The idempotency key follows the KFM key specification v10.3.1. Numbers such as
// F-001 refer to observed facts about SQS, listed in sqstest/FACTS.md. Package sqstest
// tests each fact that the fake implements.
package sqsfifo

// Version is the version of this module in telemetry.
const Version = "0.1.0"
