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
// A reported violation begins with the number of the broken invariant:
//
//	I1  the handler is called for the messages of a group in order, and only after
//	    every earlier message was deleted, parked or handled
//	I2  two handlers of a group never run at the same time, even in two consumers,
//	    unless a visibility timeout ended
//	I4  without crashes a message reaches a dead-letter queue only if its handler fails,
//	    and it is parked only after Env.Attempts failed calls of the handler
//	I5  every handled message is deleted
//	I6  after Run has returned, no handler is called, no call of SQS is made, and no
//	    message is in flight
//	I7  a message stays hidden while its handler runs
//	I8  if a consumer loses a message, the context of its handler ends, and it ends before
//	    another handler is called for the message
//	I9  the number of received, unfinished messages is bounded
//	I11 for a standard queue, the consumer returns an error, or handles all other
//	    messages after one has failed
//	I12 at a quota of 300 calls a second, 10,000 messages are handled in 20 s
//
// The cases do not check I3 and I10. I3 (an effect happens once) depends on the
// consumer's store: see HandleTx in package consumer. I10 is about AWS Lambda: see
// package lambdasqs.
package consumertest
