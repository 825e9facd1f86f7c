package flow

import (
	"go/types"
	"slices"

	"golang.org/x/tools/go/ssa"
)

// CellOf returns the variable at the address addr, or nil if addr is not the address of a
// variable. If a closure captures the variable, CellOf returns the enclosing function's
// variable.
func (p *Program) CellOf(addr ssa.Value) *ssa.Alloc {
	switch addr := addr.(type) {
	case *ssa.Alloc:
		return addr
	case *ssa.FreeVar:
		fn := addr.Parent()
		if made := p.closures[fn]; len(made) == 1 {
			return p.CellOf(made[0].Bindings[slices.Index(fn.FreeVars, addr)])
		}
	}
	return nil
}

// OnlyStore returns the value of a variable with exactly one store in its own function,
// or nil.
func OnlyStore(cell *ssa.Alloc) ssa.Value {
	if stored := slices.Collect(Stores(cell)); len(stored) == 1 {
		return stored[0]
	}
	return nil
}

func IsEmpty(v ssa.Value) bool {
	c, ok := v.(*ssa.Const)
	return ok && c.Value == nil
}

func FunctionOf(v ssa.Value) *ssa.Function {
	switch v := v.(type) {
	case *ssa.Function:
		return v
	case *ssa.MakeClosure:
		fn, _ := v.Fn.(*ssa.Function)
		return fn
	case *ssa.ChangeType:
		return FunctionOf(v.X)
	}
	return nil
}

func IsError(t types.Type) bool {
	return types.Identical(t, types.Universe.Lookup("error").Type())
}

func IsFunc(t types.Type) bool {
	_, ok := t.Underlying().(*types.Signature)
	return ok
}

func ReturnsError(f *types.Signature) bool {
	n := f.Results().Len()
	return n > 0 && IsError(f.Results().At(n-1).Type())
}
