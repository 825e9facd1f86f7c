package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// sumError reports a module with another checksum than in modules.go.
type sumError struct{ got, want string }

func (e *sumError) Error() string {
	return fmt.Sprintf("the sum is %s, and that of the labelled module is %s", e.got, e.want)
}

// absentError reports a listed module that neither a repository nor the proxy has.
type absentError struct {
	m     module
	proxy error
}

func (e *absentError) Error() string {
	return fmt.Sprintf("%s is neither served by the proxy nor below -git: %v", e.m, e.proxy)
}

func (e *absentError) Unwrap() error { return e.proxy }

// obtain copies the module to a writable folder, usually from the proxy. If m.git is true,
// obtain prefers a local repository with the module's commit.
func (m module) obtain(ctx context.Context, repos *repositories) (string, error) {
	if m.git && repos != nil && repos.has(ctx, m) {
		return repos.checkOut(m)
	}
	dir, err := m.fetch(ctx)
	var wrong *sumError
	if err != nil && m.git && !errors.As(err, &wrong) && ctx.Err() == nil {
		return "", &absentError{m, err}
	}
	return dir, err
}

// fetch downloads the module from the proxy, checks its sum, and copies the module to a
// writable folder.
func (m module) fetch(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", m.path+"@"+m.version) // #nosec G204 -- the module is listed in modules.go
	cmd.Dir = os.TempDir()
	out, err := cmd.Output()
	var info struct{ Dir, Sum, Error string }
	if jerr := json.Unmarshal(out, &info); jerr != nil {
		return "", cmp.Or(err, jerr)
	}
	if info.Error != "" {
		return "", errors.New(info.Error)
	}
	if info.Sum != m.sum {
		return "", &sumError{got: info.Sum, want: m.sum}
	}
	dir, err := os.MkdirTemp("", "corpus")
	if err != nil {
		return "", err
	}
	if err := errors.Join(os.CopyFS(dir, os.DirFS(info.Dir)), writable(dir)); err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	return dir, nil
}

// writable removes the module cache's write protection, so that the go command may
// complete go.sum and the copy can be deleted.
func writable(dir string) error {
	return filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.Type()&os.ModeSymlink != 0 {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return os.Chmod(path, info.Mode()|0o200)
	})
}
