// Package times has events that are put together from types of other packages.
package times

import (
	"time"

	"example.com/shop/odd/versioned.v2"
	"github.com/kansas-frontier-matrix/sqsfifo"
)

type window[T any] struct{ From, To T }

var New = sqsfifo.NewProducer[map[versioned.Key][]window[*time.Time]] // want SF020: package times
