package tested

import (
	"testing"

	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

func TestCompliance(t *testing.T) { sqstest.TestProducer(t, sqstest.Suite[Order]{}) }
