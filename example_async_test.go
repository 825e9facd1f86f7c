package sqsfifo_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// SendAsync returns before the event is sent, so many events can share a request. The
// callback gets the outcome of each event once. Callbacks of one message group run in the
// order of the calls.
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
	var sent []string // needs no lock: all events have one group, so their callbacks run one after another
	for _, s := range scenes(5) {
		producer.SendAsync(ctx, s, func(r sqsfifo.Receipt, err error) {
			if err != nil {
				fmt.Println(err)
				return
			}
			sent = append(sent, r.DedupeKey)
		})
	}
	if err := producer.Close(ctx); err != nil { // waits until each event has its outcome
		fmt.Println(err)
	}
	fmt.Println(sent)
	// Output: [landsat|scene-0000 landsat|scene-0001 landsat|scene-0002 landsat|scene-0003 landsat|scene-0004]
}

// An event in doubt pauses its group, so that later events cannot overtake it. The group
// continues when a resend of the event succeeds, when Resume skips the event, or
// automatically when the doubt is over.
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
	first, second := scenes(2)[0], scenes(2)[1]

	queue.Inject(sqstest.LoseAnswer(), 1000)
	short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	_, err = producer.Send(short, first)
	fmt.Println(sqsfifo.FateOf(err))
	queue.ClearFaults()
	for len(producer.Paused()) == 0 { // wait until the first event has paused its group
		time.Sleep(time.Millisecond)
	}
	_, err = producer.Send(ctx, second)
	fmt.Println(sqsfifo.FateOf(err), errors.Is(err, sqsfifo.ErrGroupPaused))
	for group, pause := range producer.Paused() {
		fmt.Println("paused:", group, "behind", pause.DedupeKey)
	}

	_, err = producer.Send(ctx, first) // or: producer.Resume("000")
	fmt.Println(err, len(producer.Paused()))
	_, err = producer.Send(ctx, second)
	fmt.Println(err)
	// Output:
	// in doubt
	// not stored true
	// paused: 000 behind landsat|scene-0000
	// <nil> 0
	// <nil>
}

// At the end of a program, Close refuses new events, gives submitted events some time to
// finish, and reports each outcome before the process ends.
func ExampleProducer_Close() {
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
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()

	queue.Inject(sqstest.Throttle(), 1000) // SQS accepts nothing
	for _, s := range scenes(2) {
		producer.SendAsync(context.WithoutCancel(ctx), s, func(_ sqsfifo.Receipt, err error) {
			if sqsfifo.FateOf(err) != sqsfifo.FateStored {
				fmt.Println("kept for the next start") // in production: in a file or a database
			}
		})
	}

	// In production, wait for the signal with <-ctx.Done() instead of calling stop.
	stop()
	grace, cancel := context.WithTimeout(context.Background(), 250*time.Millisecond)
	defer cancel()
	err = producer.Close(grace)
	fmt.Println("closed:", errors.Is(err, context.DeadlineExceeded))
	// Output:
	// kept for the next start
	// kept for the next start
	// closed: true
}

// Producers of several event types share one queue: its order, buffer and memory.
func ExampleNewProducerOn() {
	type Refresh struct {
		Tile string    `json:"tile"`
		At   time.Time `json:"at"`
	}
	fake, err := sqstest.NewQueue(sqstest.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	queue, err := sqsfifo.NewQueue(fake, sqsfifo.QueueConfig{URL: fake.URL()})
	if err != nil {
		fmt.Println(err)
		return
	}
	scenes, err := sqsfifo.NewProducerOn(queue, sqsfifo.Config[Scene]{Organization: "acme", Source: "acme.imagery.scenes", Identify: identify})
	if err != nil {
		fmt.Println(err)
		return
	}
	refreshes, err := sqsfifo.NewProducerOn(queue, sqsfifo.Config[Refresh]{
		Organization: "acme", Source: "acme.soil.refresh",
		Identify: func(r Refresh) (sqsfifo.Identity, error) {
			key, err := sqsfifo.JoinKey("soil", r.Tile, r.At.Format(time.DateOnly))
			return sqsfifo.Identity{DedupeKey: key, Group: r.Tile, Time: r.At}, err
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	_, err = scenes.Send(ctx, scene)
	fmt.Println(err)
	_, err = refreshes.Send(ctx, Refresh{Tile: "p32r29", At: time.Date(2025, 12, 4, 0, 0, 0, 0, time.UTC)})
	fmt.Println(err, queue.Stats().RememberedKeys, queue.Close(ctx))
	// Output:
	// <nil>
	// <nil> 2 <nil>
}
