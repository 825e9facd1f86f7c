package flow

import (
	"iter"
	"slices"

	"golang.org/x/tools/go/ssa"
)

// Instructions yields the instructions of a function.
func Instructions(fn *ssa.Function) iter.Seq[ssa.Instruction] {
	return func(yield func(ssa.Instruction) bool) {
		for _, block := range fn.Blocks {
			for _, instr := range block.Instrs {
				if !yield(instr) {
					return
				}
			}
		}
	}
}

// Any reports whether an element of a sequence has a property.
func Any[T any](elements iter.Seq[T], has func(T) bool) bool {
	for e := range elements {
		if has(e) {
			return true
		}
	}
	return false
}

// Outermost returns the declared function that contains the function literal fn. For a
// declared function, it returns fn.
func Outermost(fn *ssa.Function) *ssa.Function {
	for fn.Parent() != nil {
		fn = fn.Parent()
	}
	return fn
}

// Encloses reports whether inner is a function literal inside outer.
func Encloses(outer, inner *ssa.Function) bool {
	for inner != nil && inner != outer {
		inner = inner.Parent()
	}
	return inner != nil
}

// Results returns the values that a function may return for one of its results. The
// parameter `result` is the number of this result, from 0.
//
// For example, the statement `return id, errors.New("refused")` counts only for the second
// result, because callers ignore the other results if there is an error.
func Results(fn *ssa.Function, result int) []ssa.Value {
	var values []ssa.Value
	for _, block := range fn.Blocks {
		ret, ok := Last(block).(*ssa.Return)
		if ok && result < len(ret.Results) && (result == len(ret.Results)-1 || !alwaysFails(ret)) {
			values = append(values, ret.Results[result])
		}
	}
	return values
}

// alwaysFails reports whether a return statement always returns a non-nil error.
func alwaysFails(ret *ssa.Return) bool {
	last := ret.Results[len(ret.Results)-1]
	if !IsError(last.Type()) {
		return false
	}
	switch v := last.(type) {
	case *ssa.MakeInterface:
		return true
	case *ssa.Call:
		callee := CalleeOf(v.Common())
		return callee != nil && (Qualified(callee) == "fmt.Errorf" || Qualified(callee) == "errors.New")
	}
	return false
}

// Last returns the last instruction of a block, or nil for an empty block.
func Last(b *ssa.BasicBlock) ssa.Instruction {
	if len(b.Instrs) == 0 {
		return nil
	}
	return b.Instrs[len(b.Instrs)-1]
}

// Stores returns the values assigned to *addr in the function that addr belongs to. It
// leaves out assignments in function literals inside this function, and assignments through
// another SSA value with the same address (see sameAddress).
func Stores(addr ssa.Value) []ssa.Value {
	var values []ssa.Value
	for _, instr := range Referrers(addr) {
		if store, ok := instr.(*ssa.Store); ok && store.Addr == addr {
			values = append(values, store.Val)
		}
	}
	return values
}

// Loads returns the values loaded from the variable at an address, also in closures.
func Loads(addr ssa.Value) []ssa.Value {
	var loads []ssa.Value
	for _, instr := range Referrers(addr) {
		switch instr := instr.(type) {
		case *ssa.UnOp:
			loads = append(loads, instr)
		case *ssa.MakeClosure:
			for _, v := range Captured(instr, addr) {
				loads = append(loads, Loads(v)...)
			}
		}
	}
	return loads
}

// Captured returns the captured variables through which a closure uses v. The value v
// belongs to the enclosing function.
func Captured(made *ssa.MakeClosure, v ssa.Value) []ssa.Value {
	var captured []ssa.Value
	for i, b := range made.Bindings {
		if b == v {
			captured = append(captured, made.Fn.(*ssa.Function).FreeVars[i])
		}
	}
	return captured
}

// Args returns the arguments of a call in the order of the callee's parameters. The
// receiver of a method comes first, even in a call through an interface.
func Args(c *ssa.CallCommon) []ssa.Value {
	if c.IsInvoke() {
		return append([]ssa.Value{c.Value}, c.Args...)
	}
	return c.Args
}

// Argument returns the argument that a call passes for a parameter, or nil.
func Argument(site ssa.CallInstruction, param *ssa.Parameter) ssa.Value {
	args := Args(site.Common())
	if i := slices.Index(param.Parent().Params, param); i >= 0 && i < len(args) {
		return args[i]
	}
	return nil
}

// Converted returns the operand of a conversion of any kind, or nil for any other value.
func Converted(v ssa.Value) ssa.Value {
	switch v.(type) {
	case *ssa.Convert, *ssa.MultiConvert, *ssa.ChangeType, *ssa.ChangeInterface, *ssa.MakeInterface, *ssa.TypeAssert, *ssa.SliceToArrayPointer:
		return *v.(ssa.Instruction).Operands(nil)[0]
	}
	return nil
}

// Referrers returns the instructions that use a value. It returns nil for constants,
// declared functions and package-level variables, because package ssa does not list their
// uses.
func Referrers(v ssa.Value) []ssa.Instruction {
	if refs := v.Referrers(); refs != nil {
		return *refs
	}
	return nil
}
