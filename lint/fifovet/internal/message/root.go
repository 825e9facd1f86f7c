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

// followUses examines the uses of ref, a reference to the message m such as a pointer. It
// records in m how other code may set fields of the message. For example, it sets
// m.returned if the function returns ref.
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
			m.setByUnknownCode = m.setByUnknownCode || !ok
		}
	case *ssa.UnOp, *ssa.FreeVar, *ssa.ChangeType, *ssa.Parameter:
		// The function got the message from other code, which may have set any field.
		m.setByUnknownCode = m.setByUnknownCode || ref == m.Root
	case *ssa.IndexAddr:
		m.setByUnknownCode = m.setByUnknownCode || !startsEmpty(ref)
	default:
		m.setByUnknownCode = true
	}
	for _, instr := range flow.Referrers(ref) {
		switch instr := instr.(type) {
		case *ssa.Store:
			if instr.Addr == ref {
				if flow.IsEmpty(instr.Val) {
					continue
				}
				m.isCopy = true
			} else if cell, ok := instr.Addr.(*ssa.Alloc); ok {
				for _, load := range flow.Loads(cell) {
					p.followUses(m, load, seen)
				}
			} else if _, ok := instr.Addr.(*ssa.IndexAddr); !ok {
				m.setByUnknownCode = true
			}
		case *ssa.Return:
			m.returned = true
		case *ssa.Phi, *ssa.MapUpdate, *ssa.Send:
			m.setByUnknownCode = true
		case *ssa.UnOp:
			returned, escapes := usesOfCopy(instr)
			m.copyReturned = m.copyReturned || returned
			m.setByUnknownCode = m.setByUnknownCode || escapes
		case *ssa.MakeInterface:
			for _, use := range flow.Referrers(instr) {
				if c, ok := use.(ssa.CallInstruction); ok {
					if callee := flow.CalleeOf(c.Common()); callee == nil || !flow.IsPure(callee) && !flow.IsReader(callee) {
						m.setByUnknownCode = true
					}
				}
			}
		case *ssa.MakeClosure:
			for _, v := range flow.Captured(instr, ref) {
				p.followUses(m, v, seen)
			}
		case *ssa.ChangeType:
			p.followUses(m, instr, seen)
		case ssa.CallInstruction:
			callee := flow.CalleeOf(instr.Common())
			switch {
			case callee == nil:
				m.setByUnknownCode = !p.followCall(m, instr, ref, seen) || m.setByUnknownCode
			case IsSend(callee) && !isOwn(instr.Common()), flow.IsReader(callee):
			case strings.HasPrefix(callee.Name(), "Set") && !instr.Common().IsInvoke() && len(instr.Common().Args) == 2 && instr.Common().Args[0] == ref:
				if v := instr.Value(); v != nil {
					p.followUses(m, v, seen)
				}
			case callee.Name() == "Validate" || callee.Name() == "String":
			default:
				if !p.followCall(m, instr, ref, seen) {
					m.setByUnknownCode = true
				}
			}
		}
	}
}

// usesOfCopy examines the uses of a copy of a message. It reports whether the function
// returns the copy, and whether the copy escapes to unknown code, for example as an
// argument. A copy in a slice does not escape, because linkBatches follows slices.
func usesOfCopy(copied *ssa.UnOp) (returned, escapes bool) {
	for _, instr := range flow.Referrers(copied) {
		switch instr := instr.(type) {
		case *ssa.Return:
			returned = true
		case *ssa.MapUpdate, *ssa.Send:
			escapes = true
		case *ssa.Store:
			switch instr.Addr.(type) {
			case *ssa.FieldAddr, *ssa.Global:
				escapes = true
			}
		case ssa.CallInstruction:
			callee := flow.CalleeOf(instr.Common())
			if _, ok := instr.Common().Value.(*ssa.Builtin); !ok && (callee == nil || !IsSend(callee) && !flow.IsReader(callee)) {
				escapes = true
			}
		}
	}
	return returned, escapes
}

// followCall follows a message into a called function that gets the message as an
// argument. It returns false if the called function is unknown or belongs to another
// package.
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

// madeBy returns the possible messages in v, the result of a call, without empty values
// such as nil. It returns nil and false if one of them is not made in this package.
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
	for _, val := range flow.Results(fn, result) {
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

// isOwn reports whether a call directly calls a function outside of the AWS SDKs. Such a
// function may set fields of the message, even if its name is, for example, SendMessage.
func isOwn(c *ssa.CallCommon) bool {
	callee := c.StaticCallee()
	return callee != nil && callee.Pkg != nil && !strings.HasPrefix(callee.Pkg.Pkg.Path(), "github.com/aws/")
}

// startsEmpty guesses whether no fields of an element are set at first. It accepts
// elements of slice literals and local arrays, and elements to which code assigns an
// empty value.
func startsEmpty(v ssa.Value) bool {
	elem, ok := v.(*ssa.IndexAddr)
	if !ok {
		return false
	}
	if _, ok := elem.X.(*ssa.Alloc); ok {
		return true
	}
	return slices.ContainsFunc(flow.Stores(elem), flow.IsEmpty)
}
