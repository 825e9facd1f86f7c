package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
)

// released is a module published by a release.
type released struct {
	path string // module path
	dir  string // folder below the root, with slashes; "." for the root module
	file *modfile.File
}

func (m released) tag(version string) string {
	if m.dir == "." {
		return version
	}
	return m.dir + "/" + version
}

// releasedModules returns the modules of go.work, without lab and without the modules
// below internal. Each module comes after its requirements: this is the order of
// publication.
func releasedModules(root string) ([]released, error) {
	text, err := os.ReadFile(filepath.Join(root, "go.work")) // #nosec G304 -- a file of this repository
	if err != nil {
		return nil, err
	}
	work, err := modfile.ParseWork("go.work", text, nil)
	if err != nil {
		return nil, err
	}
	var waiting []released
	for _, use := range work.Use {
		dir := filepath.ToSlash(filepath.Clean(use.Path))
		if dir == "lab" || strings.HasPrefix(dir, "internal/") {
			continue
		}
		name := filepath.Join(root, dir, "go.mod")
		text, err := os.ReadFile(name) // #nosec G304 -- a file of this repository
		if err != nil {
			return nil, err
		}
		file, err := modfile.Parse(dir+"/go.mod", text, nil)
		if err != nil {
			return nil, err
		}
		waiting = append(waiting, released{file.Module.Mod.Path, dir, file})
	}
	return inOrder(waiting)
}

func inOrder(waiting []released) (ordered []released, err error) {
	for len(waiting) > 0 {
		next := slices.IndexFunc(waiting, func(m released) bool {
			return !slices.ContainsFunc(m.ownRequirements(waiting), func(module.Version) bool { return true })
		})
		if next < 0 {
			return nil, fmt.Errorf("%s requires a module that requires it", waiting[0].path)
		}
		ordered = append(ordered, waiting[next])
		waiting = slices.Delete(waiting, next, next+1)
	}
	return ordered, nil
}

// ownRequirements returns the requirements of m that are modules of this repository.
func (m released) ownRequirements(modules []released) (own []module.Version) {
	for _, r := range m.file.Require {
		if slices.ContainsFunc(modules, func(other released) bool { return other.path == r.Mod.Path }) {
			own = append(own, r.Mod)
		}
	}
	return own
}

// problems returns the reasons why a release at the given version could not be installed.
// A go.mod must not have a replace or exclude line, and must require other released modules
// at the same version.
func problems(modules []released, version string) (out []string) {
	for _, m := range modules {
		if len(m.file.Replace)+len(m.file.Exclude) > 0 {
			out = append(out, m.dir+"/go.mod has a replace or exclude line; put it into go.work")
		}
		for _, r := range m.ownRequirements(modules) {
			if r.Version != version {
				out = append(out, fmt.Sprintf("%s/go.mod requires %s %s; run go mod edit -require=%[2]s@%s there, and change go.work", m.dir, r.Path, r.Version, version))
			}
		}
	}
	return out
}
