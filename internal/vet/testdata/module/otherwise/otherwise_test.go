package otherwise

import (
	"testing"

	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

const postponed = false

func TestCompliance(t *testing.T) {
	if postponed {
		t.Skip("later")
	} else {
		sqstest.TestProducer(t, sqstest.Suite[Order]{})
	}
}
