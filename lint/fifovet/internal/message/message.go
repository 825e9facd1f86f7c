package message

import (
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/flow"
)

// Message is one value of a message type in one function.
type Message struct {
	Root  ssa.Value
	Shape *shape
	Fn    *ssa.Function
	Sets  map[Role][]Set

	// open is true if other functions may set fields of the message, including fields
	// without an assignment in this function.
	open bool

	// leaves is true if the function returns a pointer to the message, so callers may
	// change it.
	leaves bool

	// byValue is true if the function returns a copy of the message. Callers may add
	// fields.
	byValue bool

	// These fields link the Messages that describe one message in several functions. bases
	// are in called functions that return it. Derived are the results of this function's
	// calls. callees are parameters of called functions that get it.
	bases, Derived, callees []*Message
	passed                  []passing

	// copied is true if an assignment copies the whole message from another value.
	copied bool

	// later has the roles of fields, such as RoleDedup, that code may set in a later copy
	// of the message, for example in an element of a slice.
	later map[Role]bool

	evidence *evidence // evidence about the queue, computed once

	batches []*Message // the batch inputs that contain this message as an entry
	sends   []ssa.CallInstruction
}

// passing is a call with a message as argument; param is the called function's parameter
// for the message.
type passing struct {
	call  ssa.CallInstruction
	param *ssa.Parameter
}

// Set is one assignment to a field.
type Set struct {
	field string
	Value ssa.Value
	Pos   token.Pos
	Instr ssa.Instruction
}

// All returns the assignments to fields with role r, such as RoleBody, in all functions
// of this package that build the message.
func (m *Message) All(r Role) []Set {
	var sets []Set
	m.related(map[*Message]bool{}, func(x *Message) { sets = append(sets, x.Sets[r]...) })
	return sets
}

