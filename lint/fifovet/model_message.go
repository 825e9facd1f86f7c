package fifovet

import (
	"go/token"
	"go/types"
	"slices"
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

	// leaves says that the function returns the message: its callers may go on
	// with it.
	leaves bool

	// byValue says that the function returns a copy, which others may complete.
	byValue bool

	// bases are the messages of functions that made this one, derived those that
	// were made from it, and callees what functions make of it that get it as an
	// argument: the same message, seen from other functions.
	bases, derived, callees []*message
	passed                  []passing

	// copied says that the value as a whole came from elsewhere.
	copied bool

	// later are the fields that are set in a copy of this message, or may be:
	// an element of a slice that is changed after it was put there.
	later map[role]bool

	evidence *evidence // of the queue, once it was asked for

	batches []*message // the inputs that an entry goes into
	sends   []ssa.CallInstruction
}

// passing is a call that gets a message as an argument, in the callee a parameter.
type passing struct {
	call  ssa.CallInstruction
	param *ssa.Parameter
}

// set is one assignment to a field.
type set struct {
	field string
	value ssa.Value
	pos   token.Pos
	instr ssa.Instruction
}

// all returns the assignments to fields of a role, those in other functions
// included.
func (m *message) all(r role) []set {
	var sets []set
	m.related(map[*message]bool{}, func(x *message) { sets = append(sets, x.sets[r]...) })
	return sets
}

// related calls yield for the message and for what other functions make of it.
func (m *message) related(seen map[*message]bool, yield func(*message)) {
	if seen[m] {
		return
	}
	seen[m] = true
	yield(m)
	for _, x := range m.bases {
		x.related(seen, yield)
	}
	for _, x := range m.callees {
		x.related(seen, yield)
	}
}

func (m *message) has(r role) bool { return len(m.all(r)) > 0 }

// complete reports whether all that happens to the message is seen.
func (m *message) complete() bool {
	return !m.open && !m.copied && !m.leaves && (!m.byValue || len(m.batches) > 0)
}

// absent reports whether a field is surely not set, or set to nil or to an
// empty constant everywhere.
func (m *message) absent(r role) bool {
	for _, s := range m.all(r) {
		if !isEmptyText(s.value) {
			return false
		}
	}
	return m.complete() && !m.later[r]
}

func isEmptyText(v ssa.Value) bool {
	c, ok := v.(*ssa.Const)
	return ok && (c.Value == nil || c.Value.ExactString() == `""`)
}

// origins returns what a field is made from. Where other functions take part, it
// is followed through them from the message itself.
func (p *program) origins(m *message, r role, inputs bool) []origin {
	var found []origin
	if len(m.bases) > 0 || len(m.callees) > 0 {
		for _, name := range m.shape.fieldsOf(r) {
			found = append(found, p.traceUntil(m.sendCalls(), m.root, accessPath{name}, inputs).origins...)
		}
		return found
	}
	for _, s := range m.sets[r] {
		found = append(found, p.traceUntil(m.sendCalls(), s.value, nil, inputs).origins...)
	}
	return found
}

// collect finds the messages of a package, each with what its fields are set
// to.
func (p *program) collect() []*message {
	byRoot := p.byRoot
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
	for _, m := range messages {
		m.inherit()
	}
	p.spreadSends(messages)
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
	for _, arg := range c.Args { // what a helper returns and nobody looks at
		switch arg.(type) {
		case *ssa.Call, *ssa.Extract:
			at(arg, fn)
		}
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

// inherit takes over what is not known of the messages that this one was made from.
func (m *message) inherit() {
	m.related(map[*message]bool{}, func(x *message) {
		if x != m && !isParameter(x.root) {
			m.open = m.open || x.open
			m.copied = m.copied || x.copied
		}
	})
	for _, b := range m.bases {
		b.derived = append(b.derived, m)
	}
}

func isParameter(v ssa.Value) bool {
	_, ok := v.(*ssa.Parameter)
	return ok
}

// spreadSends counts a call that gets the message and sends it as a send.
func (p *program) spreadSends(messages []*message) {
	for range maxForwards {
		for _, m := range messages {
			for _, to := range m.passed {
				if there := p.byRoot[to.param]; there != nil && len(there.sends) > 0 && !slices.Contains(m.sends, to.call) {
					m.sends = append(m.sends, to.call)
				}
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
			if m == later || m.shape != later.shape || outermost(m.fn) != outermost(later.fn) && !m.returned() && !m.byValue {
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

// sendCalls are the calls that send a message, alone or in a batch.
func (m *message) sendCalls() []ssa.CallInstruction {
	calls := m.sends
	for _, b := range m.batches {
		calls = append(calls[:len(calls):len(calls)], b.sends...)
	}
	return calls
}
