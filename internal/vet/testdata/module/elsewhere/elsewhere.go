// Package elsewhere has a test in another folder that runs the suite.
package elsewhere

import "github.com/kansas-frontier-matrix/sqsfifo"

var New = sqsfifo.NewProducer[int] // want SF020: package elsewhere
