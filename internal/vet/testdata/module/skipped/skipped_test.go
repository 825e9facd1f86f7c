package skipped

import (
	"testing"

	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

func TestCompliance(t *testing.T) {
	t.Skip("later")
	t.Run("suite", func(t *testing.T) {
		sqstest.TestProducer(t, sqstest.Suite[Order]{})
	})
}
