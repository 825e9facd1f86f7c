package vet_test

import (
	"go/version"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/vet"
)

// newer is a release of Go after the release of the line "go" in go.mod.
const newer = "go1.27.1"

// As a tool of go vet, the program prints one line and exits if the go command is newer. The
// go command calls the tool with -V=full first, and sets GOVERSION.
func TestToolOfANewerGoCommand(t *testing.T) {
	asTool := func(goCommand string) (string, error) {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-V=full") // #nosec G204 -- this test
		cmd.Env = append(os.Environ(), "GOVERSION="+goCommand)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	says, err := asTool("go1.999.3")
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	assert.Equal(t, 2, exit.ExitCode())
	assert.Equal(t, 1, strings.Count(says, "\n"), says)
	assert.Contains(t, says, "install it again: GOTOOLCHAIN=go1.999.3 go install github.com/kansas-frontier-matrix/sqsfifo/")
	says, err = asTool(runtime.Version())
	require.NoError(t, err, says)
}

func TestNewerGoCommand(t *testing.T) {
	runsGo(t)
	if version.Compare(version.Lang(newer), version.Lang(runtime.Version())) <= 0 {
		t.Skip("this test was built with " + runtime.Version() + ", and " + newer + " is not newer")
	}
	t.Setenv("GOTOOLCHAIN", newer)
	if out, err := exec.CommandContext(t.Context(), "go", "version").CombinedOutput(); err != nil {
		t.Skipf("%s cannot be had: %s", newer, out)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":   "module example.com/three\n\ngo 1.26.0\n",
		"three.go": "package three\n\nimport \"fmt\"\n\nfunc F() { fmt.Println() }\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	_, err := vet.Run(t.Context(), withQuiet(vet.Options{Dir: dir}))
	var toolchain *vet.ToolchainError
	require.ErrorAs(t, err, &toolchain)
	assert.Equal(t, vet.ToolchainError{GoCommand: newer, Built: runtime.Version()}, *toolchain)
	assert.NotContains(t, err.Error(), "\n")

	cmd := exec.CommandContext(t.Context(), "go", "vet", "-vettool="+os.Args[0], "-quiet", "./...") // #nosec G204 -- this test
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	assert.Equal(t, 1, strings.Count(string(out), toolchain.Error()+"\n"), "%s", out)
	assert.LessOrEqual(t, strings.Count(string(out), "\n"), 3, "our line, and errors of the go command: %s", out)
}
