package sometimes

import (
	"os"
	"testing"

	"github.com/kansas-frontier-matrix/sqsfifo/sqstest/compliance"
)

const soon = false

func TestCompliance(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a second")
	}
	if os.Getenv("CI") == "" {
		return
	}
	if soon {
		t.Skip("never happens")
	}
	words{}.Skip("a word, not the test")
	compliance.TestProducer(t, compliance.Suite[Order]{})
	t.Skip("too late to skip anything")
}

type words struct{}

func (words) Skip(string) {}
