package main

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/mod/modfile"
)

// ready has the files of a module ready for release as v0.2.0.
var ready = map[string]string{
	"go.go":                 "package x\n\nconst Version = \"0.2.0\"\n",
	"CHANGELOG.md":          "# Changelog\n\nThe format.\n\n## 0.2.0 - 2025-12-04\n\n- all of it\n\n## 0.1.0 - 2025-01-01\n",
	"docs/guide/linting.md": "plugins:\n  - module: x\n    version: v0.2.0\n",
}

func parse(t *testing.T, dir, text string) released {
	t.Helper()
	file, err := modfile.Parse("go.mod", []byte(text), nil)
	require.NoError(t, err)
	return released{file.Module.Mod.Path, dir, file}
}

// Every folder with a go.mod is in go.work, is released (except lab and the tools), and
// is in .github/dependabot.yml. Modules are released after their requirements.
func TestReleasedModules(t *testing.T) {
	root, err := rootFolder()
	require.NoError(t, err)
	modules, err := releasedModules(root)
	require.NoError(t, err)
	require.NotEmpty(t, modules)
	assert.Equal(t, ".", modules[0].dir)
	assert.Empty(t, problems(modules, modules[1].ownRequirements(modules)[0].Version), "the modules agree on their version")
	updates, err := os.ReadFile(filepath.Join(root, ".github/dependabot.yml"))
	require.NoError(t, err)
	known := map[string]bool{"lab": true, "internal/tools": true}
	for _, m := range modules {
		known[m.dir] = true
	}
	require.NoError(t, filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && path != root) {
			return cmp.Or(err, filepath.SkipDir)
		}
		if d.Name() == "go.mod" {
			dir, err := filepath.Rel(root, filepath.Dir(path))
			require.NoError(t, err)
			assert.Contains(t, string(updates), "\n      - /"+strings.TrimPrefix(filepath.ToSlash(dir), ".")+"\n", ".github/dependabot.yml")
			assert.True(t, known[filepath.ToSlash(dir)], "go.work has no line for %s", dir)
		}
		return nil
	}))

	a := parse(t, "a", "module example.com/a\n\nrequire example.com/b v1.0.0\n")
	b := parse(t, "b", "module example.com/b\n")
	ordered, err := inOrder([]released{a, b})
	require.NoError(t, err)
	assert.Equal(t, []released{b, a}, ordered)
	_, err = inOrder([]released{a, parse(t, "b", "module example.com/b\n\nrequire example.com/a v1.0.0\n")})
	assert.ErrorContains(t, err, "requires a module that requires it")
}

