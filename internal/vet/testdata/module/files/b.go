package files

import "github.com/kansas-frontier-matrix/sqsfifo"

var New = sqsfifo.NewProducer[Order] // want SF020: package files
