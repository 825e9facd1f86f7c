package fifovet

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// need says how much of a package has to be looked at.
type need uint8

const (
	nothing need = iota // the fast exit: no SSA form is built
	sources             // only which functions hand on something random
	all
)

// needs decides from types alone whether a package can have findings, or facts
// for the packages that import it.
func (s *settings) needs(pass *analysis.Pass) (need, reachFact) {
	var reach reachFact
	path := pass.Pkg.Path()
	if isStandard(pass) || strings.HasPrefix(path, "github.com/aws/") {
		return nothing, reach
	}
	messaging := isMessaging(path)
	for _, imported := range pass.Pkg.Imports() {
		var fact reachFact
		if pass.ImportPackageFact(imported, &fact) {
			reach.SDK = reach.SDK || fact.SDK
			reach.Facts = reach.Facts || fact.Facts
		}
		if isMessaging(imported.Path()) {
			messaging = true
			reach.SDK = reach.SDK || imported.Path() == sdkPath
		}
	}

	// The nodes are only worth a walk where they can name a source or a sink.
	random := make(map[types.Object]bool)
	for _, obj := range pass.TypesInfo.Uses {
		if obj.Pkg() == nil || obj.Pkg() == pass.Pkg && !messaging {
			continue
		}
		switch obj := obj.(type) {
		case *types.TypeName:
			if messaging && isMessaging(obj.Pkg().Path()) && isShapeName(obj) {
				return all, reach
			}
		case *types.Var:
			if obj.IsField() && isMessaging(obj.Pkg().Path()) && isShapeField(obj.Name()) {
				return all, reach
			}
		case *types.Func:
			if obj.Pkg() == pass.Pkg {
				continue
			}
			if obj.Pkg().Path() == sdkPath {
				return all, reach
			}
			if reach.Facts {
				if pass.ImportObjectFact(obj, &sinkFact{}) {
					return all, reach
				}
				if pass.ImportObjectFact(obj, &nondetFact{}) {
					random[obj] = true
				}
			}
			if s.sourceOf(obj) || qualified(obj) == "crypto/rand.Read" {
				random[obj] = true
			}
		}
	}
	if messaging && path == sdkPath {
		return all, reach
	}
	if pass.Pkg.Name() != "main" && (len(random) > 0 && handsOn(pass, random) || misleads(pass)) {
		return sources, reach
	}
	return nothing, reach
}

// isStandard reports whether a package belongs to the standard library, which
// has nothing to report and whose sources are known.
func isStandard(pass *analysis.Pass) bool {
	path := pass.Pkg.Path()
	if isHosted(path) || path == "command-line-arguments" || pass.Module != nil && pass.Module.Path != "" {
		return false
	}
	// A module may have a name without a dot, and not every driver says which one it
	// is. The standard library imports nothing but itself.
	return !slices.ContainsFunc(pass.Pkg.Imports(), func(imported *types.Package) bool { return isHosted(imported.Path()) })
}

// isHosted reports whether an import path begins with the name of a host, which those
// of the standard library do not.
func isHosted(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return strings.Contains(first, ".")
}

func isShapeName(obj *types.TypeName) bool {
	path, name := obj.Pkg().Path(), obj.Name()
	if path == sdkPath && name == "Config" {
		return true
	}
	for _, s := range shapes {
		if s.pkg == path && s.name == name {
			return true
		}
	}
	return false
}

func isShapeField(name string) bool {
	for _, s := range shapes {
		if s.fields[name] != roleNone {
			return true
		}
	}
	return false
}

// misleads reports whether an exported function may be something else than its name
// says: a generator that derives, or a function that tries again what it is given.
func misleads(pass *analysis.Pass) bool {
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
			if guessedID(fn) {
				return true
			}
			for param := range fn.Signature().Params().Variables() {
				if f, ok := param.Type().Underlying().(*types.Signature); ok && returnsError(f) && (retries(fn) || calledInLoop(pass, decl.Body, param)) {
					return true
				}
			}
		}
	}
	return false
}

func returnsError(f *types.Signature) bool {
	n := f.Results().Len()
	return n > 0 && isError(f.Results().At(n-1).Type())
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

// handsOn reports whether an exported function may return what one of the
// sources gave it, directly or through functions of the package.
func handsOn(pass *analysis.Pass, random map[types.Object]bool) bool {
	type body struct {
		fn   *types.Func
		uses []types.Object
	}
	var bodies []body
	for _, name := range pass.Pkg.Scope().Names() {
		if v, ok := pass.Pkg.Scope().Lookup(name).(*types.Var); ok && isFunc(v.Type()) {
			random[v] = true // what it holds is looked at later
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
					if random[obj.Origin()] || random[obj] || obj.Pkg() == pass.Pkg {
						b.uses = append(b.uses, obj.Origin())
					}
				case *types.Var:
					if random[obj] {
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
	for range maxHandsOn {
		for _, b := range bodies {
			for _, u := range b.uses {
				if !random[u] {
					continue
				}
				if b.fn.Exported() {
					return true
				}
				random[b.fn] = true
				break
			}
		}
	}
	return false
}

func isFunc(t types.Type) bool {
	_, ok := t.Underlying().(*types.Signature)
	return ok
}

func returnsData(fn *types.Func) bool {
	for v := range fn.Signature().Results().Variables() {
		if carries(v.Type()) {
			return true
		}
	}
	return false
}
