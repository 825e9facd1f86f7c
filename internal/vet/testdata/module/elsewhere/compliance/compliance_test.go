package compliance_test

import (
	"testing"

	"example.com/shop/elsewhere"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest/compliance"
)

func TestCompliance(t *testing.T) {
	_ = elsewhere.New
	compliance.TestProducer(t, compliance.Suite[int]{})
}
