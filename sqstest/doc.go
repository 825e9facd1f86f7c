// Package sqstest provides an in-memory SQS that responds as AWS does. FIFO queues are
// its main purpose.
//
// Problem: a FIFO queue suppresses a duplicate for five minutes and answers it with
// plain success. What a producer does about that cannot be tested against AWS
// without waiting, and not against a mock that knows only what its author thought
// of.
//
// Guarantee: deduplication, sequence numbers, batch answers, order within groups,
// visibility, dead letters and errors follow what was recorded from AWS, through
// two APIs: the methods of a [Queue], which have the signatures of *sqs.Client,
// and [Server], which speaks AWS JSON 1.0. FACTS.md lists what is known, by the
// numbers that comments name; each fact has a test that runs through both,
// and what nobody has recorded is a field of [Config]. Each source file begins with
// the list of its known deviations. Beyond AWS, the queue shows what it stored
// ([Queue.Messages]) and what it suppressed and why ([Queue.Suppressed]), lets its
// clock be moved ([Queue.Advance]), and fails on demand ([Queue.Inject]).
//
// Limits: standard queues as far as a client needs them, in order and each message
// once. No permissions, no credentials, no query protocol. Nothing is persistent. A
// queue keeps every message that it ever stored, so that a test can ask for it: memory
// grows with the number of sends, unless Config.DiscardDeleted is set or
// [Server.SetBounds] sets a limit. The window takes some 75 bytes an ID and holds 33
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
// A [Server] holds the queues of an account, with the calls that make and tie them
// together, in process and through [Server.Client]: queues that are created and
// deleted, dead-letter queues, message move tasks. [Server.Queue] returns the queue
// of a name.
//
// # Over HTTP
//
// A [Server] is an http.Handler. Behind httptest.NewServer, or as the command
// "sqsfifo serve", any AWS SDK in any language can talk to its queues. Outside a
// bubble the window is moved by [Queue.Advance] or [Server.Advance], and over HTTP by
//
//	POST /_sqsfifo/clock       {"advance_seconds": 301}
//
// Faults are injected by [Queue.Inject], and over HTTP by
//
//	POST /_sqsfifo/faults      {"queue": "events.fifo", "fault": "lose_answer", "calls": 1}
//
// where GET lists those that wait for a call and DELETE removes them. A web page can
// reach an address on loopback: "sqsfifo serve" checks the Host and the Origin of each
// request, and a program that serves a [Server] should do the same.
//
// # Why a message vanished
//
// [Queue.Suppressed] shows for each suppressed send which message it was a duplicate
// of, by which ID, in which scope, and how long the window still lasts;
// [Queue.Window] lists what the queue remembers; [Simulate] answers for a log of
// sends without a queue. Over HTTP the same is
//
//	GET /_sqsfifo/suppressed
//	GET /_sqsfifo/window
//
// # In CI
//
// The compliance suite that the KFM contract asks of each producer, whether it uses
// this module or not, is the package sqstest/compliance.
package sqstest
