package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Flaky detects a package whose test fails every second time, with and without busy
// processes, and keeps the output of each failure. In this test the busy processes end
// immediately: they run this test binary with an unknown flag.
func TestRun(t *testing.T) {
	t.Setenv("GOWORK", "off")
	module, out := t.TempDir(), filepath.Join(t.TempDir(), "out")
	for name, text := range map[string]string{
		"go.mod":              "module example.com/m\n\ngo 1.26.0\n",
		"good/good_test.go":   "package good\n\nimport \"testing\"\n\nfunc TestGood(*testing.T) {}\n",
		"often/often_test.go": "package often\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestOften(t *testing.T) {\n\tif os.Remove(\"mark\") == nil {\n\t\tt.Fatal(\"the reason\")\n\t}\n\tif err := os.WriteFile(\"mark\", nil, 0o600); err != nil {\n\t\tt.Fatal(err)\n\t}\n}\n",
		"none/none.go":        "package none\n",
	} {
		path := filepath.Join(module, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	var printed strings.Builder
	failures, err := run(t.Context(), &printed, []string{module}, "", 4, out)
	require.NoError(t, err)
	assert.Equal(t, 4, failures, printed.String())
	assert.Contains(t, printed.String(), "idle: example.com/m/often failed in 2 of 4 runs\nidle: 2 packages, 4 runs each, 2 failures\n")
	assert.Contains(t, printed.String(), "loaded: 2 packages, 4 runs each, 2 failures\n")
	files, err := filepath.Glob(filepath.Join(out, "*.txt"))
	require.NoError(t, err)
	require.Len(t, files, 4)
	text, err := os.ReadFile(files[0])
	require.NoError(t, err)
	assert.Contains(t, string(text), "the reason")
	assert.Contains(t, string(text), "-test.shuffle ")

	_, err = run(t.Context(), &printed, []string{t.TempDir()}, "", 1, out)
	assert.Error(t, err, "no module")
}
