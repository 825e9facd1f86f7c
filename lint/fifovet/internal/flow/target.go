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

// Body returns the function that a call runs. It returns nil if the function is unknown
// or belongs to another package. The function is known in these cases:
//
//   - the program calls a declared function or a function literal
//   - the program calls a variable to which only one function is assigned
//   - the program calls an interface method with only one implementation
func (p *Program) Body(c *ssa.CallCommon) *ssa.Function {
	fn := c.StaticCallee()
	if c.IsInvoke() {
		if obj := p.implementation(c); obj != nil && obj.Pkg() == p.Pass.Pkg {
			fn = p.prog.FuncValue(obj)
		}
	} else if load, ok := c.Value.(*ssa.UnOp); ok {
		if cell := p.CellOf(load.X); cell != nil {
			if val := OnlyStore(cell); val != nil {
				fn = FunctionOf(val)
			}
		} else if g, ok := load.X.(*ssa.Global); ok && p.isClosed(g) && len(p.globals[g]) == 1 {
			fn = FunctionOf(p.globals[g][0])
		}
	}
	if fn == nil || len(fn.Blocks) == 0 {
		return nil
	}
	return fn
}

// implementation returns the method that an interface call runs. It returns nil unless
// exactly one type of this module implements the interface. It searches only this package
// and its direct imports. A named interface must also be from this module.
func (p *Program) implementation(c *ssa.CallCommon) *types.Func {
	if p.options.Keeps(c.Method) {
		// The call is a send of an AWS client: do not look into it.
		return nil
	}
	t := types.Unalias(c.Value.Type())
	switch t := t.(type) {
	case *types.Named:
		if t.Obj().Pkg() == nil || !SameProgram(t.Obj().Pkg().Path(), p.Pass.Pkg.Path()) {
			return nil
		}
		if t.Obj().Pkg() != p.Pass.Pkg && (len(p.fact(c.Method).Results) > 0 || p.options.Sinks(c.Method)) {
			// The interface's package has exported a fact about the method: the method returns
			// a clock reading or a random value, or puts its arguments into messages. Callers
			// use this fact.
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

// findOnly returns the only type that implements an interface. It returns nil if there
// are none or several. It ignores test doubles, and decorators: types with a field of the
// interface type.
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

// hasFieldOf reports whether t is a struct with a field of the type iface.
func hasFieldOf(t *types.Named, iface types.Type) bool {
	s, ok := t.Underlying().(*types.Struct)
	return ok && Any(s.Fields(), func(f *types.Var) bool { return types.Identical(f.Type(), iface) })
}

// Implemented looks for exported interfaces with only one implementation. For each method
// of such an interface, it calls yield with the interface's method and the implementing
// method. The interface and the implementation are both in this package.
func (p *Program) Implemented(yield func(method, impl *types.Func)) {
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
			impl, _, _ := types.LookupFieldOrMethod(types.NewPointer(only), true, p.Pass.Pkg, method.Name())
			if fn, ok := impl.(*types.Func); ok && fn.Pkg() == p.Pass.Pkg && !p.options.Keeps(method) {
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
