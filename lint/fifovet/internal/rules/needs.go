package rules

import (
	"go/ast"
	"go/constant"
	"go/types"
	"iter"
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
			if flow.Sources(s.nondet.names).SourceOf(obj) || flow.Qualified(obj) == "crypto/rand.Read" {
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

// functions yields the declared functions of a package that have a body.
func functions(pass *analysis.Pass) iter.Seq2[*types.Func, *ast.BlockStmt] {
	return func(yield func(*types.Func, *ast.BlockStmt) bool) {
		for _, file := range pass.Files {
			for _, decl := range file.Decls {
				if decl, ok := decl.(*ast.FuncDecl); ok && decl.Body != nil {
					if fn, ok := pass.TypesInfo.Defs[decl.Name].(*types.Func); ok && !yield(fn, decl.Body) {
						return
					}
				}
			}
		}
	}
}

// nameMisleads reports whether importing packages need a fact about an exported function.
// For example, Retry may call its parameter only once, or a function may return the name of
// a FIFO queue.
func nameMisleads(pass *analysis.Pass) bool {
	isLoop := func(n ast.Node) bool {
		switch n.(type) {
		case *ast.ForStmt, *ast.RangeStmt:
			return true
		}
		return false
	}
	isQueue := func(n ast.Node) bool {
		e, ok := n.(ast.Expr)
		value := pass.TypesInfo.Types[e].Value
		return ok && value != nil && value.Kind() == constant.String && strings.HasSuffix(constant.StringVal(value), ".fifo")
	}
	for fn, body := range functions(pass) {
		if !fn.Exported() {
			continue
		}
		takesAttempt := flow.Any(fn.Signature().Params().Variables(), func(param *types.Var) bool {
			f, ok := param.Type().Underlying().(*types.Signature)
			return ok && flow.ReturnsError(f)
		})
		results := fn.Signature().Results()
		returnsText := results.Len() > 0 && types.Identical(results.At(0).Type(), types.Typ[types.String])
		nodes := ast.Preorder(body)
		if flow.GuessedID(fn) || takesAttempt && (flow.Retries(fn) || flow.Any(nodes, isLoop)) || returnsText && flow.Any(nodes, isQueue) {
			return true
		}
	}
	return false
}

// returnsRandom reports whether any exported function of this package may return a clock
// reading or a random value. The map `random` has the known functions with such results.
// returnsRandom adds functions and variables of this package to the map.
func returnsRandom(pass *analysis.Pass, random map[types.Object]bool) bool {
	for _, name := range pass.Pkg.Scope().Names() {
		if v, ok := pass.Pkg.Scope().Lookup(name).(*types.Var); ok && flow.IsFunc(v.Type()) {
			random[v] = true // it may hold a clock; a later analysis corrects wrong guesses
		}
	}
	isRandom := func(n ast.Node) bool {
		id, _ := n.(*ast.Ident)
		obj := pass.TypesInfo.Uses[id]
		if fn, ok := obj.(*types.Func); ok {
			obj = fn.Origin()
		}
		return random[obj]
	}
	for more, passes := true, 0; more && passes < maxPassOn; passes++ {
		more = false
		for fn, body := range functions(pass) {
			if random[fn] || !returnsData(fn) || !flow.Any(ast.Preorder(body), isRandom) {
				continue
			}
			if fn.Exported() {
				return true
			}
			random[fn], more = true, true
		}
	}
	return false
}

func returnsData(fn *types.Func) bool {
	return flow.Any(fn.Signature().Results().Variables(), func(v *types.Var) bool { return flow.Yields(v.Type()) })
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
