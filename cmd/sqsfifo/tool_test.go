package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/vet"
	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet"
)

// asCommand is an environment variable. If it is set, this test binary runs as the
// command sqsfifo. Tests use this to start the command as another process.
const asCommand = "SQSFIFO_TEST_COMMAND"

// This test binary acts as the command sqsfifo if it is started by "go vet" as its tool, by
// a test with asCommand, or by a script under the name sqsfifo.
func TestMain(m *testing.M) {
	if vet.IsToolCall(os.Args[1:]) {
		vet.ToolMain(fifovet.Analyzer)
	}
	if os.Getenv(asCommand) != "" {
		os.Exit(process())
	}
	testscript.Main(m, map[string]func(){"sqsfifo": main})
}
