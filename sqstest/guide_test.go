package sqstest_test

import (
	"bytes"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// The programs of docs/guide/languages.md are complete tests and pass.
func TestProgramsOfTheGuide(t *testing.T) {
	guide, err := os.ReadFile("../docs/guide/languages.md")
	require.NoError(t, err)
	for _, tc := range []struct {
		language, file string
		interpreter    func(*testing.T) string
	}{
		{"python", "guide.py", pythonWithSDK},
		{"js", "guide.mjs", nodeWithSDK},
	} {
		t.Run(tc.language, func(t *testing.T) {
			blocks := regexp.MustCompile("(?sm)^```"+tc.language+"\n(.*?)^```").FindAllSubmatch(guide, -1)
			require.Len(t, blocks, 1)
			interpreter := tc.interpreter(t)
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, tc.file), blocks[0][1], 0o600))
			if tc.language == "js" {
				modules, err := filepath.Abs("testdata/node/node_modules")
				require.NoError(t, err)
				require.NoError(t, os.Symlink(modules, filepath.Join(dir, "node_modules")))
			}
			server := httptest.NewServer(sqstest.NewServer())
			defer server.Close()
			program := exec.CommandContext(t.Context(), interpreter, tc.file) // #nosec G204 -- the program is from docs/guide/languages.md
			program.Dir = dir
			program.Env = append(os.Environ(), "AWS_ENDPOINT_URL_SQS="+server.URL, "AWS_REGION=us-east-1", "AWS_DEFAULT_REGION=us-east-1",
				"AWS_ACCESS_KEY_ID=any", "AWS_SECRET_ACCESS_KEY=any")
			var warnings bytes.Buffer
			program.Stderr = &warnings
			out, err := program.Output()
			require.NoError(t, err, "%s", &warnings)
			assert.Equal(t, "2 suppressed\n", string(out))
		})
	}
}
