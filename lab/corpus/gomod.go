package main

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/modfile"
)

// completeGoMod completes the module's go.mod for this run, or writes a new one if the module
// has none. A `replace` line may name a folder outside of the module. If repos is not nil,
// completeGoMod copies each such folder, and points the line to the copy.
func (m module) completeGoMod(dir string, repos *repositories) error {
	name := filepath.Join(dir, "go.mod")
	text, err := os.ReadFile(name) // #nosec G304 -- the go.mod of a module listed in modules.go
	if os.IsNotExist(err) {
		text, err = []byte("module "+m.path+"\n\ngo 1.16\n"), nil
	}
	if err != nil {
		return err
	}
	file, err := modfile.Parse(name, text, nil)
	if err != nil {
		return err
	}
	for i, r := range slices.Clone(file.Replace) {
		if !strings.HasPrefix(r.New.Path, "..") || repos == nil {
			continue
		}
		// The underscore excludes the copies from patterns such as ./..., so they are not
		// analyzed.
		beside := filepath.Join(dir, "_beside", strconv.Itoa(i))
		subdir := strings.TrimPrefix(path.Join("/", m.subdir, r.New.Path), "/")
		if _, err := repos.unpack(module{path: m.path, version: m.version, subdir: subdir}, beside); err != nil {
			return err
		}
		if err := file.AddReplace(r.Old.Path, r.Old.Version, beside, ""); err != nil {
			return err
		}
	}
	for _, r := range m.requires {
		name, version, _ := strings.Cut(r, "@")
		if err := file.AddRequire(name, version); err != nil {
			return err
		}
	}
	file.Cleanup()
	if text, err = file.Format(); err != nil {
		return err
	}
	return os.WriteFile(name, text, 0o600)
}
