package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/vet"
	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet"
)

// If the environment variable asCommand is set, this test binary runs as the command. Tests
// use it to run the command as another process.
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
