// Package taken has the names that the skeleton would use.
package taken

import "github.com/kansas-frontier-matrix/sqsfifo"

type (
	sqs     struct{ errors string }
	errors  = sqs
	context = map[string]*sqs
)

func compliance() {}

var New = sqsfifo.NewProducer[context] // want SF020: package taken
