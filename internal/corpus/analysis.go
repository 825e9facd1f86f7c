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

// findings are those of the analyzer, with paths relative to the module.
func (m module) findings(ctx context.Context, repos *repositories) ([]vet.Finding, error) {
	dir := m.dir
	if dir == "" {
		copied, err := m.obtain(ctx, repos)
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(copied)
		dir = copied
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := outsideWorkspaces(); err != nil {
		return nil, err
	}
	analyze := m.underGoVet
	if m.git {
		analyze = m.fromSource
	}
	found, err := analyze(ctx, dir)
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

// underGoVet is the way of sqsfifo vet, tests included.
func (m module) underGoVet(ctx context.Context, dir string) ([]vet.Finding, error) {
	report, err := vet.Run(ctx, vet.Options{Dir: dir, Patterns: m.packages, Flags: []string{"-sqsfifo.enable=all"}, NoCompliance: true})
	if err != nil {
		return nil, err
	}
	return report.Findings, nil
}

// fromSource reads the packages with all that they import, but for their tests, and
// analyzes them in this process. Of a repository that no proxy vouches for, nothing is
// built and nothing runs.
func (m module) fromSource(ctx context.Context, dir string) ([]vet.Finding, error) {
	if err := fifovet.Analyzer.Flags.Set("enable", "all"); err != nil {
		return nil, err
	}
	loaded, err := packages.Load(&packages.Config{
		Context: ctx,
		Dir:     dir,
		Mode:    packages.LoadAllSyntax | packages.NeedModule,
		Env:     append(os.Environ(), "CGO_ENABLED=0", "GOTOOLCHAIN=local"),
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
		if action.Err != nil { // also that it, or what it imports, does not compile
			return nil, fmt.Errorf("%s: %w", action.Package.PkgPath, action.Err)
		}
		for _, d := range action.Diagnostics {
			found = append(found, vet.FromDiagnostic(action.Package.Fset, d))
		}
	}
	return vet.Sorted(found), nil
}

// outsideWorkspaces makes the go command complete the go.sum of a module, which need
// not list what only its tests import.
func outsideWorkspaces() error {
	return errors.Join(os.Setenv("GOWORK", "off"), os.Setenv("GOFLAGS", "-mod=mod"))
}
