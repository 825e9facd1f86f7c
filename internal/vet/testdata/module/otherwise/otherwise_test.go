package otherwise

import (
	"testing"

	"github.com/kansas-frontier-matrix/sqsfifo/sqstest/compliance"
)

const postponed = false

func TestCompliance(t *testing.T) {
	if postponed {
		t.Skip("later")
	} else {
		compliance.TestProducer(t, compliance.Suite[Order]{})
	}
}
