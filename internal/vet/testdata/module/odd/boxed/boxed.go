// Package boxed has events of a type that takes one that only a function can name.
package boxed

import "github.com/kansas-frontier-matrix/sqsfifo"

type Box[T any] struct{ Value T }

func New(client any) {
	type order struct{ ID string }
	sqsfifo.NewProducer(client, sqsfifo.Config[Box[order]]{}) // want SF020: package boxed
}
