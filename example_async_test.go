package sqsfifo_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/smithy-go"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// A stream of events shares requests; each is told of once, in the order of its
// group.
func ExampleProducer_SendAsync() {
	ctx := context.Background()
	queue, err := sqstest.NewQueue(sqstest.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	c := config()
	c.QueueURL = queue.URL()
	producer, err := sqsfifo.NewProducer(queue, c)
	if err != nil {
		fmt.Println(err)
		return
	}
	var sent []string // all of one group, so that nothing is told of at once
	for _, s := range scenes(5, 1) {
		producer.SendAsync(ctx, s, func(r sqsfifo.Receipt, err error) {
			if err != nil {
				fmt.Println(err)
				return
			}
			sent = append(sent, r.DedupeKey)
		})
	}
	if err := producer.Close(ctx); err != nil { // waits for the outcomes
		fmt.Println(err)
	}
	fmt.Println(sent)
	// Output: [landsat|scene-0000 landsat|scene-0001 landsat|scene-0002 landsat|scene-0003 landsat|scene-0004]
}

// An event that failed pauses its group. It goes on when that event is sent
// again with success, or when Resume says to go on without it.
func ExampleProducer_Resume() {
	ctx := context.Background()
	queue, err := sqstest.NewQueue(sqstest.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	c := config()
	c.QueueURL = queue.URL()
	producer, err := sqsfifo.NewProducer(queue, c)
	if err != nil {
		fmt.Println(err)
		return
	}
	first, second := scenes(2, 1)[0], scenes(2, 1)[1]

	queue.Inject(sqstest.FailEntries("InvalidMessageContents", smithy.FaultClient, nil), 1)
	_, err = producer.Send(ctx, first)
	var refused *sqsfifo.RefusedError
	fmt.Println(errors.As(err, &refused) && refused.Code == "InvalidMessageContents")
	_, err = producer.Send(ctx, second)
	fmt.Println(errors.Is(err, sqsfifo.ErrGroupPaused))
	for group := range producer.Paused() {
		fmt.Println("paused:", group)
	}

	_, err = producer.Send(ctx, first) // or: producer.Resume("000")
	fmt.Println(err, len(producer.Paused()))
	_, err = producer.Send(ctx, second)
	fmt.Println(err)
	// Output:
	// true
	// true
	// paused: 000
	// <nil> 0
	// <nil>
}
