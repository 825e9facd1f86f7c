// Package generic knows the type of its events from its callers.
package generic

import "github.com/kansas-frontier-matrix/sqsfifo"

func New[T any](client any) (*sqsfifo.Producer[T], error) {
	return sqsfifo.NewProducer(client, sqsfifo.Config[T]{}) // want SF020: package generic
}
