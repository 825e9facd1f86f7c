package external_test

import (
	"testing"

	"example.com/shop/external"
	. "github.com/kansas-frontier-matrix/sqsfifo/sqstest/compliance"
)

func TestCompliance(t *testing.T) {
	t.Run("suite", func(t *testing.T) { TestProducer[external.Order](t, Suite[external.Order]{}) })
}
