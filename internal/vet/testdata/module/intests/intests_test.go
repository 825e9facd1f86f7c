package intests

import (
	"testing"

	"github.com/kansas-frontier-matrix/sqsfifo"
)

func TestFlow(t *testing.T) {
	if _, err := sqsfifo.NewProducer(nil, sqsfifo.Config[int]{}); err != nil {
		t.Fatal(err)
	}
}
