package message

import (
	"go/token"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/flow"
)

// rootOf returns the value that identifies a message, the same for every pointer to the
// message. It follows local variables that are assigned once, and chained setters.
func (p *Index) rootOf(v ssa.Value, depth int) ssa.Value {
	if depth > maxRoot {
		return v
	}
	switch v := v.(type) {
	case *ssa.UnOp:
		if v.Op == token.MUL {
			if cell := p.CellOf(v.X); cell != nil {
				if val := flow.OnlyStore(cell); val != nil {
					return p.rootOf(val, depth+1)
				}
			}
		}
	case *ssa.FreeVar:
		if cell := p.CellOf(v); cell != nil {
			return p.rootOf(cell, depth+1)
		}
	case *ssa.Call:
		if callee := flow.CalleeOf(v.Common()); callee != nil && strings.HasPrefix(callee.Name(), "Set") && len(v.Call.Args) == 2 && ShapeOf(v.Type()) != nil {
			return p.rootOf(v.Call.Args[0], depth+1)
		}
	case *ssa.ChangeType:
		return p.rootOf(v.X, depth+1)
	}
	return v
}

// followUses sets fields of the message m (open, copied, leaves, byValue, bases, passed
// and callees) according to the uses of ref, a reference to the message such as a
// pointer.
func (p *Index) followUses(m *Message, ref ssa.Value, seen map[ssa.Value]bool) {
	if seen[ref] {
		return
	}
	seen[ref] = true
	switch ref := ref.(type) {
	case *ssa.Alloc:
	case *ssa.Call, *ssa.Extract:
		if ref == m.Root {
			made, ok := p.madeBy(ref)
			m.bases = made
			m.open = m.open || !ok
		}
	case *ssa.UnOp, *ssa.FreeVar, *ssa.ChangeType, *ssa.Parameter:
		// If m.Root is a parameter or a variable, code that the analysis does not know
		// made m.
		m.open = m.open || ref == m.Root
	case *ssa.IndexAddr:
		m.open = m.open || !isLiteral(ref)
	default:
		m.open = true
	}
	for _, instr := range flow.Referrers(ref) {
		switch instr := instr.(type) {
		case *ssa.Store:
			if instr.Addr == ref {
				if flow.IsEmpty(instr.Val) {
					continue
				}
				m.copied = true
			} else if cell, ok := instr.Addr.(*ssa.Alloc); ok {
				for load := range flow.Loads(cell) {
					p.followUses(m, load, seen)
				}
			} else if _, ok := instr.Addr.(*ssa.IndexAddr); !ok {
				m.open = true
			}
		case *ssa.Return:
			m.leaves = true
		case *ssa.Phi, *ssa.MapUpdate, *ssa.Send:
			m.open = true
		case *ssa.UnOp:
			returned, elsewhere := usesOfCopy(instr)
			m.byValue = m.byValue || returned
			m.open = m.open || elsewhere
		case *ssa.MakeInterface:
			for _, use := range flow.Referrers(instr) {
				if c, ok := use.(ssa.CallInstruction); ok {
					if callee := flow.CalleeOf(c.Common()); callee == nil || !flow.IsPure(callee) && !flow.IsReader(callee) {
						m.open = true
					}
				}
			}
		case *ssa.MakeClosure:
			for v := range flow.Captured(instr, ref) {
				p.followUses(m, v, seen)
			}
		case *ssa.ChangeType:
			p.followUses(m, instr, seen)
		case ssa.CallInstruction:
			callee := flow.CalleeOf(instr.Common())
			switch {
			case callee == nil:
				m.open = !p.followCall(m, instr, ref, seen) || m.open
			case IsSend(callee) && !isOwn(instr.Common()), flow.IsReader(callee):
			case strings.HasPrefix(callee.Name(), "Set") && !instr.Common().IsInvoke() && len(instr.Common().Args) == 2 && instr.Common().Args[0] == ref:
				if v := instr.Value(); v != nil {
					p.followUses(m, v, seen)
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

// usesOfCopy reports whether the function returns a copy of a message, and whether
// unknown code gets the copy in another way, for example as an argument. Storing the copy
// in a slice does not count.
func usesOfCopy(load *ssa.UnOp) (returned, elsewhere bool) {
	for _, instr := range flow.Referrers(load) {
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
			callee := flow.CalleeOf(instr.Common())
			if _, ok := instr.Common().Value.(*ssa.Builtin); !ok && (callee == nil || !IsSend(callee) && !flow.IsReader(callee)) {
				elsewhere = true
			}
		}
	}
	return returned, elsewhere
}

// followCall follows a message as the argument of a call into the called function. It
// reports whether the called function belongs to this package.
func (p *Index) followCall(m *Message, instr ssa.CallInstruction, ref ssa.Value, seen map[ssa.Value]bool) bool {
	fn := p.Body(instr.Common())
	if fn == nil {
		return false
	}
	for i, arg := range flow.Args(instr.Common()) {
		if arg != ref || i >= len(fn.Params) {
			continue
		}
		param := fn.Params[i]
		m.passed = append(m.passed, passing{instr, param})
		if there := p.byRoot[param]; there != nil && there != m {
			m.callees = append(m.callees, there)
		}
		p.followUses(m, param, seen)
	}
	return true
}

// madeBy returns the messages that v may be, if v is the result of a call within this
// package. It ignores empty results, such as nil. It returns false if the called function
// may return anything else, such as a parameter.
func (p *Index) madeBy(v ssa.Value) ([]*Message, bool) {
	result := 0
	if e, ok := v.(*ssa.Extract); ok {
		v, result = e.Tuple, e.Index
	}
	c, ok := v.(*ssa.Call)
	if !ok {
		return nil, false
	}
	fn := p.Body(c.Common())
	if fn == nil {
		return nil, false
	}
	var made []*Message
	for val := range flow.Results(fn, result) {
		if flow.IsEmpty(val) {
			continue
		}
		b := p.byRoot[p.rootOf(val, 0)]
		if b == nil || isParameter(b.Root) {
			return nil, false
		}
		made = append(made, b)
	}
	return made, len(made) > 0
}

// isOwn reports whether a call directly calls a function outside of AWS's SDKs. Such a
// function may set fields of the message, even if it has a name such as SendMessage.
func isOwn(c *ssa.CallCommon) bool {
	callee := c.StaticCallee()
	return callee != nil && callee.Pkg != nil && !strings.HasPrefix(callee.Pkg.Pkg.Path(), "github.com/aws/")
}

// isLiteral reports whether the analysis knows the initial value of a slice element: the
// element belongs to a slice literal or a local array, or the code stores an empty value
// in the element.
func isLiteral(v ssa.Value) bool {
	elem, ok := v.(*ssa.IndexAddr)
	if !ok {
		return false
	}
	if _, ok := elem.X.(*ssa.Alloc); ok {
		return true
	}
	return slices.ContainsFunc(slices.Collect(flow.Stores(elem)), flow.IsEmpty)
}
