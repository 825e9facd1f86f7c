package flow

import (
	"go/types"

	"golang.org/x/tools/go/ssa"
)

// functionIn returns the function stored in a package-level variable, if v is the value
// of this variable and the program sets the variable only once. Otherwise it returns nil.
func (p *Program) functionIn(v ssa.Value) *ssa.Function {
	load, ok := v.(*ssa.UnOp)
	if !ok {
		return nil
	}
	g, ok := load.X.(*ssa.Global)
	if !ok || g.Object() == nil || g.Object().Exported() || p.addressTaken[g] || g.Pkg.Pkg != p.Pass.Pkg || len(p.globals[g]) != 1 {
		return nil
	}
	val := p.globals[g][0]
	if change, ok := val.(*ssa.ChangeType); ok {
		val = change.X
	}
	fn, _ := val.(*ssa.Function)
	return fn
}

// fieldVar returns the struct field whose address is addr.
func fieldVar(addr *ssa.FieldAddr) *types.Var {
	if s := StructOf(addr.X.Type()); s != nil && addr.Field < s.NumFields() {
		return s.Field(addr.Field).Origin()
	}
	return nil
}

// makesID reports whether a call through an interface generates an identifier, judged by
// the names of the interface and the method, such as IDGenerator.NewID.
func makesID(c *ssa.CallCommon) bool {
	sig := c.Method.Signature()
	return sig.Params().Len() == 0 && sig.Results().Len() > 0 && identifies(sig.Results().At(0).Type()) &&
		newIDName.MatchString(c.Method.Name()) && generatorType.MatchString(TypeName(c.Value.Type()))
}

// generator reports whether a function value is a clock or a generator of identifiers.
// Such a function has no parameters, so the result cannot depend on the event.
func generator(v ssa.Value) (name string, ok bool) {
	sig, ok := v.Type().Underlying().(*types.Signature)
	if !ok || sig.Params().Len() > 0 || sig.Results().Len() == 0 {
		return "", false
	}
	switch x := v.(type) {
	case *ssa.UnOp:
		switch addr := x.X.(type) {
		case *ssa.FieldAddr:
			name = FieldName(addr.X.Type(), addr.Field)
		case *ssa.Global:
			name = addr.Name()
		case *ssa.FreeVar:
			name = addr.Name()
		case *ssa.Alloc:
			name = addr.Comment // package ssa keeps the name of a captured variable in Comment
		}
	case *ssa.Field:
		name = FieldName(x.X.Type(), x.Field)
	case *ssa.Parameter, *ssa.FreeVar:
		name = x.Name()
	}
	result := sig.Results().At(0).Type()
	if isTime(result) {
		return name, clockName.MatchString(name)
	}
	return name, mintName.MatchString(name)
}
