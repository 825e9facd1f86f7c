package vet

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// noComplianceTest is the rule's ID.
const noComplianceTest = "SF020"

// The module is known by its import path: a program that is checked may use any
// version of it, or none.
const (
	sdkPath   = "github.com/kansas-frontier-matrix/sqsfifo"
	suitePath = sdkPath + "/sqstest/compliance"
	docs      = "https://github.com/kansas-frontier-matrix/sqsfifo/blob/main/docs/rules.md"
)

// Untested is a package that constructs a producer and has no compliance test.
type Untested struct {
	// Dir is the package's folder.
	Dir string

	// Package is its name, Path its import path.
	Package, Path string

	// event is the type of the producer's events, nil where it is not known.
	event types.Type

	// scopes have the names that a file of the package's tests must not take.
	scopes []*types.Scope

	// importable are the packages that a file of the package may import for sure.
	importable map[string]bool
}

// compliance applies SF020.
func compliance(loaded []*packages.Package) ([]Finding, []Untested) {
	var findings []Finding
	var untested []Untested
	for _, p := range loaded {
		if p.ForTest != "" || p.PkgPath == "command-line-arguments" {
			continue // of files named one by one nobody knows the tests
		}
		ignores := ignoresOf(p)
		made := constructions(p)
		tests := testsOf(p, loaded)
		suite := suiteIn(tests)
		if !suite.runs {
			// Each call is asked for, so that each directive that says something counts as used.
			open := slices.DeleteFunc(made, func(c construction) bool { return ignores.cover(p.Fset.Position(c.name.Pos())) })
			if len(open) > 0 {
				findings = append(findings, missing(p, open[0], suite))
				if !suite.skipped.IsValid() {
					untested = append(untested, describe(p, tests, open[0]))
				}
			}
		}
		findings = append(findings, ignores.unused()...)
	}
	return findings, untested
}

// construction is a use of the SDK's constructor.
type construction struct {
	name  *ast.Ident
	event types.Type
}

// constructions are those of the code that is not test code, as a function is that
// takes a *testing.T. A constructor that is passed on as a value constructs, too.
func constructions(p *packages.Package) []construction {
	var out []construction
	for _, file := range p.Syntax {
		ast.Inspect(file, func(n ast.Node) bool {
			if fn, ok := n.(*ast.FuncDecl); ok && takesTesting(p, fn) {
				return false
			}
			name, ok := n.(*ast.Ident)
			if !ok || !isFunc(p.TypesInfo.Uses[name], sdkPath, "NewProducer") {
				return true
			}
			c := construction{name: name}
			if args := p.TypesInfo.Instances[name].TypeArgs; args.Len() == 1 {
				c.event = args.At(0)
			}
			out = append(out, c)
			return true
		})
	}
	return out
}

func takesTesting(p *packages.Package, fn *ast.FuncDecl) bool {
	for _, param := range fn.Type.Params.List {
		t := p.TypesInfo.TypeOf(param.Type)
		if ptr, ok := t.(*types.Pointer); ok {
			t = ptr.Elem()
		}
		if named, ok := t.(*types.Named); ok && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == "testing" {
			return true
		}
	}
	return false
}

func isFunc(o types.Object, path string, names ...string) bool {
	f, ok := o.(*types.Func)
	return ok && f.Pkg() != nil && f.Pkg().Path() == path && slices.Contains(names, f.Name())
}

// testsOf returns the package as it is compiled with its own test files, and the
// external test package.
func testsOf(p *packages.Package, loaded []*packages.Package) []*packages.Package {
	var out []*packages.Package
	for _, q := range loaded {
		if q.ForTest == p.PkgPath {
			out = append(out, q)
		}
	}
	return out
}

// suiteUse is what the tests of a package do with the suite.
type suiteUse struct {
	runs bool

	// skipped is where the first call stands that is never reached.
	skipped token.Position
}

