// Package spelled has events of a type without a name.
package spelled

import "github.com/kansas-frontier-matrix/sqsfifo"

var New = sqsfifo.NewProducer[struct{ ID string }] // want SF020: package spelled
