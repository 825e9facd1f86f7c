package rules

import (
	"go/ast"
	"go/constant"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"

	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/flow"
	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/message"
)

// depth says how much of a package must be analyzed.
type depth uint8

const (
	nothing depth = iota // skip the package and build no SSA form
	sources              // export facts about functions, but check no rule
	all                  // export facts and check the rules
)

// neededDepth returns how much of a package must be analyzed. It decides by types and
// names alone, because it must be fast. The returned reachFact describes the package's
// direct and indirect imports.
func (s *settings) neededDepth(pass *analysis.Pass) (depth, reachFact) {
	var reach reachFact
	path := pass.Pkg.Path()
	if isStandard(pass) || strings.HasPrefix(path, "github.com/aws/") {
		return nothing, reach
	}
	messaging := message.IsMessaging(path)
	for _, imported := range pass.Pkg.Imports() {
		var fact reachFact
		if pass.ImportPackageFact(imported, &fact) {
			reach.SDK = reach.SDK || fact.SDK
			reach.Facts = reach.Facts || fact.Facts
		}
		if message.IsMessaging(imported.Path()) {
			messaging = true
			reach.SDK = reach.SDK || imported.Path() == flow.SDKPath
		}
	}

	// A name such as SendMessageInput shows that the package needs the full analysis.
	randomObjects := make(map[types.Object]bool) // clocks and random sources
	for _, obj := range pass.TypesInfo.Uses {
		if obj.Pkg() == nil || obj.Pkg() == pass.Pkg && !messaging {
			continue
		}
		switch obj := obj.(type) {
		case *types.TypeName:
			if messaging && message.IsMessaging(obj.Pkg().Path()) && isShapeName(obj) {
				return all, reach
			}
		case *types.Var:
			if obj.IsField() && message.IsMessaging(obj.Pkg().Path()) && isShapeField(obj.Name()) {
				return all, reach
			}
		case *types.Func:
			if obj.Pkg() == pass.Pkg {
				continue
			}
			if obj.Pkg().Path() == flow.SDKPath || messaging && isBatch(obj) {
				return all, reach
			}
			if reach.Facts {
				if pass.ImportObjectFact(obj, &message.SinkFact{}) {
					return all, reach
				}
				var fact flow.FunctionFact
				if pass.ImportObjectFact(obj, &fact) && len(fact.Results) > 0 {
					randomObjects[obj] = true
				}
			}
			if flow.Sources(s.nondet).SourceOf(obj) || flow.Qualified(obj) == "crypto/rand.Read" {
				randomObjects[obj] = true
			}
		}
	}
	if messaging && path == flow.SDKPath {
		return all, reach
	}
	if pass.Pkg.Name() != "main" && (len(randomObjects) > 0 && returnsRandom(pass, randomObjects) || nameMisleads(pass)) {
		return sources, reach
	}
	return nothing, reach
}

// isStandard reports whether a package belongs to the standard library. The analyzer
// skips these packages: it knows their clocks and random sources, such as time.Now, by
// name.
func isStandard(pass *analysis.Pass) bool {
	path := pass.Pkg.Path()
	if isHosted(path) || path == "command-line-arguments" || pass.Module != nil && pass.Module.Path != "" {
		return false
	}
	// Some drivers leave pass.Module nil. The standard library never imports a path with
	// a host name.
	return !slices.ContainsFunc(pass.Pkg.Imports(), func(imported *types.Package) bool { return isHosted(imported.Path()) })
}

// isHosted reports whether an import path begins with a host name, unlike paths of the
// standard library.
func isHosted(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return strings.Contains(first, ".")
}

func isShapeName(obj *types.TypeName) bool {
	path, name := obj.Pkg().Path(), obj.Name()
	return path == flow.SDKPath && name == "Config" || message.ShapeNamed(path, name) != nil
}

func isShapeField(name string) bool {
	for _, s := range message.Shapes {
		if s.Fields[name] != message.RoleNone {
			return true
		}
	}
	return false
}

// nameMisleads reports whether the name of an exported function may mislead, so that
// importing packages need a fact. For example, Retry may call its parameter only once.
func nameMisleads(pass *analysis.Pass) bool {
	for _, file := range pass.Files {
		for _, decl := range file.Decls {
			decl, ok := decl.(*ast.FuncDecl)
			if !ok || decl.Body == nil || !decl.Name.IsExported() {
				continue
			}
			fn, ok := pass.TypesInfo.Defs[decl.Name].(*types.Func)
			if !ok {
				continue
			}
			if flow.GuessedID(fn) || mentionsQueue(pass, fn, decl.Body) {
				return true
			}
			for param := range fn.Signature().Params().Variables() {
				if f, ok := param.Type().Underlying().(*types.Signature); ok && flow.ReturnsError(f) && (flow.Retries(fn) || calledInLoop(pass, decl.Body, param)) {
					return true
				}
			}
		}
	}
	return false
}

