// Package sqstest is SQS in memory, FIFO queues above all, that answers as AWS
// does.
//
// Problem: a FIFO queue swallows a duplicate for five minutes and answers it with
// plain success. What a producer does about that cannot be tested against AWS
// without waiting, and not against a mock that knows only what its author thought
// of.
//
// Guarantee: deduplication, sequence numbers, batch answers, order within groups,
// visibility, dead letters and errors follow what was recorded from AWS, through
// either door: the methods of a [Queue], which have the signatures of *sqs.Client,
// and [Server], which speaks AWS JSON 1.0. FACTS.md lists what is known, by the
// numbers that comments name; each fact has a test that runs through both doors,
// and what nobody has recorded is a field of [Config]. Each source file begins with
// the list of its known deviations. Beyond AWS, the queue tells what it stored
// ([Queue.Messages]) and what it swallowed and why ([Queue.Suppressed]), lets its
// clock be moved ([Queue.Advance]), and fails on demand ([Queue.Inject]).
//
// Limits: standard queues as far as a client needs them, in order and each message
// once. No permissions, no credentials, no query protocol. Nothing is
// persistent, and a queue keeps every message that it ever stored, so that a test
// can ask for it: memory grows with the number of sends, unless
// Config.DiscardDeleted is set. The window takes some 75 bytes an ID and holds 33
// million, more than the quotas of SQS let live.
//
// # In a unit test
//
// A queue goes wherever a narrow interface of *sqs.Client is asked for, and
// [Queue.Client] is a real client for code that wants one. Neither opens a socket.
//
//	q, err := sqstest.NewQueue(sqstest.Config{})
//	producer := NewProducer(q.Client(), q.URL())
//
// # In a bubble
//
// Inside testing/synctest the queue lives in the bubble's virtual time: a test
// sleeps for five minutes and is done at once. Make the queue, the client and all
// that uses them inside the bubble, and open no sockets there: a goroutine that
// waits for the network keeps the clock from running.
//
// # Several queues
//
// A [Server] is the queues of an account, with the calls that make and tie them
// together, in process and through [Server.Client]: queues that are created and
// deleted, dead-letter queues, message move tasks. [Server.Queue] returns the value
// behind a name.
//
// # Over HTTP
//
// A [Server] is an http.Handler. Behind httptest.NewServer, or as the command
// "sqsfifo serve", any AWS SDK in any language can talk to its queues. Outside a
// bubble the window is moved by [Queue.Advance] or [Server.Advance], and over HTTP by
//
//	POST /_sqsfifo/clock       {"advance_seconds": 301}
//
// # Why a message vanished
//
// [Queue.Suppressed] tells of each swallowed send which message it was a duplicate
// of, by which ID, in which scope, and how long the window still lasts;
// [Queue.Window] lists what the queue remembers; [Simulate] answers for a log of
// sends without a queue. Over HTTP the same is
//
//	GET /_sqsfifo/suppressed
//	GET /_sqsfifo/window
//
// # In CI
//
// [TestProducer] is the compliance suite that the KFM contract asks of each
// producer, whether it uses this module or not; [CheckProducer] is the same for
// tools.
package sqstest
