package vet

import (
	"cmp"
	"context"
	"fmt"
	"go/version"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
)

// ToolchainError is the error of [Run] if the go command is newer than the Go release that
// built this program. Such a program cannot read the standard library of the go command,
// because type checking refuses packages of a newer Go version.
type ToolchainError struct {
	// GoCommand and Built are Go versions, such as "go1.27.1".
	GoCommand, Built string
}

// Error is one line that ends with the command to run.
func (e *ToolchainError) Error() string {
	program, at := "github.com/kansas-frontier-matrix/sqsfifo/cmd/sqsfifo", "latest"
	if info, ok := debug.ReadBuildInfo(); ok {
		program = cmp.Or(info.Path, program)
		// A build from source has no version, or a version with "+dirty".
		if v := info.Main.Version; strings.HasPrefix(v, "v") && !strings.Contains(v, "+") {
			at = v
		}
	}
	return fmt.Sprintf("the go command is %s, but this program was built with %s and cannot read packages of a newer Go; install it again: GOTOOLCHAIN=%[1]s go install %[3]s@%[4]s",
		e.GoCommand, e.Built, program, at)
}

// checkToolchain returns a *ToolchainError if the go command in the folder dir is too new
// for this program. The version of the go command may depend on the go.mod file of dir.
func checkToolchain(ctx context.Context, dir string) error {
	cmd := exec.CommandContext(ctx, "go", "env", "GOVERSION")
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		return nil // the next call of the go command fails as well, and its error is reported
	}
	return newerThanBuilt(strings.TrimSpace(string(out)), runtime.Version())
}

// newerThanBuilt compares the language versions, such as go1.26 of go1.26.8. A version of
// another form, such as that of a development build, has no order and no error.
func newerThanBuilt(goCommand, built string) error {
	language := func(v string) string {
		v, _, _ = strings.Cut(v, " ") // GOEXPERIMENT adds " X:name"
		return version.Lang(v)
	}
	if language(built) == "" || version.Compare(language(goCommand), language(built)) <= 0 {
		return nil
	}
	return &ToolchainError{GoCommand: goCommand, Built: built}
}
