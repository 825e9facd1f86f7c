package fifovet

import (
	"go/token"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// rootOf returns the place that a pointer to a message surely means: it looks
// through local variables that are set once, and through chained setters.
func (p *program) rootOf(v ssa.Value, depth int) ssa.Value {
	if depth > maxRoot {
		return v
	}
	switch v := v.(type) {
	case *ssa.UnOp:
		if v.Op == token.MUL {
			if cell := p.cellOf(v.X); cell != nil {
				if val := onlyStore(cell); val != nil {
					return p.rootOf(val, depth+1)
				}
			}
		}
	case *ssa.FreeVar:
		if cell := p.cellOf(v); cell != nil {
			return p.rootOf(cell, depth+1)
		}
	case *ssa.Call:
		if callee := calleeOf(v.Common()); callee != nil && strings.HasPrefix(callee.Name(), "Set") && len(v.Call.Args) == 2 && shapeOf(v.Type()) != nil {
			return p.rootOf(v.Call.Args[0], depth+1)
		}
	case *ssa.ChangeType:
		return p.rootOf(v.X, depth+1)
	}
	return v
}

// cellOf returns the variable at an address, from within closures too.
func (p *program) cellOf(addr ssa.Value) *ssa.Alloc {
	switch addr := addr.(type) {
	case *ssa.Alloc:
		return addr
	case *ssa.FreeVar:
		fn := addr.Parent()
		if made := p.closures[fn]; len(made) == 1 {
			for i, v := range fn.FreeVars {
				if v == addr {
					return p.cellOf(made[0].Bindings[i])
				}
			}
		}
	}
	return nil
}

// onlyStore returns the value of a variable that is set once and whose address
// goes nowhere but into closures that read it.
func onlyStore(cell *ssa.Alloc) ssa.Value {
	var val ssa.Value
	for _, instr := range referrers(cell) {
		if store, ok := instr.(*ssa.Store); ok && store.Addr == cell {
			if val != nil {
				return nil
			}
			val = store.Val
		}
	}
	return val
}

// follow decides whether a message is open.
func (p *program) follow(m *message, ref ssa.Value, seen map[ssa.Value]bool) {
	if seen[ref] {
		return
	}
	seen[ref] = true
	switch ref := ref.(type) {
	case *ssa.Alloc:
	case *ssa.Call, *ssa.Extract:
		if ref == m.root {
			made, ok := p.madeBy(ref)
			m.bases = made
			m.open = m.open || !ok
		}
	case *ssa.UnOp, *ssa.FreeVar, *ssa.ChangeType, *ssa.Parameter:
		m.open = m.open || ref == m.root // made elsewhere
	case *ssa.IndexAddr:
		m.open = m.open || !isLiteral(ref)
	default:
		m.open = true
	}
	for _, instr := range referrers(ref) {
		switch instr := instr.(type) {
		case *ssa.Store:
			if instr.Addr == ref {
				if isEmpty(instr.Val) {
					continue
				}
				m.copied = true
			} else if cell, ok := instr.Addr.(*ssa.Alloc); ok {
				p.loads(cell, func(load ssa.Value) { p.follow(m, load, seen) })
			} else if _, ok := instr.Addr.(*ssa.IndexAddr); !ok {
				m.open = true
			}
		case *ssa.Return:
			m.leaves = true
		case *ssa.Phi, *ssa.MapUpdate, *ssa.Send:
			m.open = true
		case *ssa.UnOp:
			returned, elsewhere := handedOn(instr)
			m.byValue = m.byValue || returned
			m.open = m.open || elsewhere
		case *ssa.MakeInterface:
			for _, use := range referrers(instr) {
				if c, ok := use.(ssa.CallInstruction); ok {
					if callee := calleeOf(c.Common()); callee == nil || !isPure(callee) && !isReader(callee) {
						m.open = true
					}
				}
			}
		case *ssa.MakeClosure:
			if fn, ok := instr.Fn.(*ssa.Function); ok {
				for i, b := range instr.Bindings {
					if b == ref {
						p.follow(m, fn.FreeVars[i], seen)
					}
				}
			}
		case *ssa.ChangeType:
			p.follow(m, instr, seen)
		case ssa.CallInstruction:
			callee := calleeOf(instr.Common())
			switch {
			case callee == nil:
				m.open = true
			case isSend(callee) && !isOwn(instr.Common()), isReader(callee):
			case strings.HasPrefix(callee.Name(), "Set") && !instr.Common().IsInvoke() && len(instr.Common().Args) == 2 && instr.Common().Args[0] == ref:
				if v := instr.Value(); v != nil {
					p.follow(m, v, seen)
				}
			case callee.Name() == "Validate" || callee.Name() == "String":
			default:
				if !p.followCall(m, instr, ref, seen) {
					m.open = true
				}
			}
		}
	}
}

// handedOn reports whether a copy of a message is returned, or leaves the function
// in another way than in a slice of messages.
func handedOn(load *ssa.UnOp) (returned, elsewhere bool) {
	for _, instr := range referrers(load) {
		switch instr := instr.(type) {
		case *ssa.Return:
			returned = true
		case *ssa.MapUpdate, *ssa.Send:
			elsewhere = true
		case *ssa.Store:
			switch instr.Addr.(type) {
			case *ssa.FieldAddr, *ssa.Global:
				elsewhere = true
			}
		case ssa.CallInstruction:
			callee := calleeOf(instr.Common())
			if _, ok := instr.Common().Value.(*ssa.Builtin); !ok && (callee == nil || !isSend(callee) && !isReader(callee)) {
				elsewhere = true
			}
		}
	}
	return returned, elsewhere
}

// followCall goes on in a function that gets a message as an argument. It reports
// whether the function is one of this package.
func (p *program) followCall(m *message, instr ssa.CallInstruction, ref ssa.Value, seen map[ssa.Value]bool) bool {
	fn := staticBody(instr.Common())
	if fn == nil {
		return false
	}
	for i, arg := range instr.Common().Args {
		if arg != ref || i >= len(fn.Params) {
			continue
		}
		param := fn.Params[i]
		m.passed = append(m.passed, passing{instr, param})
		if there := p.byRoot[param]; there != nil && there != m {
			m.callees = append(m.callees, there)
		}
		p.follow(m, param, seen)
	}
	return true
}

// madeBy returns the messages that a call returns, provided that each of them is
// made where it is returned.
func (p *program) madeBy(v ssa.Value) ([]*message, bool) {
	result := 0
	if e, ok := v.(*ssa.Extract); ok {
		v, result = e.Tuple, e.Index
	}
	c, ok := v.(*ssa.Call)
	if !ok {
		return nil, false
	}
	fn := staticBody(c.Common())
	if fn == nil {
		return nil, false
	}
	var made []*message
	for _, block := range fn.Blocks {
		ret, ok := last(block).(*ssa.Return)
		if !ok || result >= len(ret.Results) || failed(ret) && result < len(ret.Results)-1 {
			continue
		}
		val := ret.Results[result]
		if isEmpty(val) {
			continue
		}
		b := p.byRoot[p.rootOf(val, 0)]
		if b == nil || isParameter(b.root) {
			return nil, false
		}
		made = append(made, b)
	}
	return made, len(made) > 0
}

// isOwn reports whether a call surely goes to a method that is not AWS's, which may
// complete the message before it sends it on.
func isOwn(c *ssa.CallCommon) bool {
	callee := c.StaticCallee()
	return callee != nil && callee.Pkg != nil && !strings.HasPrefix(callee.Pkg.Pkg.Path(), "github.com/aws/")
}

func isEmpty(v ssa.Value) bool {
	c, ok := v.(*ssa.Const)
	return ok && c.Value == nil
}

// isLiteral reports whether an element is built in place, rather than changed
// later.
func isLiteral(v ssa.Value) bool {
	elem, ok := v.(*ssa.IndexAddr)
	if !ok {
		return false
	}
	if _, ok := elem.X.(*ssa.Alloc); ok {
		return true
	}
	for _, instr := range referrers(elem) {
		if store, ok := instr.(*ssa.Store); ok && store.Addr == elem && isEmpty(store.Val) {
			return true
		}
	}
	return false
}

// loads calls yield for each value that is loaded from a variable.
func (p *program) loads(cell ssa.Value, yield func(ssa.Value)) {
	for _, instr := range referrers(cell) {
		switch instr := instr.(type) {
		case *ssa.UnOp:
			yield(instr)
		case *ssa.MakeClosure:
			if fn, ok := instr.Fn.(*ssa.Function); ok {
				for i, b := range instr.Bindings {
					if b == cell {
						p.loads(fn.FreeVars[i], yield)
					}
				}
			}
		}
	}
}
