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
	if load, ok := v.(*ssa.UnOp); ok { // other loads of the variable or field
		return sortedAt(load.X)
	}
	return sorts(referrers(v))
}

// sortedAt reports whether the slice in a variable or field is put in order.
func sortedAt(addr ssa.Value) bool {
	return slices.ContainsFunc(loadsOf(addr), func(load ssa.Value) bool { return sorts(referrers(load)) })
}

// sorts reports whether one of the instructions puts what it uses in order.
func sorts(uses []ssa.Instruction) bool {
	for _, instr := range uses {
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
	field, ok := addr.(*ssa.FieldAddr)
	if !ok {
		return []ssa.Value{addr}
	}
	bases := []ssa.Value{field.X}
	switch x := field.X.(type) {
	case *ssa.UnOp:
		bases = loadsOf(x.X)
	case *ssa.FieldAddr:
		bases = sameAddress(x)
	}
	var all []ssa.Value
	for _, base := range bases {
		for _, instr := range referrers(base) {
			if other, ok := instr.(*ssa.FieldAddr); ok && other.Field == field.Field {
				all = append(all, other)
			}
		}
	}
	return all
}

// loadsOf returns what is read from the variable or field at an address.
func loadsOf(addr ssa.Value) []ssa.Value {
	var loads []ssa.Value
	for _, same := range sameAddress(addr) {
		for _, instr := range referrers(same) {
			if load, ok := instr.(*ssa.UnOp); ok {
				loads = append(loads, load)
			}
		}
	}
	return loads
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