// related calls yield for m and for every Message that describes the same message in
// another function.
func (m *Message) related(seen map[*Message]bool, yield func(*Message)) {
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

func (m *Message) Has(r Role) bool { return len(m.All(r)) > 0 }

// complete reports whether the analysis knows every place that may set a field of the
// message. A field without a known assignment is then certainly unset.
func (m *Message) complete() bool {
	return !m.open && !m.copied && !m.leaves && (!m.byValue || len(m.batches) > 0)
}

// Absent reports whether the fields with the role r are certainly never set, or set only to
// nil or an empty constant.
func (m *Message) Absent(r Role) bool {
	for _, s := range m.All(r) {
		if !IsEmptyText(s.Value) {
			return false
		}
	}
	return m.complete() && !m.later[r]
}

func IsEmptyText(v ssa.Value) bool {
	c, ok := v.(*ssa.Const)
	return ok && (c.Value == nil || c.Value.ExactString() == `""`)
}

// Origins returns the origins of a field's value. If several functions build the
// message, the trace goes through all of them.
func (p *Index) Origins(m *Message, r Role, inputs bool) []flow.Origin {
	var found []flow.Origin
	if len(m.bases) > 0 || len(m.callees) > 0 {
		for _, name := range m.Shape.fieldsOf(r) {
			found = append(found, p.TraceUntil(m.SendCalls(), m.Root, flow.AccessPath{name}, inputs).Origins...)
		}
		return found
	}
	for _, s := range m.Sets[r] {
		found = append(found, p.TraceUntil(m.SendCalls(), s.Value, nil, inputs).Origins...)
	}
	return found
}

// Collect finds the messages made or used by the package's functions, with the
// assignments to their fields and the calls that send them.
func (p *Index) Collect() []*Message {
	byRoot := p.byRoot
	var messages []*Message
	at := func(v ssa.Value, fn *ssa.Function) *Message {
		sh := ShapeOf(v.Type())
		if sh == nil {
			return nil
		}
		root := p.rootOf(v, 0)
		m := byRoot[root]
		if m == nil {
			m = &Message{Root: root, Shape: sh, Fn: fn, Sets: map[Role][]Set{}}
			byRoot[root] = m
			messages = append(messages, m)
		}
		return m
	}
	for _, fn := range p.Fns {
		for instr := range flow.Instructions(fn) {
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
	for _, m := range messages {
		p.followUses(m, m.Root, map[ssa.Value]bool{})
	}
	for _, m := range messages {
		m.inheritMarks()
	}
	p.spreadSends(messages)
	p.linkBatches(messages)
	setLaterFields(messages)
	return messages
}

func (m *Message) assign(addr *ssa.FieldAddr) {
	name := flow.FieldName(addr.X.Type(), addr.Field)
	r := m.Shape.Fields[name]
	if r == RoleNone {
		return
	}
	for _, instr := range flow.Referrers(addr) {
		switch instr := instr.(type) {
		case *ssa.Store:
			if instr.Addr == addr {
				pos := instr.Pos()
				if !pos.IsValid() {
					pos = addr.Pos()
				}
				m.Sets[r] = append(m.Sets[r], Set{name, instr.Val, pos, instr})
			}
		case *ssa.UnOp, *ssa.DebugRef:
		case *ssa.FieldAddr, *ssa.IndexAddr:
			// Code sets the parts of such a field one by one, such as the 16 bytes of an
			// event ID. The field's address therefore takes the place of a value.
			m.Sets[r] = append(m.Sets[r], Set{name, addr, addr.Pos(), addr})
		default:
			// Other code gets the field's address, so it may set the field.
			m.Sets[r] = append(m.Sets[r], Set{name, addr, addr.Pos(), addr})
		}
	}
}

// collectCall handles a call. A setter of the AWS SDK v1 counts as an assignment to the
// message's field. A call that sends a message is recorded in this message.
func (p *Index) collectCall(instr ssa.CallInstruction, fn *ssa.Function, at func(ssa.Value, *ssa.Function) *Message) {
	c := instr.Common()
	callee := flow.CalleeOf(c)
	if callee == nil {
		return
	}
	if field, ok := strings.CutPrefix(callee.Name(), "Set"); ok && len(c.Args) == 2 && !c.IsInvoke() {
		if m := at(c.Args[0], fn); m != nil {
			if r := m.Shape.Fields[field]; r != RoleNone {
				m.Sets[r] = append(m.Sets[r], Set{field, c.Args[1], c.Args[1].Pos(), instr})
			}
		}
		return
	}
	// The call of at also collects a message that a helper function made.
	for _, arg := range c.Args {
		switch arg.(type) {
		case *ssa.Call, *ssa.Extract:
			at(arg, fn)
		}
	}
	if IsSend(callee) {
		for _, arg := range c.Args {
			if ShapeOf(arg.Type()) == nil {
				continue
			}
			if m := at(arg, fn); m != nil {
				m.sends = append(m.sends, instr)
			}
		}
	}
}

// inheritMarks copies the marks open and copied of related messages to m. It ignores
// parameters, because a parameter is always open. It also adds m to the field Derived of
// each message in m.bases.
func (m *Message) inheritMarks() {
	m.related(map[*Message]bool{}, func(x *Message) {
		if x != m && !isParameter(x.Root) {
			m.open = m.open || x.open
			m.copied = m.copied || x.copied
		}
	})
	for _, b := range m.bases {
		b.Derived = append(b.Derived, m)
	}
}

func isParameter(v ssa.Value) bool {
	_, ok := v.(*ssa.Parameter)
	return ok
}

// spreadSends adds calls to the field sends of each message. If a function sends its
// argument, each call of this function counts as a send of the argument.
func (p *Index) spreadSends(messages []*Message) {
	for range flow.MaxForwards {
		for _, m := range messages {
			for _, to := range m.passed {
				if there := p.byRoot[to.param]; there != nil && len(there.sends) > 0 && !slices.Contains(m.sends, to.call) {
					m.sends = append(m.sends, to.call)
				}
			}
		}
	}
}

// setLaterFields sets the field later of each message. An open or copied message of the
// same type may be a copy of the message.
func setLaterFields(messages []*Message) {
	for _, later := range messages {
		if !later.open && !later.copied {
			continue
		}
		for _, m := range messages {
			// A message that its function returns may be copied in any function.
			if m == later || m.Shape != later.Shape || flow.Outermost(m.Fn) != flow.Outermost(later.Fn) && !m.isInReturnedSlice() && !m.byValue {
				continue
			}
			for r := range later.Sets {
				if m.later == nil {
					m.later = map[Role]bool{}
				}
				m.later[r] = true
			}
		}
	}
}

// isInReturnedSlice reports whether the message's function returns a slice of messages of
// this type.
func (m *Message) isInReturnedSlice() bool {
	results := flow.Outermost(m.Fn).Signature.Results()
	for i := range results.Len() {
		if s, ok := results.At(i).Type().Underlying().(*types.Slice); ok && ShapeOf(s.Elem()) == m.Shape {
			return true
		}
	}
	return false
}

// linkBatches connects each batch entry with its batch input. The entry then has the
// batch's queue and sending call.
func (p *Index) linkBatches(messages []*Message) {
	for _, batch := range messages {
		if !batch.Shape.Batch {
			continue
		}
		visited := map[ssa.Value]bool{}
		for _, s := range batch.Sets[roleEntries] {
			for v := range p.Trace(s.Value, nil, false).Visited {
				visited[v] = true
			}
		}
		for _, m := range messages {
			if m.Shape.entry && visited[m.Root] {
				m.batches = append(m.batches, batch)
			}
		}
	}
}

// SendCalls returns the sending calls of a message, alone or in a batch.
func (m *Message) SendCalls() []ssa.CallInstruction {
	calls := m.sends
	for _, b := range m.batches {
		calls = append(calls[:len(calls):len(calls)], b.sends...)
	}
	return calls
}