func suiteIn(tests []*packages.Package) suiteUse {
	var use suiteUse
	for _, p := range tests {
		for _, file := range p.Syntax {
			if !strings.HasSuffix(p.Fset.Position(file.Pos()).Filename, "_test.go") {
				continue
			}
			ast.PreorderStack(file, nil, func(n ast.Node, stack []ast.Node) bool {
				name, ok := n.(*ast.Ident)
				if !ok || !isFunc(p.TypesInfo.Uses[name], suitePath, "TestProducer", "CheckProducer") {
					return true
				}
				switch {
				case !unreachable(p.TypesInfo, append(stack, n)):
					use.runs = true
				case !use.skipped.IsValid():
					use.skipped = p.Fset.Position(name.Pos())
				}
				return true
			})
		}
	}
	return use
}

// unreachable reports whether the last node of the path stands behind a skip or a
// return that always happens, or in the branch that a constant condition rules out.
func unreachable(info *types.Info, path []ast.Node) bool {
	for i, n := range path[:len(path)-1] {
		var before []ast.Stmt
		switch n := n.(type) {
		case *ast.BlockStmt:
			before = n.List
		case *ast.CaseClause:
			before = n.Body
		case *ast.CommClause:
			before = n.Body
		case *ast.IfStmt:
			if v, known := constantBool(info, n.Cond); known && (path[i+1] == ast.Node(n.Body) && !v || path[i+1] == n.Else && v) {
				return true
			}
		}
		for _, s := range before {
			if s == path[i+1] {
				break
			}
			if ends(info, s) {
				return true
			}
		}
	}
	return false
}

// ends reports whether nothing after the statement runs.
func ends(info *types.Info, s ast.Stmt) bool {
	switch s := s.(type) {
	case *ast.ReturnStmt:
		return true
	case *ast.BlockStmt:
		return slices.ContainsFunc(s.List, func(s ast.Stmt) bool { return ends(info, s) })
	case *ast.IfStmt:
		v, known := constantBool(info, s.Cond)
		return known && v && ends(info, s.Body)
	case *ast.ExprStmt:
		call, ok := s.X.(*ast.CallExpr)
		if !ok {
			return false
		}
		method, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return false
		}
		f, ok := info.Uses[method.Sel].(*types.Func)
		return ok && f.Pkg() != nil && f.Pkg().Path() == "testing" && slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, f.Name())
	}
	return false
}

func constantBool(info *types.Info, e ast.Expr) (value, known bool) {
	v := info.Types[e].Value
	if v == nil || v.Kind() != constant.Bool {
		return false, false
	}
	return constant.BoolVal(v), true
}

func missing(p *packages.Package, c construction, suite suiteUse) Finding {
	message := fmt.Sprintf("package %s constructs a producer and no test of the package calls compliance.TestProducer; sqsfifo vet -write begins one", p.Name)
	if suite.skipped.IsValid() {
		message = fmt.Sprintf("package %s constructs a producer and its compliance test never runs: the call at %s:%d is always skipped",
			p.Name, filepath.Base(suite.skipped.Filename), suite.skipped.Line)
	}
	return Finding{
		Rule: noComplianceTest, Severity: severity(noComplianceTest), Message: message, URL: docs + "#sf020",
		Start: p.Fset.Position(c.name.Pos()), End: p.Fset.Position(c.name.End()),
	}
}

func describe(p *packages.Package, tests []*packages.Package, c construction) Untested {
	u := Untested{Dir: p.Dir, Package: p.Name, Path: p.PkgPath, event: c.event, importable: map[string]bool{p.PkgPath: true}}
	for path := range p.Imports {
		u.importable[path] = true
	}
	u.scopes = append(u.scopes, p.Types.Scope())
	for _, t := range tests {
		if t.PkgPath == p.PkgPath {
			u.scopes = append(u.scopes, t.Types.Scope())
		}
	}
	return u
}
