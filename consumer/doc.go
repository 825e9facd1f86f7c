// Package consumer handles the messages of an Amazon SQS FIFO queue and keeps the order
// within each message group. It decodes the events that a producer of package sqsfifo
// sent. With a store, it recognises repeated deliveries of an event.
//
//	c, err := consumer.New(client, consumer.Config[Scene]{
//		QueueURL: url,
//		Handle:   func(ctx context.Context, m consumer.Message[Scene]) error { … },
//		Failure:  consumer.Failure{Action: consumer.ActionPark, ParkingQueue: parkingURL},
//	})
//	err = c.Run(ctx)
//
// # Order
//
// Messages of one message group are handled one at a time, in the order in which SQS
// stored them. A message is handled after every earlier message of its group was
// deleted, parked or skipped. Groups are handled concurrently.
//
// # Failures
//
// The consumer keeps a failed message. The message's group sleeps for a back-off, and the
// handler is called again. Meanwhile the visibility of all undeleted messages of the group
// is extended. Receive counts do not rise, so the later messages of the group do not move
// to a dead-letter queue. After the last attempt the message is parked, blocks its group
// or is skipped: see [Failure].
//
// If a handler kills its process, SQS delivers the message again with a higher receive
// count. After a message's second receive, the consumer receives one message at a time for one
// visibility timeout. Meanwhile it handles a message whose receive count is above half of the
// limit (see below) while no other message is in hand.
//
// A receive count alone neither deletes nor parks a message: a shutdown raises the count,
// too, and it goes along to a dead-letter queue. The limit of deliveries is
// [Failure].Deliveries, if it is set, or the maxReceiveCount of a redrive policy. Give a
// redrive policy a maxReceiveCount of at least 10.
//
// # Repeated deliveries
//
// SQS delivers a message again after a crash, after the end of a visibility timeout and
// after a redrive, and a producer may store an event twice. Without a store every delivery
// is handled. With [Config].Store a delivery whose key has a recorded success is deleted
// without a call of the handler. A crash between the effect and its record leaves a claim
// without an outcome. [Config].Guarantee then chooses: the effect may happen twice
// ([GuaranteeAtLeastOnce]), or the message waits for an operator ([GuaranteeAtMostOnce]). Only
// [Config].HandleTx makes the effect happen once: claim, effect and record are one
// transaction.
//
// # Contexts
//
// The context of a handler ends when the call has taken [Config].Timeout ([ErrTimeout]), all
// calls for the message have taken [Config].MaxHold ([ErrHeldTooLong]), the consumer loses the
// message ([ErrLost]) or shuts down ([ErrShutdown]); context.Cause returns the reason. Two handlers of a group never overlap if every
// handler returns when its context ends.
package consumer
