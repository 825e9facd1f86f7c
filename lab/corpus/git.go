package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	xmodule "golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/zip"
)

// repositories gives access to all git repositories below a folder, bare or not. The field
// `dir` is a new, empty repository that borrows the objects of these repositories
// (objects/info/alternates).
type repositories struct{ dir string }

// openRepositories looks for repositories in the folder and in three levels of
// subfolders.
func openRepositories(ctx context.Context, folder string) (*repositories, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return nil, err
	}
	var objects []string
	err = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if isGitDir(path) {
			objects = append(objects, filepath.Join(path, "objects"))
			return fs.SkipDir
		}
		rel, err := filepath.Rel(folder, path)
		if err == nil && strings.Count(filepath.ToSlash(rel), "/") >= 3 {
			return fs.SkipDir
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(objects) == 0 {
		return nil, fmt.Errorf("-git: no git repository below %s", folder)
	}
	dir, err := os.MkdirTemp("", "corpus-git")
	if err != nil {
		return nil, err
	}
	r := &repositories{dir}
	if _, err := r.run(ctx, "init", "--quiet"); err != nil {
		return nil, errors.Join(err, r.close())
	}
	// Like the go command, ignore attributes in the commit that exclude or change files.
	for file, text := range map[string]string{
		"objects/info/alternates": strings.Join(objects, "\n") + "\n",
		"info/attributes":         "* -export-subst -export-ignore\n",
	} {
		file = filepath.Join(dir, ".git", filepath.FromSlash(file))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o750), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			return nil, errors.Join(err, r.close())
		}
	}
	return r, nil
}

func isGitDir(dir string) bool {
	for _, name := range []string{"HEAD", "objects"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

func (r *repositories) close() error { return os.RemoveAll(r.dir) }

func (r *repositories) run(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...) // #nosec G204 -- git, in a folder of this process
	cmd.Dir = r.dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return string(out), nil
}

// has reports whether any repository contains the module's commit.
func (r *repositories) has(ctx context.Context, m module) bool {
	rev, err := xmodule.PseudoVersionRev(m.version)
	if err != nil {
		return false
	}
	_, err = r.run(ctx, "rev-parse", "--verify", "--quiet", rev+"^{commit}")
	return err == nil
}

// checkOut unpacks the module with the files that a proxy would serve, and checks the
// module's sum.
func (r *repositories) checkOut(m module) (string, error) {
	dir, err := os.MkdirTemp("", "corpus")
	if err != nil {
		return "", err
	}
	sum, err := r.unpack(m, dir)
	if err == nil && sum != m.sum {
		err = &sumError{got: sum, want: m.sum}
	}
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	return dir, nil
}

// unpack unpacks the module into a folder, which it creates if necessary. It returns the
// module's sum.
func (r *repositories) unpack(m module, dir string) (string, error) {
	rev, err := xmodule.PseudoVersionRev(m.version)
	if err != nil {
		return "", err
	}
	archive := filepath.Join(r.dir, "module.zip")
	f, err := os.Create(archive) // #nosec G304 -- a file in a temporary folder of this process
	if err != nil {
		return "", err
	}
	defer os.Remove(archive)
	version := xmodule.Version{Path: m.path, Version: m.version}
	if err := errors.Join(zip.CreateFromVCS(f, version, r.dir, rev, m.subdir), f.Close()); err != nil {
		return "", err
	}
	sum, err := dirhash.HashZip(archive, dirhash.Hash1)
	if err != nil {
		return "", err
	}
	return sum, errors.Join(zip.Unzip(dir, version, archive), writable(dir))
}
