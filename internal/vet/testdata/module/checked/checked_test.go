package checked

import (
	"testing"

	"github.com/kansas-frontier-matrix/sqsfifo/sqstest/compliance"
)

func TestCompliance(t *testing.T) {
	if err := compliance.CheckProducer(t.Context(), compliance.Suite[Order]{}); err != nil {
		t.Fatal(err)
	}
}
