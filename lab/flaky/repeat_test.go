// Package flaky tests the script of "make flaky".
package flaky

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The script detects a package whose test fails every second time, and keeps the output
// of each failure.
func TestRepeat(t *testing.T) {
	script, err := filepath.Abs("repeat.sh")
	require.NoError(t, err)
	module, out := t.TempDir(), t.TempDir()
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
	test := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-shuffle=on", "-timeout=0", "-exec", script+" 4 "+out, "./...")
	test.Dir, test.Env = module, append(os.Environ(), "GOWORK=off", "LOAD=idle")
	printed, err := test.CombinedOutput()
	require.Error(t, err, "a test failed")
	assert.Contains(t, string(printed), "idle: failed in 2 of 4 runs\nFAIL\texample.com/m/often")
	assert.Contains(t, string(printed), "ok  \texample.com/m/good")
	files, err := filepath.Glob(filepath.Join(out, "*often.idle.*.txt"))
	require.NoError(t, err)
	require.Len(t, files, 2)
	text, err := os.ReadFile(files[0])
	require.NoError(t, err)
	assert.Contains(t, string(text), "the reason")
	assert.Contains(t, string(text), "-test.shuffle ")
}
