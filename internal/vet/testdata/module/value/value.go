package value

import "github.com/kansas-frontier-matrix/sqsfifo"

type Order struct{ ID string }

var New = sqsfifo.NewProducer[Order] // want SF020: package value
