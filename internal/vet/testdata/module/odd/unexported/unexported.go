// Package unexported has events of a type that its owner keeps to itself.
package unexported

import (
	"example.com/shop/odd/owner"
	"github.com/kansas-frontier-matrix/sqsfifo"
)

var New = func(c any) { sqsfifo.NewProducer(c, owner.Orders()) } // want SF020: package unexported
