package flow

import (
	"go/types"
	"slices"

	"golang.org/x/tools/go/ssa"
)

// CellOf returns the local variable at an address, or nil for any other address. If a
// closure captured the variable, CellOf returns the variable of the enclosing function.
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

// OnlyStore returns the value assigned to a local variable, if the declaring function
// assigns exactly one value to it. Otherwise it returns nil. Assignments in closures do
// not count.
func OnlyStore(cell *ssa.Alloc) ssa.Value {
	if stored := Stores(cell); len(stored) == 1 {
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
	}
	if x := Converted(v); x != nil {
		return FunctionOf(x)
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
