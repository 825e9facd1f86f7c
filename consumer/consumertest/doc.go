// Package consumertest checks that a consumer of a FIFO queue handles the messages of
// each group in order and loses no message. The cases run on virtual time against the
// fake queue of package sqstest, with faults of SQS, crashes and two running consumers:
//
//	func TestConformance(t *testing.T) {
//		consumertest.TestConsumer(t, func(ctx context.Context, e consumertest.Env) error {
//			// Build the consumer with e, run it until ctx ends, and shut down.
//		})
//	}
//
// Every case names the invariant that it checks:
//
//	I1  handlers of a group start in order, each after every earlier message was
//	    deleted, parked or handled
//	I2  two handlers of a group never overlap, across consumers, unless a
//	    visibility timeout ended
//	I4  without crashes a message reaches a dead-letter queue only if its handler fails
//	I5  every handled message is deleted
//	I6  after Run returned no handler starts, SQS gets no call and no message is in flight
//	I7  a message stays hidden while its handler runs
//	I8  a handler learns that it lost its message before another handler starts with the message
//	I9  the number of received, unfinished messages is bounded
//	I11 a standard queue is refused, or a failed message does not stop the others
//	I12 at a quota of 300 calls a second, 10,000 messages are handled in 20 s
//
// I3, an effect happens once, depends on the store of a consumer: see HandleTx of
// package consumer. I10 is about AWS Lambda: see package lambdasqs.
package consumertest
