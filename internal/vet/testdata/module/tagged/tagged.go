// Package tagged has its test behind a build tag.
package tagged

import "github.com/kansas-frontier-matrix/sqsfifo"

var New = sqsfifo.NewProducer[int] // want SF020: package tagged
