//go:build slow

package tagged

import (
	"testing"

	"github.com/kansas-frontier-matrix/sqsfifo/sqstest/compliance"
)

func TestCompliance(t *testing.T) { compliance.TestProducer(t, compliance.Suite[int]{}) }
