package flow

import (
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// noteMapOrder adds an origin of kind FromOrder for a range over a map, unless the order
// does not matter.
func (t *Tracer) noteMapOrder(v ssa.Value, l Place) {
	if !l.ignoreOrder {
		t.end(Origin{Kind: FromOrder, Root: v, Text: "the order of a map", Pos: v.Pos()}, l)
	}
}

// isSorted reports whether v is a slice that the program sorts.
func isSorted(v ssa.Value) bool {
	if _, ok := v.Type().Underlying().(*types.Slice); !ok {
		return false
	}
	if load, ok := v.(*ssa.UnOp); ok { // v comes from a variable: look for a sort of this variable
		return sortedAt(load.X)
	}
	return anySorts(Referrers(v))
}

// sortedAt reports whether some call sorts the slice in a variable or field.
func sortedAt(addr ssa.Value) bool {
	return slices.ContainsFunc(loadsOf(addr), func(load ssa.Value) bool { return anySorts(Referrers(load)) })
}

// anySorts reports whether one of the instructions sorts its operand.
func anySorts(uses []ssa.Instruction) bool {
	for _, instr := range uses {
		if mk, ok := instr.(*ssa.MakeInterface); ok && len(Referrers(mk)) == 1 {
			instr = Referrers(mk)[0]
		}
		c, ok := instr.(*ssa.Call)
		if !ok {
			continue
		}
		if callee := CalleeOf(c.Common()); callee != nil && (pathOf(callee) == "sort" || strings.HasPrefix(strings.ToLower(callee.Name()), "sort")) {
			return true
		}
	}
	return false
}

// sameAddress returns addr and all other values with the same address. For example, each
// use of order.Lines in a function computes the address of this field again, as a new SSA
// value.
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
		for _, instr := range Referrers(base) {
			if other, ok := instr.(*ssa.FieldAddr); ok && other.Field == field.Field {
				all = append(all, other)
			}
		}
	}
	return all
}

// loadsOf returns the loads from the variable or field at an address.
func loadsOf(addr ssa.Value) []ssa.Value {
	var loads []ssa.Value
	for _, same := range sameAddress(addr) {
		loads = append(loads, Loads(same)...)
	}
	return loads
}
