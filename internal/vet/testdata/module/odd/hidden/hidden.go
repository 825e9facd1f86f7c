// Package hidden has events of a type that it may not name.
package hidden

import (
	"example.com/shop/odd/owner"
	"github.com/kansas-frontier-matrix/sqsfifo"
)

var New = func(c any) { sqsfifo.NewProducer(c, owner.Config()) } // want SF020: package hidden
