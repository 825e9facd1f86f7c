package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/vet"
	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet"
)

// asCommand is the name of an environment variable. If it is set, this test binary runs as
// the command sqsfifo, so tests can run the command as another process.
const asCommand = "SQSFIFO_TEST_COMMAND"

// The go command, the scripts and the tests run this test binary in place of the command
// sqsfifo.
func TestMain(m *testing.M) {
	if vet.IsToolCall(os.Args[1:]) {
		vet.ToolMain(fifovet.Analyzer)
	}
	if os.Getenv(asCommand) != "" {
		os.Exit(process())
	}
	testscript.Main(m, map[string]func(){"sqsfifo": main})
}
