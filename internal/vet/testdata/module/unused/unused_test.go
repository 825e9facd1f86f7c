package unused

import (
	"testing"

	"github.com/kansas-frontier-matrix/sqsfifo/sqstest/compliance"
)

func TestCompliance(t *testing.T) { compliance.TestProducer(t, compliance.Suite[Order]{}) }
