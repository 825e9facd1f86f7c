package skipped

import (
	"testing"

	"github.com/kansas-frontier-matrix/sqsfifo/sqstest/compliance"
)

func TestCompliance(t *testing.T) {
	t.Skip("later")
	t.Run("suite", func(t *testing.T) {
		compliance.TestProducer(t, compliance.Suite[Order]{})
	})
}