func TestEachItemIsMissed(t *testing.T) {
	clean := func(string, ...string) (string, error) { return "", nil }
	modules := []released{parse(t, ".", "module example.com/root\n"), parse(t, "cmd/tool", "module example.com/root/cmd/tool\n\nrequire example.com/root v0.2.0\n")}
	for name, tc := range map[string]struct {
		version, file, text string
		modules             []released
		run                 func(string, ...string) (string, error)
		missing             string
	}{
		"all done":           {version: "v0.2.0"},
		"another form":       {version: "0.2.0", missing: "semantic version"},
		"constant":           {version: "v0.2.0", file: "go.go", text: "package x\n\nconst Version = \"0.1.0\"\n", missing: "the constant"},
		"no constant":        {version: "v0.2.0", file: "go.go", text: "package x\n", missing: "the constant"},
		"no section":         {version: "v0.2.0", file: "CHANGELOG.md", text: "# Changelog\n\n## 0.1.0 - 2025-12-04\n", missing: "CHANGELOG.md"},
		"no date":            {version: "v0.2.0", file: "CHANGELOG.md", text: "# Changelog\n\n## 0.2.0 - unreleased\n", missing: "CHANGELOG.md"},
		"an old date":        {version: "v0.2.0", file: "CHANGELOG.md", text: "# Changelog\n\n## 0.2.0 - 2025-12-03\n", missing: "CHANGELOG.md"},
		"unreleased entries": {version: "v0.2.0", file: "CHANGELOG.md", text: "# Changelog\n\n## 0.3.0 - unreleased\n\n- more\n\n## 0.2.0 - 2025-12-04\n", missing: "CHANGELOG.md"},
		"plugin":             {version: "v0.2.0", file: "docs/guide/linting.md", text: "    version: v0.1.0\n", missing: "linting.md"},
		"changes": {version: "v0.2.0", missing: "committed", run: func(_ string, args ...string) (string, error) {
			return map[string]string{"status": " M README.md"}[args[0]], nil
		}},
		"old tag": {version: "v0.2.0", missing: "the tag cmd/tool/v0.2.0 is new", run: func(_ string, args ...string) (string, error) {
			if args[0] == "tag" && args[2] == "cmd/tool/v0.2.0" {
				return args[2], nil
			}
			return "", nil
		}},
		"replace line":  {version: "v0.2.0", modules: []released{parse(t, ".", "module example.com/root\n\nreplace example.com/a => ./a\n")}, missing: "without replace lines"},
		"other version": {version: "v0.2.0", modules: []released{modules[0], parse(t, "b", "module example.com/root/b\n\nrequire example.com/root v0.1.0\n")}, missing: "at this version"},
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
				require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, file)), 0o700))
				require.NoError(t, os.WriteFile(filepath.Join(root, file), []byte(text), 0o600))
			}
			if tc.run == nil {
				tc.run = clean
			}
			if tc.modules == nil {
				tc.modules = modules
			}
			var out strings.Builder
			done := report(&out, tc.version, tc.modules, checks(root, tc.version, "2025-12-04", tc.modules, tc.run))
			assert.Equal(t, tc.missing == "", done, out.String())
			if tc.missing == "" {
				root, tool := strings.Index(out.String(), "git push origin v0.2.0 "), strings.Index(out.String(), "git push origin cmd/tool/v0.2.0 ")
				assert.Positive(t, root)
				assert.Greater(t, tool, root, "the root module is there before its users")
				return
			}
			require.Equal(t, 1, strings.Count(out.String(), "TO DO"), out.String())
			_, item, _ := strings.Cut(out.String(), "TO DO")
			assert.Contains(t, item, tc.missing)
		})
	}
}

// The commands that install a release are in docs/guide/install.md. While CHANGELOG.md has no
// released version, this page and the README say that they fail, and each other document with
// such a command links the page.
func TestDocumentsKnowWhetherAVersionIsPublished(t *testing.T) {
	root, err := rootFolder()
	require.NoError(t, err)
	read := func(name string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		return string(text)
	}
	published := regexp.MustCompile(`(?m)^## [0-9.]+ - [0-9]{4}-`).MatchString(read("CHANGELOG.md"))
	install := read("docs/guide/install.md")
	assert.Equal(t, published, !strings.Contains(install, "## Before the first release\n"), "docs/guide/install.md")
	assert.Equal(t, published, !strings.Contains(read("README.md"), "**Not released.**"), "README.md")

	guides, err := filepath.Glob(filepath.Join(root, "docs", "guide", "*.md"))
	require.NoError(t, err)
	for _, path := range append(guides, filepath.Join(root, "README.md"), filepath.Join(root, "docs", "cli.md"), filepath.Join(root, "deploy", "README.md")) {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		if filepath.Base(path) != "install.md" && regexp.MustCompile(`go (get|install|run) [^\n]*github\.com/kansas-frontier-matrix`).Match(text) {
			assert.Contains(t, string(text), "install.md", path)
		}
	}
	modules, err := releasedModules(root)
	require.NoError(t, err)
	for _, m := range modules {
		assert.Regexp(t, "`go (get|install|get -tool) "+regexp.QuoteMeta(m.path)+"(@latest)?`", install)
	}
}
