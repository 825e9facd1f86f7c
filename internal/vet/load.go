package vet

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// LoadError says which packages could not be checked because the go command
// does not know them or they do not compile.
type LoadError struct {
	// Packages are sorted by import path.
	Packages []PackageError
}

// PackageError is one package that could not be loaded.
type PackageError struct {
	// Path is the import path, or the pattern if no package matched it.
	Path string

	// Errors are the go command's or the compiler's, with their positions. They
	// are never none.
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

// commandLine is the path of the package that files named one by one are.
const commandLine = "command-line-arguments"

// list returns the packages that the patterns name, and with each the variants that
// its tests are compiled as: their names and files, and nothing of what they import.
func list(ctx context.Context, o Options) ([]*packages.Package, error) {
	return load(ctx, o, packages.NeedName|packages.NeedFiles|packages.NeedForTest|packages.NeedModule)
}

// diagnose loads everything from source, to say what does not compile. It takes far
// longer than an analysis from the go command's cache.
func diagnose(ctx context.Context, o Options) error {
	loaded, err := load(ctx, o, packages.LoadAllSyntax|packages.NeedForTest|packages.NeedModule)
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
	// The main package that the go command writes for each test binary is nobody's code.
	return slices.DeleteFunc(loaded, func(p *packages.Package) bool { return strings.HasSuffix(p.ID, ".test") }), nil
}

// loadErrors visits dependencies, too, where they were loaded: rules follow values
// into them.
func loadErrors(loaded []*packages.Package) error {
	byPath := map[string][]string{}
	packages.Visit(loaded, nil, func(p *packages.Package) {
		path := cmp.Or(p.ForTest, p.PkgPath, p.ID)
		for _, e := range p.Errors {
			// The same error in two variants of a package is one.
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

// count counts packages as their authors do: tests belong to what they test.
func count(listed []*packages.Package) int {
	paths := map[string]bool{}
	for _, p := range listed {
		paths[cmp.Or(p.ForTest, p.PkgPath)] = true
	}
	return len(paths)
}

// paths are the packages that are reported on, as the go command names them to its vet
// tool: a package and its variant with tests have one name, an external test package
// has its own. A package without files, unsafe among them, has no answer.
func paths(listed []*packages.Package) map[string]bool {
	out := map[string]bool{}
	for _, p := range listed {
		if len(p.GoFiles) > 0 && p.PkgPath != "unsafe" {
			out[p.PkgPath] = true
		}
	}
	return out
}
