// Package lint has the rules for messages on an SQS FIFO queue with content-based
// deduplication. A message that breaks no rule is neither lost nor stored twice.
//
// # Problem
//
// Such a queue hashes only the body. If two events have equal bodies and different
// attributes, SQS drops the second message, but answers with success. The opposite mistake
// is a retry with a changed body, such as one more space, members in another order, or a
// new ID: SQS stores the retry as a second message. The answers of SQS show neither
// mistake. The message body contract v11.2.3 of the Kansas Frontier Matrix forbids both.
//
// # Guarantee
//
// [Check] checks one outgoing message against the table below. It names each violation by
// rule, field, position, consequence and fix. In a message without findings, the body is
// the contract's envelope in canonical form, and contains the value of each attribute with
// an identifying name, such as event_id. The message also keeps the limits of SQS on IDs,
// size, delay, characters and attributes (F-017, F-018, F-072 to F-074, F-077 to F-079).
// The findings depend on the message alone, and Check returns a result for any input.
//
// # Limits
//
//   - [Check] sees one message at a time. To find two messages with the same dedupe key
//     or the same body by mistake, use [QueueChecker]. It compares each message with the
//     earlier messages.
//   - SF001 looks for the attribute's name in a list and misses identities under other
//     names.
//   - SF001 compares text. The number 42 of the body is not the attribute 42.0; a value
//     that the body contains for another reason counts as present.
//   - One message cannot show that dedupe_key distinguishes all events of a source, or
//     that event_id and event_time come from the event instead of the clock.
//   - The queue's settings (FIFO, content-based deduplication, scope) are unknown here,
//     except for its size limit.
//
// # Rules
//
// The rules SF001 to SF020 are about Go source; some are also about messages. Package
// fifovet checks Go source, except SF020, which the command "sqsfifo vet" checks. [Rules]
// has severities, wordings, sources, fixes and examples. After the ID and the name of each
// rule, the table describes code or messages that break the rule. In SF013, "the key" is
// the body's member with the attribute's name, and other code computes the attribute.
//
//	SF001  attr-only-identity           the identity of the event is in an attribute and not in the body
//	SF002  nondeterministic-dedup-id    a clock or a random source reaches the deduplication ID
//	SF003  constant-dedup-id            the deduplication ID is a constant
//	SF004  constant-body                the body is a constant and there is no deduplication ID
//	SF005  entity-key                   the deduplication ID is the group ID
//	SF006  reminted-on-retry            an ID is minted inside the loop that retries the send
//	SF007  random-group-id              a clock or a random source reaches the group ID
//	SF008  raw-send-bypass              a raw send to a FIFO queue in a module that has a producer
//	SF009  missing-group-id             the message has no group ID
//	SF010  invalid-id                   a group ID or deduplication ID that SQS refuses
//	SF011  fifo-delay                   a per-message delay on a FIFO message
//	SF012  volatile-body                a value that changes with each attempt, or has no fixed form, reaches the body
//	SF013  attr-copies-key              an attribute repeats the key from another expression
//	SF014  const-key-distinct-events    one constant dedupe key for several types of events
//	SF015  unread-batch-failures        the failed entries of a batch are not read
//	SF016  one-id-two-bodies            two bodies are sent with one deduplication ID
//	SF017  unflushed-producer           a producer sends asynchronously and is never flushed or closed
//	SF020  no-compliance-test           a package makes a producer and no test of it runs the compliance suite
//	SF030  invalid-json                 the body has no canonical JSON form
//	SF031  duplicate-name               an object of the body has a member twice
//	SF032  inexact-integer              an integer of the body that a double does not hold
//	SF033  not-canonical                the body is not in canonical form
//	SF040  envelope-members             the body is not the envelope with exactly its five members
//	SF041  old-envelope                 the body is an envelope of KFM v10.3.1
//	SF042  event-id                     event_id is not a lowercase UUIDv7
//	SF043  event-source                 event_source is not <organization>.<domain>.<pipeline>
//	SF044  event-time                   event_time is not RFC 3339 in UTC with the shortest fraction
//	SF045  dedupe-key                   dedupe_key is empty, too long or not plain text
//	SF046  payload                      payload is not a JSON object
//	SF047  unknown-dataset              the catalogue has no such dataset
//	SF050  too-large                    the message is larger than the queue takes
//	SF051  refused-character            the body has a character that SQS refuses
//	SF052  too-many-attributes          more than ten message attributes
//	SF053  invalid-attribute            an attribute that SQS refuses
//	SF060  body-with-other-attributes   a body that was sent with other attributes
//	SF061  key-reused                   a dedupe key that was sent with another body
//	SF062  event-id-reused              an event_id that was sent with another dedupe key
//	SF063  body-in-other-group          a body that was sent to another message group
//	SF064  dedup-id-reused              an explicit deduplication ID that was sent with another body
package lint
