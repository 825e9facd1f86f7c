// Package faked sends to the fake queue alone.
package faked

import (
	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

type Order struct{ ID string }

func Try() error {
	queue, err := sqstest.NewQueue(sqstest.Config{Interval: 1})
	if err != nil {
		return err
	}
	if _, err = sqsfifo.NewProducer(queue, sqsfifo.Config[Order]{}); err != nil {
		return err
	}
	_, err = sqsfifo.NewProducer[Order](queue, sqsfifo.Config[Order]{})
	return err
}

func on(queue *sqstest.Queue) (*sqsfifo.Producer[Order], error) {
	return sqsfifo.NewProducer(queue, sqsfifo.Config[Order]{})
}

func must() *sqsfifo.Producer[Order] {
	queue := sqstest.Must(sqstest.NewQueue(sqstest.Config{}))
	return sqstest.Must(sqsfifo.NewProducer(queue, sqsfifo.Config[Order]{}))
}
