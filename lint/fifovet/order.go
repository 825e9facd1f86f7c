package fifovet

import (
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// order notes that the order of a map takes part, unless it is undone later.
func (t *tracer) order(v ssa.Value, l place) {
	if !l.settled {
		t.end(origin{kind: fromOrder, root: v, text: "the order of a map", pos: v.Pos()}, l)
	}
}

// isSorted reports whether a slice is put in order by somebody.
func isSorted(v ssa.Value) bool {
	if _, ok := v.Type().Underlying().(*types.Slice); !ok {
		return false
	}
	refs := slices.Clone(referrers(v))
	if load, ok := v.(*ssa.UnOp); ok { // other loads of the variable or field
		for _, addr := range sameAddress(load.X) {
			for _, instr := range referrers(addr) {
				if again, ok := instr.(*ssa.UnOp); ok {
					refs = append(refs, referrers(again)...)
				}
			}
		}
	}
	for _, instr := range refs {
		if mk, ok := instr.(*ssa.MakeInterface); ok && len(referrers(mk)) == 1 {
			instr = referrers(mk)[0]
		}
		c, ok := instr.(*ssa.Call)
		if !ok {
			continue
		}
		if callee := calleeOf(c.Common()); callee != nil && callee.Pkg() != nil {
			if strings.HasPrefix(strings.ToLower(callee.Name()), "sort") {
				return true
			}
			switch callee.Pkg().Path() {
			case "sort":
				return true
			case "slices":
				return strings.HasPrefix(callee.Name(), "Sort")
			}
		}
	}
	return false
}

// sameAddress returns the values that are the address of the same variable, or of
// the same field of it.
func sameAddress(addr ssa.Value) []ssa.Value {
	all := []ssa.Value{addr}
	if field, ok := addr.(*ssa.FieldAddr); ok {
		for _, instr := range referrers(field.X) {
			if other, ok := instr.(*ssa.FieldAddr); ok && other.Field == field.Field && other != field {
				all = append(all, other)
			}
		}
	}
	return all
}

// sentInRange reports whether each round of the range makes a message of its own.
func sentInRange(u *use, o origin) bool {
	r, ok := o.root.(*ssa.Range)
	if !ok || u.instr == nil {
		return false
	}
	for _, instr := range referrers(r) {
		if next, ok := instr.(*ssa.Next); ok && cycle(next.Block())[u.instr.Block()] {
			return true
		}
	}
	return false
}
