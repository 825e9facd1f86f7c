package flow

import (
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// Callee returns the declared function of a call. For a call through an interface it
// returns the method of the only implementation, or else the interface's method. It
// returns nil for builtins, literals and unknown function values.
func (p *Program) Callee(c *ssa.CallCommon) *types.Func {
	if c.IsInvoke() {
		if fn := p.implementation(c); fn != nil {
			return fn
		}
	}
	return CalleeOf(c)
}

// Body returns the function of this package that a call runs: a declared function, a
// literal, the only value of a variable, or an interface method's only implementation. It
// returns nil for any other call.
func (p *Program) Body(c *ssa.CallCommon) *ssa.Function {
	if fn := StaticBody(c); fn != nil {
		return fn
	}
	var fn *ssa.Function
	if c.IsInvoke() {
		if obj := p.implementation(c); obj != nil && obj.Pkg() == p.Pass.Pkg {
			fn = p.prog.FuncValue(obj)
		}
	} else if load, ok := c.Value.(*ssa.UnOp); ok {
		if held := p.functionIn(load); held != nil {
			fn = held
		} else if cell := p.CellOf(load.X); cell != nil {
			if val := OnlyStore(cell); val != nil {
				fn = FunctionOf(val)
			}
		}
	}
	if fn == nil || len(fn.Blocks) == 0 {
		return nil
	}
	return fn
}

// implementation returns the method that a call through an interface runs, or nil. The
// interface must belong to this program (see SameProgram) and have exactly one
// implementation, in this package or in an imported one.
func (p *Program) implementation(c *ssa.CallCommon) *types.Func {
	if p.options.Keeps(c.Method) {
		return nil // for a method such as SendMessage, the interface is the client of an AWS SDK
	}
	t := types.Unalias(c.Value.Type())
	switch t := t.(type) {
	case *types.Named:
		if t.Obj().Pkg() == nil || !SameProgram(t.Obj().Pkg().Path(), p.Pass.Pkg.Path()) {
			return nil
		}
		if t.Obj().Pkg() != p.Pass.Pkg && p.hasFacts(c.Method) {
			// The interface's package has already exported a fact about this method from
			// its only implementation.
			return nil
		}
	case *types.Interface:
	default:
		return nil
	}
	only, known := p.only[t]
	if !known {
		only = p.findOnly(t)
		p.only[t] = only
	}
	if only == nil {
		return nil
	}
	obj, index, _ := types.LookupFieldOrMethod(types.NewPointer(only), true, c.Method.Pkg(), c.Method.Name())
	fn, ok := obj.(*types.Func)
	if !ok || len(index) != 1 || types.IsInterface(fn.Signature().Recv().Type()) {
		return nil
	}
	return fn
}

// hasFacts reports whether the package of a function has exported facts about the
// function.
func (p *Program) hasFacts(fn *types.Func) bool {
	return p.Pass.ImportObjectFact(fn, &NondetFact{}) || p.options.Sinks(fn)
}

// findOnly returns the only type that implements an interface, or nil. It ignores test
// doubles, and types that contain a value of the interface (decorators).
func (p *Program) findOnly(t types.Type) types.Type {
	iface, ok := t.Underlying().(*types.Interface)
	if !ok || iface.NumMethods() == 0 {
		return nil
	}
	var found []types.Type
	for _, pkg := range append([]*types.Package{p.Pass.Pkg}, p.Pass.Pkg.Imports()...) {
		if pkg != p.Pass.Pkg && !SameProgram(pkg.Path(), p.Pass.Pkg.Path()) {
			continue
		}
		for _, name := range pkg.Scope().Names() {
			obj, ok := pkg.Scope().Lookup(name).(*types.TypeName)
			if !ok || obj.IsAlias() || types.IsInterface(obj.Type()) || doubleName.MatchString(name) || p.exempted[p.Pass.Fset.File(obj.Pos())] {
				continue
			}
			named, ok := obj.Type().(*types.Named)
			if !ok || named.TypeParams().Len() > 0 || !types.Implements(types.NewPointer(named), iface) || hasFieldOf(named, t) {
				continue
			}
			found = append(found, named)
		}
	}
	if len(found) != 1 {
		return nil
	}
	return found[0]
}

// hasFieldOf reports whether a struct has a field of an interface type.
func hasFieldOf(t *types.Named, iface types.Type) bool {
	s, ok := t.Underlying().(*types.Struct)
	if !ok {
		return false
	}
	return slices.ContainsFunc(slices.Collect(s.Fields()), func(f *types.Var) bool { return types.Identical(f.Type(), iface) })
}

// Implemented calls yield for each method of an exported interface of this package that has
// only one implementation. The argument by is the implementing method of this package.
func (p *Program) Implemented(yield func(method, by *types.Func)) {
	for _, name := range p.Pass.Pkg.Scope().Names() {
		obj, ok := p.Pass.Pkg.Scope().Lookup(name).(*types.TypeName)
		if !ok || !obj.Exported() || obj.IsAlias() || !types.IsInterface(obj.Type()) {
			continue
		}
		iface, ok := obj.Type().Underlying().(*types.Interface)
		if !ok || iface.NumExplicitMethods() == 0 {
			continue
		}
		only := p.findOnly(obj.Type())
		if only == nil {
			continue
		}
		for method := range iface.ExplicitMethods() {
			by, _, _ := types.LookupFieldOrMethod(types.NewPointer(only), true, p.Pass.Pkg, method.Name())
			if fn, ok := by.(*types.Func); ok && fn.Pkg() == p.Pass.Pkg && !p.options.Keeps(method) {
				yield(method, fn)
			}
		}
	}
}

// SameProgram guesses from two import paths whether the packages are in one module.
func SameProgram(a, b string) bool { return programOf(a) == programOf(b) }

func programOf(path string) string {
	parts := strings.SplitN(path, "/", 4)
	if len(parts) >= 3 && slices.Contains([]string{"github.com", "gitlab.com", "bitbucket.org"}, parts[0]) {
		return strings.Join(parts[:3], "/")
	}
	return parts[0]
}
