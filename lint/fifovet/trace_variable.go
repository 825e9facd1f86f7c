package fifovet

import (
	"go/types"

	"golang.org/x/tools/go/ssa"
)

// heldFunction is a function in a variable that is set once.
type heldFunction struct{ fn *ssa.Function }

// held returns the function that a package-level variable holds, if nothing else
// can be in it.
func (p *program) held(v ssa.Value) *heldFunction {
	load, ok := v.(*ssa.UnOp)
	if !ok {
		return nil
	}
	g, ok := load.X.(*ssa.Global)
	if !ok || g.Object() == nil || g.Object().Exported() || p.loose[g] || g.Pkg.Pkg != p.pass.Pkg || len(p.globals[g]) != 1 {
		return nil
	}
	val := p.globals[g][0]
	if change, ok := val.(*ssa.ChangeType); ok {
		val = change.X
	}
	if fn, ok := val.(*ssa.Function); ok {
		return &heldFunction{fn}
	}
	return nil
}

// of returns what calleeOf and staticBody say of a call of the function.
func (h *heldFunction) of() (*types.Func, *ssa.Function) {
	fn := h.fn
	if origin := fn.Origin(); origin != nil {
		fn = origin
	}
	obj, _ := fn.Object().(*types.Func)
	if len(h.fn.Blocks) == 0 {
		return obj, nil
	}
	return obj, h.fn
}

// heldIn returns the functions without parameters that a local variable, or a field
// that only this package can set, holds: all of them, or none.
func (p *program) heldIn(v ssa.Value) []*ssa.Function {
	if sig, ok := v.Type().Underlying().(*types.Signature); !ok || sig.Params().Len() > 0 {
		return nil
	}
	load, ok := v.(*ssa.UnOp)
	if !ok {
		return nil
	}
	var values []ssa.Value
	switch addr := load.X.(type) {
	case *ssa.FieldAddr:
		f := fieldVar(addr)
		if f == nil || f.Exported() || f.Pkg() != p.pass.Pkg {
			return nil
		}
		values = p.fieldFuncs[f]
	case *ssa.Alloc, *ssa.FreeVar:
		cell := p.cellOf(addr)
		if cell == nil {
			return nil
		}
		if val := onlyStore(cell); val != nil {
			values = []ssa.Value{val}
		}
	}
	var fns []*ssa.Function
	for _, val := range values {
		fn := functionOf(val)
		if fn == nil || len(fn.Blocks) == 0 {
			return nil
		}
		fns = append(fns, fn)
	}
	return fns
}

// fieldVar is the field at an address.
func fieldVar(addr *ssa.FieldAddr) *types.Var {
	if s := structOf(addr.X.Type()); s != nil && addr.Field < s.NumFields() {
		return s.Field(addr.Field)
	}
	return nil
}

// interfaceMints recognises a generator of identifiers that is an interface:
// IDGenerator.NewID.
func interfaceMints(c *ssa.CallCommon) bool {
	sig := c.Method.Signature()
	return sig.Params().Len() == 0 && sig.Results().Len() > 0 && identifies(sig.Results().At(0).Type()) &&
		newIDName.MatchString(c.Method.Name()) && generatorType.MatchString(typeName(c.Value.Type()))
}

// generator recognises a clock or a generator of identifiers that is passed
// around as a function: nothing goes in, so that what comes out cannot be made
// from the event.
func generator(v ssa.Value) (name string, ok bool) {
	sig, ok := v.Type().Underlying().(*types.Signature)
	if !ok || sig.Params().Len() > 0 || sig.Results().Len() == 0 {
		return "", false
	}
	switch x := v.(type) {
	case *ssa.UnOp:
		switch addr := x.X.(type) {
		case *ssa.FieldAddr:
			name = fieldName(addr.X.Type(), addr.Field)
		case *ssa.Global:
			name = addr.Name()
		case *ssa.FreeVar:
			name = addr.Name()
		case *ssa.Alloc:
			name = addr.Comment // of a variable that a literal uses, too
		}
	case *ssa.Field:
		name = fieldName(x.X.Type(), x.Field)
	case *ssa.Parameter, *ssa.FreeVar:
		name = x.Name()
	}
	result := sig.Results().At(0).Type()
	if isTime(result) {
		return name, clockName.MatchString(name)
	}
	return name, mintName.MatchString(name)
}
