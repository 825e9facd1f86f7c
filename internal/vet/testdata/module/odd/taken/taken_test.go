package taken

import "testing"

func sqs2() {}

func TestCompliance(t *testing.T) {
	sqs2()
	compliance()
}
