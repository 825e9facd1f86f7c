package flow

import (
	"go/constant"
	"go/token"

	"golang.org/x/tools/go/ssa"
)

// Comparison decides whether two values are computed in the same way from the same
// values. Two reads of a variable are the same value only if the variable is set at most
// once.
type Comparison struct {
	Known  map[[2]ssa.Value]bool // results of earlier comparisons; must not be nil
	Varies bool                  // a compared value depends on input, such as a parameter
}

func (c *Comparison) Same(a, b ssa.Value) bool {
	pair := [2]ssa.Value{a, b}
	if same, ok := c.Known[pair]; ok {
		return same
	}
	c.Known[pair] = false // ends the recursion for a value that depends on itself, such as a counter
	same := c.compare(a, b)
	c.Known[pair] = same
	return same
}

func (c *Comparison) compare(a, b ssa.Value) bool {
	if a == b {
		c.Varies = true
		return true
	}
	switch a := a.(type) {
	case *ssa.Const:
		b, ok := b.(*ssa.Const)
		if !ok || a.IsNil() || b.IsNil() {
			return ok && a.IsNil() == b.IsNil()
		}
		return a.Value != nil && b.Value != nil && a.Value.Kind() == b.Value.Kind() && constant.Compare(a.Value, token.EQL, b.Value)
	case *ssa.Call:
		b, ok := b.(*ssa.Call)
		return ok && c.call(&a.Call, &b.Call)
	case *ssa.UnOp:
		b, ok := b.(*ssa.UnOp)
		return ok && a.Op == b.Op && c.Same(a.X, b.X) && (a.Op != token.MUL || isSetOnce(a.X))
	case *ssa.BinOp:
		b, ok := b.(*ssa.BinOp)
		return ok && a.Op == b.Op && c.Same(a.X, b.X) && c.Same(a.Y, b.Y)
	case *ssa.FieldAddr:
		b, ok := b.(*ssa.FieldAddr)
		return ok && a.Field == b.Field && c.Same(a.X, b.X)
	case *ssa.Extract:
		b, ok := b.(*ssa.Extract)
		return ok && a.Index == b.Index && c.Same(a.Tuple, b.Tuple)
	case *ssa.Convert:
		b, ok := b.(*ssa.Convert)
		return ok && c.Same(a.X, b.X)
	}
	return false
}

func (c *Comparison) call(a, b *ssa.CallCommon) bool {
	callee := a.StaticCallee()
	if callee == nil || callee != b.StaticCallee() || makerName.MatchString(callee.Name()) || writesMemory(callee) {
		return false
	}
	for i := range a.Args {
		if !c.Same(a.Args[i], b.Args[i]) {
			return false
		}
	}
	return true
}

// writesMemory reports whether a function of this package writes to memory outside of its
// local variables.
func writesMemory(fn *ssa.Function) bool {
	return Any(Instructions(fn), func(instr ssa.Instruction) bool {
		switch instr := instr.(type) {
		case *ssa.Store:
			_, local := instr.Addr.(*ssa.Alloc)
			return !local
		case *ssa.MapUpdate, *ssa.Send:
			return true
		}
		return false
	})
}

// isSetOnce reports whether the function that contains addr assigns at most one value to
// the variable or field at addr.
func isSetOnce(addr ssa.Value) bool {
	stores := 0
	for _, same := range sameAddress(addr) {
		stores += len(Stores(same))
	}
	return stores <= 1
}
