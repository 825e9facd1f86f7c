package main

import (
	"os"
	"testing"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/vet"
	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet"
)

// The go command runs this test's binary in place of the command's.
func TestMain(m *testing.M) {
	if vet.IsToolCall(os.Args[1:]) {
		vet.ToolMain(fifovet.Analyzer)
	}
	os.Exit(m.Run())
}
