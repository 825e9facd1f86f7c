// Package lint holds the rules that a message has to keep so that an SQS FIFO
// queue with content-based deduplication neither loses nor doubles its event.
//
// # Problem
//
// Such a queue hashes the body and nothing else. Two events that differ only in
// a message attribute become one: SQS answers the second send with success and
// drops it. A body that says the same in other bytes, with a blank more, members
// in another order or an ID of its own for each attempt, is the opposite: a
// retry is stored as a second message. Neither shows in any answer of SQS. The
// Kansas Frontier Matrix forbids both, in its message body contract v11.2.3.
//
// # Guarantee
//
// [Check] holds one outgoing message against the table below and names each
// violation by rule, field, position, consequence and way out. A message
// without findings carries in its body every identity that one of its
// attributes announces by name, is the envelope of the contract in canonical
// form, and breaks no limit of SQS listed under F-017, F-018, F-072 to F-074
// and F-077 to F-079. The verdict depends on the message alone, never on time
// or place, and it comes for any input.
//
// # Limits
//
//   - [Check] sees one message at a time. A dedupe key that is used again for
//     another event, or one body sent with two sets of attributes, takes two
//     messages to be seen: [Stream] compares each with those before it.
//   - SF001 goes by the attribute's name. An identity under a name that is not on
//     its list is not seen.
//   - SF001 compares text. The number 42 of the body is not the attribute 42.0; and
//     a value that the body has for another reason counts as carried.
//   - Whether dedupe_key tells all events of a source apart, and whether event_id
//     and event_time come from the event and not from the clock, cannot be read
//     off one message.
//   - What the queue is set to (FIFO, content-based deduplication, scope) is not
//     known here, except for its size limit.
//
// # Rules
//
// Those from SF001 to SF020 are, some alone and some besides, rules on Go source,
// which package fifovet checks. [Rules] has severities, wordings, sources, fixes,
// and what is bad and good.
//
//	SF001  attr-only-identity           what identifies the event stands in an attribute and not in the body
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
//	SF012  volatile-body                what changes with each attempt, or has no fixed form, reaches the body
//	SF013  attr-copies-key              an attribute repeats the key from another expression
//	SF014  const-key-distinct-events one constant dedupe key for several types of events
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
