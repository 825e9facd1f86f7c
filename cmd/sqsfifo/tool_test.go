package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/vet"
	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet"
)

// asCommand makes this test binary run as the command, for tests that kill it.
const asCommand = "SQSFIFO_TEST_COMMAND"

// The go command, scripts and tests run this test binary in place of the command.
func TestMain(m *testing.M) {
	if vet.IsToolCall(os.Args[1:]) {
		vet.ToolMain(fifovet.Analyzer)
	}
	if os.Getenv(asCommand) != "" {
		os.Exit(process())
	}
	testscript.Main(m, map[string]func(){"sqsfifo": main})
}
