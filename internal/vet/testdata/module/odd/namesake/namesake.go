// Package namesake has events of a package that has the name of another.
package namesake

import (
	"example.com/shop/odd/errors"
	"github.com/kansas-frontier-matrix/sqsfifo"
)

var New = sqsfifo.NewProducer[errors.Event] // want SF020: package namesake
