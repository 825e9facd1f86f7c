package checked

import (
	"testing"

	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

func TestCompliance(t *testing.T) {
	if err := sqstest.CheckProducer(t.Context(), sqstest.Suite[Order]{}); err != nil {
		t.Fatal(err)
	}
}
