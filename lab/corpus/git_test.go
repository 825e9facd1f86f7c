package main

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	xmodule "golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/zip"
)

// git runs git in a folder. The user's name and e-mail are placeholders.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(),
		"GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_AUTHOR_DATE=2026-01-02T03:04:05Z",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com", "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git %v: %v: %s", args, err, &stderr)
	}
	return strings.TrimSpace(string(out))
}

// files are the files of a repository with modules in the folders "in", "in/nested" and
// "other".
var files = map[string]string{
	"LICENSE":               "free\n",
	".gitattributes":        "in/lost.go export-ignore\nin/version.txt export-subst\n",
	"other/go.mod":          "module example.com/nobody/lost/other\n",
	"in/go.mod":             "module example.com/nobody/lost/in\n\ngo 1.26.0\n",
	"in/lost.go":            "package in\n",
	"in/version.txt":        "$Format:%H$\n",
	"in/vendor/modules.txt": "not part of a module\n",
	"in/nested/go.mod":      "module example.com/nobody/lost/in/nested\n",
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

// published creates a bare git repository, two levels below the returned folder. The result
// `m` is a module in the repository. Its field `sum` is the sum that the go command computes
// (as in go.sum).
func published(t *testing.T) (folder string, m module) {
	t.Helper()
	folder = t.TempDir()
	work := t.TempDir()
	write(t, work, files)
	git(t, work, "init", "--quiet")
	git(t, work, "add", "--force", ".")
	git(t, work, "commit", "--quiet", "--message", "lost")
	commit := git(t, work, "rev-parse", "HEAD")
	git(t, folder, "clone", "--quiet", "--bare", work, filepath.Join("nobody", "lost"))

	m = module{path: "example.com/nobody/lost/in", version: "v0.0.0-20260102030405-" + commit[:12], subdir: "in", git: true, packages: []string{"./..."}}
	var part []zip.File
	for _, name := range []string{"go.mod", "lost.go", "version.txt", "../LICENSE"} {
		part = append(part, onDisk{strings.TrimPrefix(name, "../"), filepath.Join(work, "in", filepath.FromSlash(name))})
	}
	archive := filepath.Join(t.TempDir(), "module.zip")
	f, err := os.Create(archive)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(zip.Create(f, xmodule.Version{Path: m.path, Version: m.version}, part), f.Close()); err != nil {
		t.Fatal(err)
	}
	if m.sum, err = dirhash.HashZip(archive, dirhash.Hash1); err != nil {
		t.Fatal(err)
	}
	return folder, m
}

// onDisk is a file on disk (path) with its name in the archive of a module.
type onDisk struct{ name, path string }

func (f onDisk) Path() string                 { return f.name }
func (f onDisk) Lstat() (os.FileInfo, error)  { return os.Lstat(f.path) }
func (f onDisk) Open() (io.ReadCloser, error) { return os.Open(f.path) }

func opened(t *testing.T, folder string) *repositories {
	t.Helper()
	r, err := openRepositories(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func TestRepositories(t *testing.T) {
	folder, m := published(t)
	dir, err := m.obtain(t.Context(), opened(t, folder))
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	var got []string
	if err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			got = append(got, path)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"LICENSE", "go.mod", "lost.go", "version.txt"}; !slices.Equal(got, want) {
		t.Errorf("got the files %v, want %v", got, want)
	}
	info, err := os.Stat(filepath.Join(dir, "go.mod"))
	if err != nil || info.Mode()&0o200 == 0 {
		t.Errorf("got %v, %v, want a go.mod that the go command can complete", info, err)
	}
}

func TestRepositoriesRefuseAWrongSum(t *testing.T) {
	folder, m := published(t)
	sum := m.sum
	m.sum = "h1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
	_, err := m.obtain(t.Context(), opened(t, folder))
	var wrong *sumError
	if !errors.As(err, &wrong) || wrong.got != sum || wrong.want != m.sum {
		t.Errorf("got %v, want an error about the sum %s", err, sum)
	}
	// A module with a wrong checksum makes the command fail; a missing module does not.
	if _, failed := survey(t.Context(), []module{m}, opened(t, folder), nil); len(failed) != 1 {
		t.Errorf("got %v, want one failure", failed)
	}
}

func TestNoRepository(t *testing.T) {
	if r, err := openRepositories(t.Context(), t.TempDir()); err == nil {
		t.Error("a folder without a repository is no error")
		_ = r.close()
	}
}

// A module with "git: true" in modules.go may be missing: survey counts it as skipped. For
// any other missing module, survey returns an error.
func TestSurveyCountsWhatIsMissing(t *testing.T) {
	t.Setenv("GOPROXY", "off")
	t.Setenv("GOFLAGS", "")
	folder, m := published(t)
	gone := module{path: "example.com/gone", version: "v0.0.0-20260102030405-0123456789ab", sum: m.sum, git: true}
	control := gone
	control.path, control.control = "example.com/control", true
	known := map[string]label{"example.com/gone a.go:1:2 SF002": {isTrue, "kept"}}

	tally, failed := survey(t.Context(), []module{m, gone, control}, opened(t, folder), known)
	if err := errors.Join(append(failed, tally.faults...)...); err != nil {
		t.Error(err)
	}
	if got, want := tally.coverage(), "1 of 2 modules that send, 0 of 1 controls; 2 skipped"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if file := tally.file(known); !strings.Contains(file, "example.com/gone a.go:1:2 SF002 true kept") {
		t.Errorf("the label of a module that was skipped is gone:\n%s", file)
	}

	tally, failed = survey(t.Context(), []module{m}, nil, nil)
	if got, want := tally.coverage(), "0 of 1 modules that send, 0 of 0 controls; 1 skipped"; len(failed) != 0 || got != want {
		t.Errorf("without repositories, got %v and %q, want %q", failed, got, want)
	}

	m.git = false
	if _, failed := survey(t.Context(), []module{m}, opened(t, folder), nil); len(failed) != 1 {
		t.Errorf("got %v, want a failure for a module that the proxy has to have", failed)
	}
}
