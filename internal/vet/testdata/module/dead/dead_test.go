package dead

import (
	"testing"

	"github.com/kansas-frontier-matrix/sqsfifo/sqstest/compliance"
)

const soon = false

func TestBranch(t *testing.T) {
	if soon {
		compliance.TestProducer(t, compliance.Suite[Order]{})
	} else if !soon {
		t.Log("later")
	} else {
		compliance.TestProducer(t, compliance.Suite[Order]{})
	}
}

func TestReturn(t *testing.T) {
	if !soon {
		{
			t.SkipNow()
		}
	}
	compliance.TestProducer(t, compliance.Suite[Order]{})
}

func TestCase(t *testing.T) {
	switch t.Name() {
	case "TestCase":
		return
		compliance.TestProducer(t, compliance.Suite[Order]{})
	}
}

func TestFormat(t *testing.T) {
	t.Skipf("%s is not ready", t.Name())
	compliance.TestProducer(t, compliance.Suite[Order]{})
}

func TestSelect(t *testing.T) {
	select {
	default:
		t.Skip("later")
		compliance.TestProducer(t, compliance.Suite[Order]{})
	}
}
