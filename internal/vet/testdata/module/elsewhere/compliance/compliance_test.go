package compliance_test

import (
	"testing"

	"example.com/shop/elsewhere"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

func TestCompliance(t *testing.T) {
	_ = elsewhere.New
	sqstest.TestProducer(t, sqstest.Suite[int]{})
}
