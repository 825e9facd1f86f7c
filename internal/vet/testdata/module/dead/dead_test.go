package dead

import (
	"testing"

	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

const soon = false

func TestBranch(t *testing.T) {
	if soon {
		sqstest.TestProducer(t, sqstest.Suite[Order]{})
	} else if !soon {
		t.Log("later")
	} else {
		sqstest.TestProducer(t, sqstest.Suite[Order]{})
	}
}

func TestReturn(t *testing.T) {
	if !soon {
		{
			t.SkipNow()
		}
	}
	sqstest.TestProducer(t, sqstest.Suite[Order]{})
}

func TestCase(t *testing.T) {
	switch t.Name() {
	case "TestCase":
		return
		sqstest.TestProducer(t, sqstest.Suite[Order]{})
	}
}

func TestFormat(t *testing.T) {
	t.Skipf("%s is not ready", t.Name())
	sqstest.TestProducer(t, sqstest.Suite[Order]{})
}

func TestSelect(t *testing.T) {
	select {
	default:
		t.Skip("later")
		sqstest.TestProducer(t, sqstest.Suite[Order]{})
	}
}
