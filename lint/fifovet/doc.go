// Package fifovet finds, in Go source, code that makes SQS FIFO queues lose or
// duplicate events, before the code runs.
//
// # Problem
//
// A FIFO queue compares only deduplication IDs, or hashes of bodies. If a program creates
// a new ID for each attempt, each retry is stored as a new message. If two events differ
// only in a message attribute, the second event is dropped. Both programs compile and pass
// their tests, and SQS answers both with success. The mistake is seldom at the send: a
// helper returns a UUID, or a wrapper takes the ID as a string.
//
// # Guarantee
//
// [Analyzer] follows values backwards from each field of a message, field by field,
// through variables, closures, calls, and the functions of other packages. It reports
// only values found on such a path:
//
//   - An unknown value is not a violation, for example a parameter, or the result of a
//     function about which the analyzer has no facts (see below).
//   - A constant is reported only if every part of the value is constant. There are two
//     exceptions: a constant part that makes an ID invalid (SF010), and a delay that is
//     constant on some path (SF011).
//   - With the AWS SDKs an error requires evidence of a FIFO queue: a queue URL or topic
//     ARN that ends in a constant such as "orders.fifo", or a deduplication ID on every
//     path to the send. For a finding about the ID itself, one path is enough. A group ID
//     is not evidence, because standard queues also accept a group ID. With a group ID and
//     an unknown queue, findings are infos with the text "if this queue is FIFO", unless the
//     URL comes from a variable or a setting with "fifo" in its name. For a constant name
//     of a standard queue, there are no findings. Only SF015 (unread failures
//     of a batch) is about all queues and needs no evidence.
//   - If a deduplication ID is nil on some path to the send, it is missing on this path.
//     Branches that exclude each other are not on one path.
//   - A setting does not identify an event, nor does a request's, attempt's or host's ID.
//   - A finding about an attribute missing in the body is only an info if the body contains
//     the event's ID. It is also an info if the body contains another ID, such as a
//     customer's, unless the attribute's name means an event's ID, such as event_id.
//   - The analyzer combines the findings in one function with the same cause, such as one
//     call of a random source. The text and the related positions of the combined finding
//     name the other places.
//   - Tests are exempt: files named _test.go, files with a build tag for integration or
//     end-to-end tests, and functions that take a testing.TB.
//
// testdata/src/example.com/sites has more than 200 call sites in the shapes of real
// programs. TestSites requires findings at 95 % of the wrong sites or more, errors at
// no right site, and warnings at 2 % of the right sites or fewer.
//
// The analyzer knows SendMessage, SendMessageBatch, DeleteMessageBatch, Publish and
// PublishBatch of the AWS SDK for Go, v1 and v2, called on the client or on an interface
// with these methods. It also knows the types Identity, Config, Message and Producer of
// this project. It skips most packages that neither send messages, directly or indirectly,
// nor return random values.
//
// Each diagnostic of a rule has the rule's ID as its category. The rules and their wording
// are in package lint. If a diagnostic has a lower severity than its rule, the severity
// follows the ID: "SF002: warning: ...". Infos are reported only for the rules named by
// -enable, and those about a queue that may be FIFO also with -notes, which sqsfifo vet
// sets.
//
// # Ignoring a finding
//
//	//sqsfifo:ignore SF002 -- two deliveries are what this endpoint is for
//
// on the line of the finding or on the previous line silences the finding. The reason
// is compulsory, several IDs are separated by commas, and an unused comment is itself
// reported. The comments nolint:sqsfifo and lint:ignore SF002 of other tools are
// honoured. Generated files get findings, but no fixes.
//
// # Reach and limits
//
// TestShapes measures how much the analyzer finds in generated code. This code sends
// values from various sources, such as a clock, and passes them to the send in various
// ways, such as through a helper function. docs/rules.md lists, under each rule, the code
// that the analyzer does not follow, with examples that TestLimits analyzes. In general:
//
//   - Results of function values, what an iterator yields, results of interface methods and
//     what a channel carries are parts of values, and are followed like fields.
//   - Functions of other packages are known by facts: whether a function sends a message,
//     returns a clock reading or a random value, or calls another function until success.
//     The encoders, hashes and formatters of the standard library are known by name. If
//     only a name is known, such as newID or IDGenerator.NewID, the name decides.
//   - All elements of a slice count as one element. Paths through a function matter only
//     for the question whether a field is set: a random ID in a field is reported even if
//     the code always replaces it later.
//   - A retry is a loop around a send, a recursive call, or a function such as
//     retry.Do(send). The retry may be in a caller within the package, up to three calls
//     away.
//   - The source shows neither whether the fields in a deduplication ID identify an event,
//     nor whether content-based deduplication is on. For a message without an explicit ID,
//     the analyzer assumes that it is on.
package fifovet
