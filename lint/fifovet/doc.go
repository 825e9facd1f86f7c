// Package fifovet finds, in Go source, what makes SQS FIFO queues lose or
// duplicate events: before it is ever sent.
//
// # Problem
//
// A FIFO queue compares deduplication IDs, or hashes of bodies, and nothing
// else. A program that mints an ID for each attempt has each retry stored as a
// new message; one that leaves the identity of an event to a message attribute
// has the second of two events dropped. Both compile, both pass their tests,
// and SQS answers both with success. The mistake is seldom where the message is
// sent: it is behind a helper that returns a UUID, or before a wrapper that
// takes the ID as a string.
//
// # Guarantee
//
// [Analyzer] follows values backwards from each field of a message, field by
// field, through variables, closures, calls, and the functions of other packages,
// and reports only what it saw on such a way:
//
//   - A value that is not known, such as a parameter or the result of a call
//     into a package without facts, is no violation.
//   - A constant is reported only where every part of the value is constant.
//   - The rules on the AWS SDKs are silent without evidence that the queue is
//     FIFO: a group ID, or a constant queue URL or topic ARN that ends in
//     ".fifo".
//   - Tests may do what they like: files named _test.go, files with a build tag
//     for integration or end-to-end tests, and functions that take a
//     testing.TB.
//
// It knows SendMessage, SendMessageBatch, Publish and PublishBatch of the AWS
// SDK for Go, v1 and v2, whether called on the client or on an interface with
// these methods; and the Identity, Config, Message and Producer of this
// project. A package that can neither send nor hand on something random costs a
// look at its types: no SSA form is built for it.
//
// Each diagnostic has the rule's ID as its category. The rules, with their
// wording, are those of package lint; where one of them calls for less than its
// severity in a case, the message says so after the ID: "SF002: warning: ...".
// Infos are reported only for the rules named by -enable.
//
// # Ignoring a finding
//
//	//sqsfifo:ignore SF002 -- two deliveries are what this endpoint is for
//
// on the line of the finding or on the one above it silences it. The reason is
// compulsory, several IDs are separated by commas, and a comment that silences
// nothing is itself reported. The comments nolint:sqsfifo and lint:ignore SF002
// of other tools are honoured. Files that are generated get findings, but no
// fixes.
//
// # Limits
//
//   - Calls through interfaces and function values are not followed, save for
//     the sends themselves, functions in package-level variables that are set
//     once, and clocks and generators that are called so: now, newID. An ID that
//     passes another one is unknown.
//   - Which of two branches is taken is not looked at, nor the order of
//     statements: an ID that is minted and then overwritten is reported as a
//     fallback.
//   - What a callee of another package does with its arguments is known for the
//     encoders, hashes and formatters of the standard library and a few others,
//     for functions of the form func(T) *T, and for functions that end in a
//     send or start at a clock or a random source. A pass-through function
//     elsewhere ends the search.
//   - Elements of a slice are not told apart, and neither are two values that
//     are appended to one.
//   - Channels, files, databases and reflection end the search.
//   - Whether the fields that reach the deduplication ID tell two events apart
//     is beyond any analysis of source. The rules on messages, in package lint,
//     and the compliance tests of sqstest look at that from the other side.
//   - Whether the queue deduplicates by content cannot be seen. Without an
//     explicit ID, it is assumed to.
package fifovet
