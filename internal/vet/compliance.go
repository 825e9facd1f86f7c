package vet

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"

	"golang.org/x/tools/go/packages"
)

// noComplianceTest is the ID of the rule about packages without a compliance test.
const noComplianceTest = "SF020"

// sdkPath, fakePath and suitePath are import paths of this module. The rule SF020 compares
// paths, because a checked program may use any version of the module. docs is the address
// of the page about the rules.
const (
	sdkPath   = "github.com/kansas-frontier-matrix/sqsfifo"
	fakePath  = sdkPath + "/sqstest"
	suitePath = fakePath + "/compliance"
	docs      = "https://github.com/kansas-frontier-matrix/sqsfifo/blob/main/docs/rules.md"
)

// Untested is a package that constructs a producer (with sqsfifo.NewProducer) without a
// compliance test: its tests do not call compliance.TestProducer or
// compliance.CheckProducer.
type Untested struct {
	// Dir is the package's folder.
	Dir string

	// Package is the package's name, Path the import path.
	Package, Path string
}

// compliance applies rule SF020 (missing compliance test) to the listed packages. It parses only
// packages that import this module or mention SF020, and it loads no imported packages.
func compliance(listed []*packages.Package) ([]Finding, []Untested, error) {
	var findings []Finding
	var untested []Untested
	sources := sources{}
	for _, p := range listed {
		if p.ForTest != "" || p.PkgPath == commandLine {
			// Skip test packages: suiteOf reads them together with the package that they
			// test. Skip files named on the command line: their tests are not known.
			continue
		}
		check, err := sources.mustCheck(p.GoFiles)
		if err != nil {
			return nil, nil, err
		}
		if !check {
			continue
		}
		code, err := sources.check(p)
		if err != nil {
			return nil, nil, err
		}
		ignores := ignoresOf(code)
		made := constructions(code)
		var suite suiteUse
		if len(made) > 0 {
			if suite, err = sources.suiteOf(p, listed); err != nil {
				return nil, nil, err
			}
		}
		if !suite.runs {
			// Call the method `cover` for every construction, even after an uncovered one,
			// because the method also marks ignore comments as used.
			uncovered := slices.DeleteFunc(made, func(c construction) bool { return ignores.cover(code.fset.Position(c.name.Pos())) })
			if len(uncovered) > 0 {
				findings = append(findings, missing(code, uncovered[0], suite))
				if !suite.skipped.IsValid() {
					untested = append(untested, Untested{Dir: p.Dir, Package: code.name, Path: p.PkgPath})
				}
			}
		}
		findings = append(findings, ignores.unused()...)
	}
	return findings, untested, nil
}

// suiteOf finds calls of the compliance suite (compliance.TestProducer and CheckProducer)
// in the internal and external tests of package p.
func (s sources) suiteOf(p *packages.Package, listed []*packages.Package) (suiteUse, error) {
	var use suiteUse
	for _, q := range listed {
		if q.ForTest != p.PkgPath {
			continue
		}
		code, err := s.check(q)
		if err != nil {
			return use, err
		}
		use.addCalls(code)
	}
	return use, nil
}

// construction is a place where code uses the constructor NewProducer or NewProducerOn.
type construction struct {
	name *ast.Ident

	// event is the type of the producer's events, nil if unknown.
	event types.Type
}

// constructions returns the uses of NewProducer and NewProducerOn in a package. It leaves
// out functions with a parameter such as *testing.T, and calls with the fake queue as
// client.
func constructions(c *code) []construction {
	var out []construction
	for _, file := range c.files {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if takesTesting(c.info, n) {
					return false
				}
			case *ast.CallExpr:
				if isConstructor(c.info, n.Fun) && len(n.Args) > 0 && isFake(c.info.TypeOf(n.Args[0])) {
					return false
				}
			}
			name, ok := n.(*ast.Ident)
			if !ok || !isFunc(c.info.Uses[name], sdkPath, "NewProducer", "NewProducerOn") {
				return true
			}
			made := construction{name: name}
			if args := c.info.Instances[name].TypeArgs; args.Len() == 1 {
				made.event = args.At(0)
			}
			out = append(out, made)
			return true
		})
	}
	return out
}

// isConstructor reports whether a called expression is the function NewProducer, with or
// without a type argument.
func isConstructor(info *types.Info, fun ast.Expr) bool {
	switch f := ast.Unparen(fun).(type) {
	case *ast.IndexExpr:
		return isConstructor(info, f.X)
	case *ast.SelectorExpr:
		return isFunc(info.Uses[f.Sel], sdkPath, "NewProducer")
	case *ast.Ident:
		return isFunc(info.Uses[f], sdkPath, "NewProducer")
	}
	return false
}

func isFake(t types.Type) bool {
	if ptr, ok := t.(*types.Pointer); ok {
		t = ptr.Elem()
	}
	named, ok := t.(*types.Named)
	return ok && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == fakePath && named.Obj().Name() == "Queue"
}

func takesTesting(info *types.Info, fn *ast.FuncDecl) bool {
	for _, param := range fn.Type.Params.List {
		t := info.TypeOf(param.Type)
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

// suiteUse describes the calls of the compliance suite in the tests of a package.
type suiteUse struct {
	runs bool // at least one call can run

	// skipped is the position of the first call that never runs, for example a call after
	// t.Skip, or the zero Position.
	skipped token.Position
}

// addCalls looks for calls of the compliance suite in the test files of the package c, and
// records them in the suiteUse.
func (use *suiteUse) addCalls(c *code) {
	for _, file := range c.files {
		if !isTest(c.fset.Position(file.FileStart).Filename) {
			continue
		}
		ast.PreorderStack(file, nil, func(n ast.Node, stack []ast.Node) bool {
			name, ok := n.(*ast.Ident)
			if !ok || !isFunc(c.info.Uses[name], suitePath, "TestProducer", "CheckProducer") {
				return true
			}
			switch {
			case !unreachable(c.info, append(stack, n)):
				use.runs = true
			case !use.skipped.IsValid():
				use.skipped = c.fset.Position(name.Pos())
			}
			return true
		})
	}
}

// unreachable reports whether the last node of a path in the syntax tree can never run:
// after an unconditional return or Skip, or in a branch excluded by a constant condition.
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

// ends reports whether the statements after s never run, because s always returns from
// the function or skips the test.
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

func missing(c *code, made construction, suite suiteUse) Finding {
	message := fmt.Sprintf("package %s constructs a producer and no test of the package calls compliance.TestProducer; sqsfifo vet --write begins one", c.name)
	if suite.skipped.IsValid() {
		message = fmt.Sprintf("package %s constructs a producer and its compliance test never runs: the call at %s:%d is always skipped",
			c.name, filepath.Base(suite.skipped.Filename), suite.skipped.Line)
	}
	return Finding{
		Rule: noComplianceTest, Severity: SeverityOf(noComplianceTest), Message: message, URL: page(noComplianceTest),
		Start: c.fset.Position(made.name.Pos()), End: c.fset.Position(made.name.End()),
	}
}
