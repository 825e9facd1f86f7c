package fifovet

import (
	"go/token"
	"go/types"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// message is one value of a message's type in one function.
type message struct {
	root  ssa.Value
	shape *shape
	fn    *ssa.Function
	sets  map[role][]set

	// open says that other code may have set fields, or may do so later: what
	// is not seen to be set is then unknown and not absent.
	open bool

	// copied says that the value as a whole came from elsewhere.
	copied bool

	// later are the fields that are set in a copy of this message, or may be:
	// an element of a slice that is changed after it was put there.
	later map[role]bool

	batches []*message // the inputs that an entry goes into
	sends   []ssa.CallInstruction
}

// set is one assignment to a field.
type set struct {
	field string
	value ssa.Value
	pos   token.Pos
	instr ssa.Instruction
}

func (m *message) has(r role) bool { return len(m.sets[r]) > 0 }

// absent reports whether a field is surely not set, or set to nil or to an
// empty constant everywhere.
func (m *message) absent(r role) bool {
	for _, s := range m.sets[r] {
		if c, ok := s.value.(*ssa.Const); !ok || c.Value != nil && c.Value.ExactString() != `""` {
			return false
		}
	}
	return !m.open && !m.copied && !m.later[r]
}

// collect finds the messages of a package, each with what its fields are set
// to.
func (p *program) collect() []*message {
	byRoot := map[ssa.Value]*message{}
	var messages []*message
	at := func(v ssa.Value, fn *ssa.Function) *message {
		sh := shapeOf(v.Type())
		if sh == nil {
			return nil
		}
		root := p.rootOf(v, 0)
		m := byRoot[root]
		if m == nil {
			m = &message{root: root, shape: sh, fn: fn, sets: map[role][]set{}}
			byRoot[root] = m
			messages = append(messages, m)
		}
		return m
	}
	for _, fn := range p.fns {
		for _, block := range fn.Blocks {
			for _, instr := range block.Instrs {
				switch instr := instr.(type) {
				case *ssa.Alloc:
					at(instr, fn)
				case *ssa.FieldAddr:
					if m := at(instr.X, fn); m != nil {
						m.assign(instr)
					}
				case ssa.CallInstruction:
					p.collectCall(instr, fn, at)
				}
			}
		}
	}
	for _, m := range messages {
		p.follow(m, m.root, map[ssa.Value]bool{})
	}
	p.link(messages)
	completed(messages)
	return messages
}

func (m *message) assign(addr *ssa.FieldAddr) {
	name := fieldName(addr.X.Type(), addr.Field)
	r := m.shape.fields[name]
	if r == roleNone {
		return
	}
	for _, instr := range referrers(addr) {
		switch instr := instr.(type) {
		case *ssa.Store:
			if instr.Addr == addr {
				pos := instr.Pos()
				if !pos.IsValid() {
					pos = addr.Pos()
				}
				m.sets[r] = append(m.sets[r], set{name, instr.Val, pos, instr})
			}
		case *ssa.UnOp, *ssa.DebugRef:
		case *ssa.FieldAddr, *ssa.IndexAddr:
			// A struct or array field that is built in place, such as the 16
			// bytes of an event ID: the address stands for its contents.
			m.sets[r] = append(m.sets[r], set{name, addr, addr.Pos(), addr})
		default:
			// The field's address is handed on: it may be set.
			m.sets[r] = append(m.sets[r], set{name, addr, addr.Pos(), addr})
		}
	}
}

// collectCall handles the setters of the first AWS SDK, and notes what a send
// is given.
func (p *program) collectCall(instr ssa.CallInstruction, fn *ssa.Function, at func(ssa.Value, *ssa.Function) *message) {
	c := instr.Common()
	callee := calleeOf(c)
	if callee == nil {
		return
	}
	if field, ok := strings.CutPrefix(callee.Name(), "Set"); ok && len(c.Args) == 2 && !c.IsInvoke() {
		if m := at(c.Args[0], fn); m != nil {
			if r := m.shape.fields[field]; r != roleNone {
				m.sets[r] = append(m.sets[r], set{field, c.Args[1], c.Args[1].Pos(), instr})
			}
		}
		return
	}
	if isSend(callee) {
		for _, arg := range c.Args {
			if shapeOf(arg.Type()) == nil {
				continue
			}
			if m := at(arg, fn); m != nil {
				m.sends = append(m.sends, instr)
			}
		}
	}
}

// completed notes for each message which fields are set in what may be a copy
// of it: a message of the same type in the same function that was not made
// there from nothing, or in any one if the function returns what it makes.
func completed(messages []*message) {
	for _, later := range messages {
		if !later.open && !later.copied {
			continue
		}
		for _, m := range messages {
			if m == later || m.shape != later.shape || outermost(m.fn) != outermost(later.fn) && !m.returned() {
				continue
			}
			for r := range later.sets {
				if m.later == nil {
					m.later = map[role]bool{}
				}
				m.later[r] = true
			}
		}
	}
}

// returned reports whether the function that makes the message returns a slice of
// such messages.
func (m *message) returned() bool {
	results := outermost(m.fn).Signature.Results()
	for i := range results.Len() {
		if s, ok := results.At(i).Type().Underlying().(*types.Slice); ok && shapeOf(s.Elem()) == m.shape {
			return true
		}
	}
	return false
}

func outermost(fn *ssa.Function) *ssa.Function {
	for fn.Parent() != nil {
		fn = fn.Parent()
	}
	return fn
}

// link joins the entries of batches to the inputs that carry them, and with
// them the queue that they go to and the call that sends them.
func (p *program) link(messages []*message) {
	for _, batch := range messages {
		if !batch.shape.batch {
			continue
		}
		visited := map[ssa.Value]bool{}
		for _, s := range batch.sets[roleEntries] {
			for v := range p.trace(s.value, nil, false).visited {
				visited[v] = true
			}
		}
		for _, m := range messages {
			if m.shape.entry && visited[m.root] {
				m.batches = append(m.batches, batch)
			}
		}
	}
}

// fifo reports whether it is certain that the message goes to a FIFO queue or
// topic: it has a group, or the queue's name says so, or it is one of ours.
func (p *program) fifo(m *message) bool {
	if m.shape.sdk || m.has(roleGroup) && !m.absent(roleGroup) {
		return true
	}
	_, ok := p.fifoURL(m)
	return ok
}

// fifoURL returns the constant that names a FIFO queue or topic.
func (p *program) fifoURL(m *message) (string, bool) {
	for _, in := range append([]*message{m}, m.batches...) {
		for _, s := range in.sets[roleURL] {
			for _, o := range p.trace(s.value, nil, false).origins {
				if o.kind == fromConst && strings.HasSuffix(o.text, ".fifo") {
					return o.text, true
				}
			}
		}
	}
	return "", false
}

// sendCalls are the calls that send a message, alone or in a batch.
func (m *message) sendCalls() []ssa.CallInstruction {
	calls := m.sends
	for _, b := range m.batches {
		calls = append(calls[:len(calls):len(calls)], b.sends...)
	}
	return calls
}
