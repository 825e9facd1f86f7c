package main

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The example has a producer and a consumer in less than 50 lines.
func TestProgram(t *testing.T) {
	code, err := os.ReadFile("main.go")
	require.NoError(t, err)
	assert.Less(t, strings.Count(string(code), "\n"), 50)

	r, w, err := os.Pipe()
	require.NoError(t, err)
	stdout := os.Stdout
	os.Stdout = w
	main()
	os.Stdout = stdout
	require.NoError(t, w.Close())
	out, err := io.ReadAll(r)
	require.NoError(t, err)
	assert.Equal(t, "handled export|2025-12-04 in group exports\nhandled export|2025-12-05 in group exports\nhandled export|2025-12-06 in group exports\n", string(out))
}
