// Package unflushed has producers that nothing flushes or closes. // want package:"reach"
package unflushed

import (
	"context"
	"fmt"

	"github.com/kansas-frontier-matrix/sqsfifo"
)

type event struct{ ID string }

func run(ctx context.Context, client sqsfifo.Client, events []event) error {
	producer, err := sqsfifo.NewProducer(client, sqsfifo.Config[event]{}) // want `SF017: nothing closes this producer, which sends by SendAsync`
	if err != nil {
		return err
	}
	for _, e := range events {
		producer.SendAsync(ctx, e, nil)
	}
	return nil
}

func waits(ctx context.Context, client sqsfifo.Client, e event) error {
	producer, err := sqsfifo.NewProducer(client, sqsfifo.Config[event]{})
	if err != nil {
		return err
	}
	_, err = producer.Send(ctx, e)
	return err
}

// open gives the producer to callers, which may close it.
func open(ctx context.Context, client sqsfifo.Client, e event) (*sqsfifo.Producer[event], error) {
	producer, err := sqsfifo.NewProducer(client, sqsfifo.Config[event]{})
	if err != nil {
		return nil, err
	}
	producer.SendAsync(ctx, e, nil)
	return producer, nil
}

func inGoroutine(ctx context.Context, client sqsfifo.Client, e event) error {
	producer, err := sqsfifo.NewProducer(client, sqsfifo.Config[event]{}) // want `SF017: nothing closes this producer, which sends by TrySend`
	if err != nil {
		return err
	}
	go func() { _ = producer.TrySend(ctx, e, nil) }()
	return nil
}

func onQueue(ctx context.Context, queue *sqsfifo.Queue, msg *sqsfifo.Message) error {
	producer, err := sqsfifo.NewProducerOn(queue, sqsfifo.Config[event]{}) // want `SF017: nothing closes this producer, which sends by SendMessageAsync`
	if err != nil {
		return err
	}
	post(ctx, producer, msg)
	return nil
}

func post(ctx context.Context, producer *sqsfifo.Producer[event], msg *sqsfifo.Message) {
	producer.SendMessageAsync(ctx, msg, nil)
}

func oneOfTwo(ctx context.Context, client sqsfifo.Client, queue *sqsfifo.Queue, e event) {
	producer, _ := sqsfifo.NewProducer(client, sqsfifo.Config[event]{}) // want `SF017`
	if queue != nil {
		producer, _ = sqsfifo.NewProducerOn(queue, sqsfifo.Config[event]{}) // want `SF017`
	}
	producer.SendAsync(ctx, e, nil)
}

func hidden(ctx context.Context, client sqsfifo.Client, e event) error {
	context := e.ID
	producer, err := sqsfifo.NewProducer(client, sqsfifo.Config[event]{}) // want `SF017`
	if err != nil {
		return err
	}
	producer.SendAsync(ctx, event{context}, nil)
	return nil
}

// variable shares the variable of the producer with a literal.
func variable(ctx context.Context, client sqsfifo.Client, e event) (err error) {
	var producer *sqsfifo.Producer[event]
	send := func() { producer.SendAsync(ctx, e, nil) }
	producer, err = sqsfifo.NewProducer(client, sqsfifo.Config[event]{}) // want `SF017`
	send()
	return err
}

// otherPackage gives the producer to another package, which may close it.
func otherPackage(ctx context.Context, client sqsfifo.Client, e event) {
	producer, _ := sqsfifo.NewProducer(client, sqsfifo.Config[event]{})
	context.AfterFunc(ctx, func() { fmt.Println(producer) })
	producer.SendAsync(ctx, e, nil)
}

func sent(ctx context.Context, client sqsfifo.Client, e event, open chan<- *sqsfifo.Producer[event]) {
	producer, _ := sqsfifo.NewProducer(client, sqsfifo.Config[event]{})
	open <- producer
	producer.SendAsync(ctx, e, nil)
}

func inMap(ctx context.Context, client sqsfifo.Client, e event, open map[string]*sqsfifo.Producer[event]) {
	producer, _ := sqsfifo.NewProducer(client, sqsfifo.Config[event]{})
	open[e.ID] = producer
	producer.SendAsync(ctx, e, nil)
}

type office struct{ producer *sqsfifo.Producer[event] }

func (o *office) inField(ctx context.Context, client sqsfifo.Client, e event) {
	o.producer, _ = sqsfifo.NewProducer(client, sqsfifo.Config[event]{})
	o.producer.SendAsync(ctx, e, nil)
}

// keep stores its argument where other code closes it.
func keep(o *office, producer *sqsfifo.Producer[event]) { o.producer = producer }

func kept(ctx context.Context, client sqsfifo.Client, o *office, e event) {
	producer, _ := sqsfifo.NewProducer(client, sqsfifo.Config[event]{})
	keep(o, producer)
	producer.SendAsync(ctx, e, nil)
}

func given(ctx context.Context, client sqsfifo.Client, e event, register func(*sqsfifo.Producer[event])) {
	producer, _ := sqsfifo.NewProducer(client, sqsfifo.Config[event]{})
	register(producer)
	producer.SendAsync(ctx, e, nil)
}

// taken sends by a producer that other code has made.
func taken(ctx context.Context, o *office, make func() *sqsfifo.Producer[event], e event) {
	make().SendAsync(ctx, e, nil)
	o.producer.SendAsync(ctx, e, nil)
}

// reopened sends by a producer that another function of the package makes.
func reopened(ctx context.Context, client sqsfifo.Client, e event) error {
	producer, err := open(ctx, client, e)
	if err != nil {
		return err
	}
	producer.SendAsync(ctx, e, nil)
	return nil
}

// renewed makes a new producer in a loop.
func renewed(ctx context.Context, client sqsfifo.Client, events []event) {
	producer, _ := sqsfifo.NewProducer(client, sqsfifo.Config[event]{}) // want `SF017`
	for _, e := range events {
		if e.ID == "" {
			producer, _ = sqsfifo.NewProducer(client, sqsfifo.Config[event]{}) // want `SF017`
		}
		producer.SendAsync(ctx, e, nil)
	}
}
