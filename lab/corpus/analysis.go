package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/vet"
	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet"
)

// findings obtains the module and returns the analyzer's findings, with paths relative to
// the module.
func (m module) findings(ctx context.Context, repos *repositories) ([]vet.Finding, error) {
	dir, err := m.obtain(ctx, repos)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	return m.analyze(ctx, dir, repos)
}

func (m module) analyze(ctx context.Context, dir string, repos *repositories) (found []vet.Finding, err error) {
	if err := outsideWorkspaces(); err != nil {
		return nil, err
	}
	if m.git {
		found, err = m.fromSource(ctx, dir, repos)
	} else {
		found, err = m.underGoVet(ctx, dir)
	}
	if err != nil {
		return nil, err
	}
	for i := range found {
		name := &found[i].Start.Filename
		rel, err := filepath.Rel(dir, *name)
		if err != nil {
			return nil, err
		}
		*name = filepath.ToSlash(rel)
	}
	return found, nil
}

// underGoVet analyzes a module with its tests, as sqsfifo vet does.
func (m module) underGoVet(ctx context.Context, dir string) ([]vet.Finding, error) {
	report, err := vet.Run(ctx, vet.Options{Dir: dir, Patterns: m.packages, Flags: []string{"-" + fifovet.Analyzer.Name + ".notes"}, NoCompliance: true})
	if err != nil {
		return nil, err
	}
	return report.Findings, nil
}

// fromSource analyzes the packages with their imports, without tests, in this process. It
// builds and runs no code of the module, because code from a git repository is not trusted.
func (m module) fromSource(ctx context.Context, dir string, repos *repositories) ([]vet.Finding, error) {
	if err := errors.Join(fifovet.Analyzer.Flags.Set("notes", "true"), m.completeGoMod(dir, repos)); err != nil {
		return nil, err
	}
	loaded, err := packages.Load(&packages.Config{
		Context: ctx, Dir: dir, Mode: packages.LoadAllSyntax | packages.NeedModule, Env: append(os.Environ(), "CGO_ENABLED=0", "GOTOOLCHAIN=local"),
	}, m.packages...)
	if err != nil {
		return nil, err
	}
	if len(loaded) == 0 {
		return nil, fmt.Errorf("no packages match %s", strings.Join(m.packages, " "))
	}
	graph, err := checker.Analyze([]*analysis.Analyzer{fifovet.Analyzer}, loaded, nil)
	if err != nil {
		return nil, err
	}
	var found []vet.Finding
	for _, action := range graph.Roots {
		if action.Err != nil {
			return nil, fmt.Errorf("%s: %w%s", action.Package.PkgPath, action.Err, firstFault(action))
		}
		for _, d := range action.Diagnostics {
			found = append(found, vet.FromDiagnostic(action.Package.Fset, d))
		}
	}
	return vet.Sorted(found), nil
}

// firstFault returns the first error of a package or its imports, as a suffix for an
// error message, or "" without an error.
func firstFault(action *checker.Action) string {
	for _, e := range action.Package.Errors {
		return ": " + e.Error()
	}
	for _, dep := range action.Deps {
		if dep.Err != nil {
			return firstFault(dep)
		}
	}
	return ""
}

// outsideWorkspaces makes the go command ignore workspaces. It also lets the go command
// complete a module's go.sum, which may lack the imports of the module's tests.
func outsideWorkspaces() error {
	return errors.Join(os.Setenv("GOWORK", "off"), os.Setenv("GOFLAGS", "-mod=mod"))
}