// mentionsQueue reports whether a function returns a text, and its body has a constant with
// the name of a FIFO queue.
func mentionsQueue(pass *analysis.Pass, fn *types.Func, body *ast.BlockStmt) bool {
	if r := fn.Signature().Results(); r.Len() == 0 || !types.Identical(r.At(0).Type(), types.Typ[types.String]) {
		return false
	}
	found := false
	ast.Inspect(body, func(n ast.Node) bool {
		if e, ok := n.(ast.Expr); ok && !found {
			value := pass.TypesInfo.Types[e].Value
			found = value != nil && value.Kind() == constant.String && strings.HasSuffix(constant.StringVal(value), ".fifo")
		}
		return !found
	})
	return found
}

// calledInLoop reports whether a function value is called inside of a loop.
func calledInLoop(pass *analysis.Pass, body *ast.BlockStmt, param *types.Var) bool {
	found := false
	ast.Inspect(body, func(n ast.Node) bool {
		var loop *ast.BlockStmt
		switch n := n.(type) {
		case *ast.ForStmt:
			loop = n.Body
		case *ast.RangeStmt:
			loop = n.Body
		default:
			return !found
		}
		ast.Inspect(loop, func(n ast.Node) bool {
			if c, ok := n.(*ast.CallExpr); ok {
				if id, ok := ast.Unparen(c.Fun).(*ast.Ident); ok && pass.TypesInfo.Uses[id] == param {
					found = true
				}
			}
			return !found
		})
		return !found
	})
	return found
}

// returnsRandom reports whether any exported function of this package may return a clock
// reading or a random value. The map randomObjects has the known functions with such
// results. returnsRandom adds functions and variables of this package to the map.
func returnsRandom(pass *analysis.Pass, randomObjects map[types.Object]bool) bool {
	type body struct {
		fn   *types.Func
		uses []types.Object
	}
	var bodies []body
	for _, name := range pass.Pkg.Scope().Names() {
		if v, ok := pass.Pkg.Scope().Lookup(name).(*types.Var); ok && flow.IsFunc(v.Type()) {
			// Each such variable may hold a clock. A later analysis corrects wrong
			// guesses.
			randomObjects[v] = true
		}
	}
	for _, file := range pass.Files {
		for _, decl := range file.Decls {
			decl, ok := decl.(*ast.FuncDecl)
			if !ok || decl.Body == nil {
				continue
			}
			fn, ok := pass.TypesInfo.Defs[decl.Name].(*types.Func)
			if !ok || !returnsData(fn) {
				continue
			}
			b := body{fn: fn}
			ast.Inspect(decl.Body, func(n ast.Node) bool {
				id, ok := n.(*ast.Ident)
				if !ok {
					return true
				}
				switch obj := pass.TypesInfo.Uses[id].(type) {
				case *types.Func:
					if randomObjects[obj.Origin()] || randomObjects[obj] || obj.Pkg() == pass.Pkg {
						b.uses = append(b.uses, obj.Origin())
					}
				case *types.Var:
					if randomObjects[obj] {
						b.uses = append(b.uses, obj)
					}
				}
				return true
			})
			if len(b.uses) > 0 {
				bodies = append(bodies, b)
			}
		}
	}
	for range maxPassOn {
		for _, b := range bodies {
			for _, u := range b.uses {
				if !randomObjects[u] {
					continue
				}
				if b.fn.Exported() {
					return true
				}
				randomObjects[b.fn] = true
				break
			}
		}
	}
	return false
}

func returnsData(fn *types.Func) bool {
	for v := range fn.Signature().Results().Variables() {
		if flow.Yields(v.Type()) {
			return true
		}
	}
	return false
}

// reachFact describes a package together with its direct and indirect imports.
type reachFact struct {
	SDK   bool // package sqsfifo is imported, directly or indirectly
	Facts bool // the package or an import exports facts about functions, such as SinkFact
}

func (*reachFact) AFact() {}

func (f *reachFact) String() string {
	return "reach"
}
