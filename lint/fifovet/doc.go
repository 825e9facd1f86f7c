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
//   - On the AWS SDKs there is no error without evidence that the queue is FIFO: a
//     queue URL or topic ARN that as a whole is a constant ending in ".fifo", or a
//     deduplication ID on every way to the send. A group ID is none, because standard
//     queues take it, too; with it, and an unknown queue, findings are warnings that
//     say "if this queue is FIFO". A constant name of a standard queue means silence.
//   - A deduplication ID that is nil on some way to the send is missing on that way.
//     Branches that exclude each other are not on one way.
//   - What identifies a request, an attempt, a host or a setting is not taken for the
//     identity of an event, and neither is an attribute beside a body that has an ID
//     of its own, unless its name says that it is the event's.
//   - What one change mends is one finding, whose text and related positions name
//     the rest.
//   - Tests may do what they like: files named _test.go, files with a build tag
//     for integration or end-to-end tests, and functions that take a
//     testing.TB.
//
// testdata/src/example.com/sites has more than 200 call sites in the shapes of real
// programs. TestSites holds the analyzer to them: at least 95 % of the wrong ones are
// found, no right one is an error, and at most 2 % are warnings.
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
// The wrong call sites of the test data that are missed are of these three kinds:
//
//   - Functional options: what a function value does to a message is not followed,
//     so that a message that is handed to one is unknown ("functional option").
//   - A message that is passed to a function by value and returned, completed, as
//     another one ("input by value").
//   - Attributes whose names come from a slice or another table, or from arguments
//     in pairs: elements of a slice are not told apart ("table of names").
//
// Further limits, which the shape of the analysis brings:
//
//   - Calls through interfaces and function values are not followed, save for
//     the sends themselves, functions in variables and fields that only this package
//     can set, and clocks and generators that are called so: now, newID,
//     IDGenerator.NewID. An ID that passes another one is unknown.
//   - Ways through a function are told apart only for the question whether a field
//     is set: an ID that is minted and then overwritten is reported as a fallback.
//   - What a callee of another package does with its arguments is known for the
//     encoders, hashes and formatters of the standard library and a few others,
//     for functions of the form func(T) *T, and for functions that end in a
//     send, start at a clock or a random source, or call a function again until it
//     succeeds. A pass-through function elsewhere ends the search.
//   - A retry is seen in a loop, in a function that calls itself or its argument
//     again, and in the callers of a function within the package, three deep. One
//     that is in another package than what mints the ID is not.
//   - Elements of a slice are not told apart, and neither are two values that
//     are appended to one.
//   - Channels, files, databases and reflection end the search.
//   - Whether the fields that reach the deduplication ID tell two events apart
//     is beyond any analysis of source. The rules on messages, in package lint,
//     and the compliance tests of sqstest look at that from the other side.
//   - Whether the queue deduplicates by content cannot be seen. Without an
//     explicit ID, it is assumed to.
//   - Where the names of a package, a function or an attribute are all that is known,
//     they decide; names.go has them all.
package fifovet
