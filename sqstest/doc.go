// Package sqstest provides an in-memory SQS that responds as AWS does. FIFO queues are
// its main purpose.
//
// Problem: a FIFO queue suppresses a duplicate for five minutes and answers the send with
// plain success. A test against AWS takes five minutes for each window. A mock contains
// only its author's expectations.
//
// Guarantee: deduplication, sequence numbers, batch answers, order within groups,
// visibility, dead letters and errors follow recordings of AWS (answers that AWS gave to
// real requests), through two APIs. The methods of a [Queue] have the signatures of
// *sqs.Client, and [Server] speaks AWS JSON 1.0. FACTS.md lists the known facts about
// AWS. A number such as F-001 in a comment refers to this list. Each fact has a test
// through both APIs. Where no recording shows the behaviour of AWS, a field of [Config]
// selects it. Each source file begins with the list of its known deviations. Beyond AWS,
// the queue shows its stored messages ([Queue.Messages]) and its suppressed sends with
// the reason ([Queue.Suppressed]). Tests can move its clock ([Queue.Advance]) and inject
// faults ([Queue.Inject]).
//
// Limits: standard queues have only the features that a client needs, and deliver in
// order and each message once. No permissions, no credentials, no query protocol. Nothing
// is persistent. A queue keeps every stored message for the test, so memory grows with
// the number of sends, unless Config.DiscardDeleted is set or [Server.SetMemoryLimits] sets a
// limit. The deduplication window (the IDs of the last five minutes) takes some 75 bytes
// an ID and holds 33 million IDs, more IDs than the quotas of SQS permit in five minutes.
//
// # In a unit test
//
// A queue implements every narrow interface of *sqs.Client, and [Queue.Client] returns a
// real client for code that needs *sqs.Client. Neither opens a socket.
//
//	q, err := sqstest.NewQueue(sqstest.Config{})
//	producer := NewProducer(q.Client(), q.URL())
//
// # In a bubble
//
// Inside testing/synctest the queue lives in the bubble's virtual time: a test sleeps for
// five minutes and is done immediately. Make the queue, the client and all their users
// inside the bubble. Open no sockets there: a goroutine that waits for the network stops
// the bubble's clock.
//
// # Several queues
//
// A [Server] holds the queues of an account and has the calls for several queues, in
// process and through [Server.Client]: creating and deleting queues, dead-letter queues,
// message move tasks. [Server.Queue] returns a queue by name.
//
// # Over HTTP
//
// A [Server] is an http.Handler. With httptest.NewServer, or as the command "sqsfifo
// serve", any AWS SDK in any language can use its queues. Outside a bubble,
// [Queue.Advance] or [Server.Advance] moves the clock and with it the window. Over HTTP,
// this request does the same:
//
//	POST /_sqsfifo/clock       {"advance_seconds": 301}
//
// [Queue.Inject] injects faults. Over HTTP, this request does the same:
//
//	POST /_sqsfifo/faults      {"queue": "events.fifo", "fault": "lose_answer", "calls": 1}
//
// GET lists the faults that wait for a call, and DELETE removes faults. A web page can
// reach an address on loopback: "sqsfifo serve" checks the Host and the Origin of each
// request, and a program with its own [Server] should do the same.
//
// # Why a message vanished
//
// For each suppressed send, [Queue.Suppressed] shows the original message, the common ID,
// the scope, and the remaining time in the window. [Queue.Window] lists the remembered
// IDs. [Simulate] gives the same facts for a log of sends, without a queue. Over HTTP,
// these requests return the suppressed sends and the remembered IDs:
//
//	GET /_sqsfifo/suppressed
//	GET /_sqsfifo/window
//
// # In CI
//
// The KFM contract requires a compliance suite from each producer, with or without this
// module. The suite is package sqstest/compliance.
package sqstest
