package flow

import "golang.org/x/tools/go/ssa"

// generator reports whether a call through a function value or an interface is one of a
// clock or a generator of identifiers, judged by the name. The call has no arguments, so
// the result cannot depend on the event.
func generator(c *ssa.CallCommon) (name string, ok bool) {
	sig := c.Signature()
	if sig.Params().Len() > 0 || sig.Results().Len() == 0 {
		return "", false
	}
	switch x := c.Value.(type) {
	case *ssa.UnOp:
		switch addr := x.X.(type) {
		case *ssa.FieldAddr:
			name = FieldName(addr.X.Type(), addr.Field)
		case *ssa.Alloc:
			name = addr.Comment // package ssa keeps the name of a captured variable in Comment
		default:
			name = addr.Name()
		}
	case *ssa.Field:
		name = FieldName(x.X.Type(), x.Field)
	default:
		name = x.Name()
	}
	if c.IsInvoke() {
		name = c.Method.Name()
	} else if isTime(sig.Results().At(0).Type()) {
		return name, clockName.MatchString(name)
	}
	return name, mintName.MatchString(name)
}
