package main

import (
	"errors"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// As a tool of go vet, the command takes flags with the prefix "sqsfifo.". The test runs
// its own binary as the command. The analysed module has stubs in place of the SDK.
func TestVetTool(t *testing.T) {
	inModule(t)
	goVet := func(flags ...string) (output string, code int) {
		t.Helper()
		args := append([]string{"vet", "-vettool=" + os.Args[0]}, flags...)
		cmd := exec.CommandContext(t.Context(), "go", append(args, "./raw")...) // #nosec G204
		cmd.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS=-mod=mod", "GOWORK=off")
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			require.NoError(t, err)
		}
		return string(out), cmd.ProcessState.ExitCode()
	}
	out, code := goVet()
	assert.Equal(t, exitFindings, code, out)
	assert.Contains(t, out, " SF011: ")
	out, code = goVet("-sqsfifo.disable=SF009,SF011")
	assert.Zero(t, code, out)
	out, code = goVet("-json")
	assert.Zero(t, code, "-json of go vet exits with 0")
	assert.Contains(t, out, `"category": "SF009"`)
	out, code = goVet("-fix")
	assert.Zero(t, code, out)
	fixed, err := os.ReadFile("raw/raw.go")
	require.NoError(t, err)
	assert.NotContains(t, string(fixed), "DelaySeconds")
}
