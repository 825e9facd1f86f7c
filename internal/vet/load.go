package vet

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// LoadError is the error of [Run] if packages are unknown to the go command or do not
// compile.
type LoadError struct {
	// Packages are sorted by import path.
	Packages []PackageError
}

// PackageError is one package that could not be loaded.
type PackageError struct {
	// Path is the import path, or the pattern if no package matched it.
	Path string

	// Errors are errors of the go command or of the compiler, with positions. There is
	// at least one.
	Errors []string
}

// Error names each package and its first errors.
func (e *LoadError) Error() string {
	const most = 3
	var b strings.Builder
	b.WriteString("not checked, because these packages do not load:")
	for _, p := range e.Packages {
		fmt.Fprintf(&b, "\n%s", p.Path)
		for i, text := range p.Errors {
			if i == most {
				fmt.Fprintf(&b, "\n\tand %d more", len(p.Errors)-most)
				break
			}
			fmt.Fprintf(&b, "\n\t%s", text)
		}
	}
	return b.String()
}

// commandLine is the import path that the go command uses if the user names single files
// in place of a package, for example with "go vet a.go b.go".
const commandLine = "command-line-arguments"

// list returns the packages that match the patterns, and for each package its variants with
// tests. It loads only names and files, and no imported packages.
func list(ctx context.Context, o Options) ([]*packages.Package, error) {
	return load(ctx, o, packages.NeedName|packages.NeedFiles|packages.NeedForTest)
}

// diagnose returns an error with the names of the packages that do not compile, or nil. It
// is slow, because it loads all imports from source and does not use a cache.
func diagnose(ctx context.Context, o Options) error {
	loaded, err := load(ctx, o, packages.LoadAllSyntax|packages.NeedForTest)
	if err != nil {
		return err
	}
	return loadErrors(loaded)
}

func load(ctx context.Context, o Options, mode packages.LoadMode) ([]*packages.Package, error) {
	config := &packages.Config{Context: ctx, Dir: o.Dir, Tests: true, Mode: mode}
	if o.Tags != "" {
		config.BuildFlags = []string{"-tags=" + o.Tags}
	}
	loaded, err := packages.Load(config, o.Patterns...)
	if err != nil {
		return nil, err
	}
	// Skip the main packages that the go command generates for test binaries.
	return slices.DeleteFunc(loaded, func(p *packages.Package) bool { return strings.HasSuffix(p.ID, ".test") }), nil
}

// loadErrors returns the errors of the packages and of their loaded dependencies. A
// broken dependency is an error, because the analyzer also follows values through
// functions of dependencies.
func loadErrors(loaded []*packages.Package) error {
	byPath := map[string][]string{}
	packages.Visit(loaded, nil, func(p *packages.Package) {
		path := cmp.Or(p.ForTest, p.PkgPath, p.ID)
		for _, e := range p.Errors {
			// Two variants of a package may have the same error: count it once.
			if text := e.Error(); !slices.Contains(byPath[path], text) {
				byPath[path] = append(byPath[path], text)
			}
		}
	})
	if len(byPath) == 0 {
		return nil
	}
	e := &LoadError{}
	for path, errs := range byPath {
		e.Packages = append(e.Packages, PackageError{Path: path, Errors: errs})
	}
	slices.SortFunc(e.Packages, func(a, b PackageError) int { return strings.Compare(a.Path, b.Path) })
	return e
}

// count returns the number of packages. A package, its test variants and its external
// test package count as one.
func count(listed []*packages.Package) int {
	paths := map[string]bool{}
	for _, p := range listed {
		paths[cmp.Or(p.ForTest, p.PkgPath)] = true
	}
	return len(paths)
}

// paths returns the import paths for which "go vet" must print a result. The value is true
// for a package that has test files of the same import path. Packages without files, and the
// package unsafe, have no result.
func paths(listed []*packages.Package) map[string]bool {
	out := map[string]bool{}
	for _, p := range listed {
		if len(p.GoFiles) > 0 && p.PkgPath != "unsafe" {
			out[p.PkgPath] = out[p.PkgPath] || slices.ContainsFunc(p.GoFiles, isTest)
		}
	}
	return out
}

func isTest(file string) bool { return strings.HasSuffix(file, "_test.go") }
