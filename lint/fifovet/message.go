package fifovet

import (
	"go/token"
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
	return !m.open && !m.copied
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

// rootOf returns the place that a pointer to a message surely means: it looks
// through local variables that are set once, and through chained setters.
func (p *program) rootOf(v ssa.Value, depth int) ssa.Value {
	if depth > maxDepth*2 {
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

// cellOf returns the variable behind an address, from within closures too.
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
	switch ref.(type) {
	case *ssa.Alloc, *ssa.UnOp, *ssa.FreeVar, *ssa.Call, *ssa.ChangeType:
		if ref == m.root {
			if _, ok := ref.(*ssa.Alloc); !ok {
				m.open = true // made elsewhere
			}
		}
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
		case *ssa.Phi, *ssa.Return, *ssa.MapUpdate, *ssa.Send:
			m.open = true
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
			case isSend(callee), isReader(callee):
			case strings.HasPrefix(callee.Name(), "Set") && !instr.Common().IsInvoke() && len(instr.Common().Args) == 2 && instr.Common().Args[0] == ref:
				if v := instr.Value(); v != nil {
					p.follow(m, v, seen)
				}
			case callee.Name() == "Validate" || callee.Name() == "String":
			default:
				m.open = true
			}
		}
	}
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
