package main

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The first program for newcomers is short, sends an event and prints its receipt.
func TestFirstProgram(t *testing.T) {
	code, err := os.ReadFile("main.go")
	require.NoError(t, err)
	assert.LessOrEqual(t, strings.Count(string(code), "\n"), 30)

	r, w, err := os.Pipe()
	require.NoError(t, err)
	stdout := os.Stdout
	os.Stdout = w
	main()
	os.Stdout = stdout
	require.NoError(t, w.Close())
	out, err := io.ReadAll(r)
	require.NoError(t, err)
	assert.Contains(t, string(out), "DedupeKey:export|2025-12-04 Group:exports")
	assert.Regexp(t, `MessageID:[0-9a-f-]{36} `, string(out))
	assert.True(t, strings.HasSuffix(string(out), "}\n<nil>\n"), "no error: %s", out)
}
