package fifovet

import (
	"go/constant"
	"go/token"

	"golang.org/x/tools/go/ssa"
)

// comparison finds out whether two values are computed in the same way from the
// same values. What might be another value at the second look is not the same.
type comparison struct {
	known  map[[2]ssa.Value]bool
	varies bool // something goes in that is not known here, such as a parameter
}

func (c *comparison) same(a, b ssa.Value) bool {
	pair := [2]ssa.Value{a, b}
	if same, ok := c.known[pair]; ok {
		return same
	}
	c.known[pair] = false // of a loop
	same := c.compare(a, b)
	c.known[pair] = same
	return same
}

func (c *comparison) compare(a, b ssa.Value) bool {
	if a == b { // one value, however it came about
		c.varies = c.varies || !isFixed(a)
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
		return ok && a.Op == b.Op && c.same(a.X, b.X) && (a.Op != token.MUL || isSetOnce(a.X))
	case *ssa.BinOp:
		b, ok := b.(*ssa.BinOp)
		return ok && a.Op == b.Op && c.same(a.X, b.X) && c.same(a.Y, b.Y)
	case *ssa.FieldAddr:
		b, ok := b.(*ssa.FieldAddr)
		return ok && a.Field == b.Field && c.same(a.X, b.X)
	case *ssa.Field:
		b, ok := b.(*ssa.Field)
		return ok && a.Field == b.Field && c.same(a.X, b.X)
	case *ssa.Extract:
		b, ok := b.(*ssa.Extract)
		return ok && a.Index == b.Index && c.same(a.Tuple, b.Tuple)
	case *ssa.Convert:
		b, ok := b.(*ssa.Convert)
		return ok && c.same(a.X, b.X)
	case *ssa.Parameter, *ssa.FreeVar, *ssa.Alloc:
		c.varies = true
		return a == b
	}
	return false
}

// isFixed reports whether a value is a constant or comes from constants, such as the
// variable of the environment that os.Getenv reads.
func isFixed(v ssa.Value) bool {
	switch v := v.(type) {
	case *ssa.Const:
		return true
	case *ssa.Call:
		for _, arg := range v.Call.Args {
			if !isFixed(arg) {
				return false
			}
		}
		return !v.Call.IsInvoke() && v.Call.StaticCallee() != nil
	}
	return false
}

func (c *comparison) call(a, b *ssa.CallCommon) bool {
	callee := a.StaticCallee()
	if callee == nil || callee != b.StaticCallee() || makerName.MatchString(callee.Name()) || changes(callee) {
		return false
	}
	for i := range a.Args {
		if !c.same(a.Args[i], b.Args[i]) {
			return false
		}
	}
	return true
}

// changes reports whether a function of this package writes to what others see.
func changes(fn *ssa.Function) bool {
	for _, block := range fn.Blocks {
		for _, instr := range block.Instrs {
			switch instr := instr.(type) {
			case *ssa.Store:
				if _, ok := instr.Addr.(*ssa.Alloc); !ok {
					return true
				}
			case *ssa.MapUpdate, *ssa.Send:
				return true
			}
		}
	}
	return false
}

// isSetOnce reports whether the variable or field at an address keeps its value
// in the function, as far as the function shows.
func isSetOnce(addr ssa.Value) bool {
	stores := 0
	for _, same := range sameAddress(addr) {
		for _, instr := range referrers(same) {
			if store, ok := instr.(*ssa.Store); ok && store.Addr == same {
				stores++
			}
		}
	}
	return stores <= 1
}
