package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// ready is a module that may be released as v0.2.0.
var ready = map[string]string{
	"go.go":        "package x\n\nconst Version = \"0.2.0\"\n",
	"CHANGELOG.md": "# Changelog\n\n## Unreleased\n\n## 0.2.0 - 2025-12-04\n\n- all of it\n",
	"README.md":    "plugins:\n  - module: x\n    version: v0.2.0\n",
}

func TestEachItemIsMissed(t *testing.T) {
	clean := func(string, ...string) (string, error) { return "", nil }
	for name, tc := range map[string]struct {
		version, file, text string
		run                 func(string, ...string) (string, error)
		missing             string
	}{
		"all done":           {version: "v0.2.0"},
		"another form":       {version: "0.2.0", missing: "semantic version"},
		"constant":           {version: "v0.2.0", file: "go.go", text: "package x\n\nconst Version = \"0.1.0\"\n", missing: "the constant"},
		"no constant":        {version: "v0.2.0", file: "go.go", text: "package x\n", missing: "the constant"},
		"no section":         {version: "v0.2.0", file: "CHANGELOG.md", text: "## Unreleased\n\n## 0.1.0 - 2025-01-01\n", missing: "CHANGELOG.md has"},
		"unreleased entries": {version: "v0.2.0", file: "CHANGELOG.md", text: "## Unreleased\n\n- more\n\n## 0.2.0 - 2025-12-04\n", missing: "Unreleased"},
		"plugin":             {version: "v0.2.0", file: "README.md", text: "    version: v0.1.0\n", missing: "the README"},
		"changes": {version: "v0.2.0", missing: "committed", run: func(_ string, args ...string) (string, error) {
			return map[string]string{"status": " M README.md"}[args[0]], nil
		}},
		"old tag": {version: "v0.2.0", missing: "tag is new", run: func(_ string, args ...string) (string, error) {
			return map[string]string{"tag": "v0.2.0"}[args[0]], nil
		}},
		"ci": {version: "v0.2.0", missing: "make ci", run: func(name string, _ ...string) (string, error) {
			if name == "make" {
				return "FAIL", errors.New("exit status 2")
			}
			return "", nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for file, text := range ready {
				if file == tc.file {
					text = tc.text
				}
				require.NoError(t, os.WriteFile(filepath.Join(root, file), []byte(text), 0o600))
			}
			if tc.run == nil {
				tc.run = clean
			}
			var out strings.Builder
			done := report(&out, tc.version, checks(root, tc.version, tc.run))
			assert.Equal(t, tc.missing == "", done, out.String())
			if tc.missing == "" {
				assert.Contains(t, out.String(), "git push origin v0.2.0")
				return
			}
			require.Equal(t, 1, strings.Count(out.String(), "TO DO"), out.String())
			_, item, _ := strings.Cut(out.String(), "TO DO")
			assert.Contains(t, item, tc.missing)
		})
	}
}
