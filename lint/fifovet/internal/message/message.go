package message

import (
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/flow"
)

// Message describes one message in one function of the analyzed package. The message is a
// value of a type such as sqs.SendMessageInput.
type Message struct {
	Root  ssa.Value // identifies the message (see rootOf)
	Shape *shape
	Fn    *ssa.Function
	Sets  map[Role][]Set // assignments to fields

	// setByUnknownCode is true if unknown code may set fields of the message.
	setByUnknownCode bool

	// returned is true if the function returns a pointer to the message. Callers may then
	// set fields.
	returned bool

	// copyReturned is true if the function returns a copy of the message. Callers may
	// then set fields of the copy.
	copyReturned bool

	// If several functions make or get one message, each function has its own Message
	// value. The next three fields have the values of the other functions.
	bases   []*Message // of functions that return the message to Fn
	Derived []*Message // of callers to which Fn returns the message
	callees []*Message // of functions to which Fn passes the message
	passed  []passing

	// isCopy is true if an assignment such as *input = defaults sets the whole message.
	isCopy bool

	// setInCopies has the roles, such as RoleDedup, of fields that code may set in a copy
	// of the message.
	setInCopies map[Role]bool

	// evidence caches the result of EvidenceOf. It is nil before the first call.
	evidence *evidence

	batches []*Message            // batch inputs that contain this message as an entry
	sends   []ssa.CallInstruction // calls that send this message alone, not in a batch
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
	m.visitRelated(map[*Message]bool{}, func(x *Message) { sets = append(sets, x.Sets[r]...) })
	return sets
}

// visitRelated calls the function `yield` for m. If m.Fn calls other functions, directly or
// indirectly, that make the message or get it as an argument, visitRelated also calls
// `yield` for their Messages.
func (m *Message) visitRelated(seen map[*Message]bool, yield func(*Message)) {
	if seen[m] {
		return
	}
	seen[m] = true
	yield(m)
	for _, x := range m.bases {
		x.visitRelated(seen, yield)
	}
	for _, x := range m.callees {
		x.visitRelated(seen, yield)
	}
}

func (m *Message) Has(r Role) bool { return len(m.All(r)) > 0 }

// complete reports whether the analysis sees all assignments to the fields of m. A field
// without an assignment is then certainly unset.
func (m *Message) complete() bool {
	return !m.setByUnknownCode && !m.isCopy && !m.returned && (!m.copyReturned || len(m.batches) > 0)
}

// Absent reports whether the fields with the role r are certainly never set, or set only to
// nil or an empty constant.
func (m *Message) Absent(r Role) bool {
	for _, s := range m.All(r) {
		if !IsEmptyText(s.Value) {
			return false
		}
	}
	return m.complete() && !m.setInCopies[r]
}

func IsEmptyText(v ssa.Value) bool {
	c, ok := v.(*ssa.Const)
	return ok && (c.Value == nil || c.Value.ExactString() == `""`)
}

// Origins returns the parameters, clocks and other origins of the values in the fields
// with the role r, in all functions that build the message. For the parameter `inputs`, see
// the field Inputs of [flow.Tracer].
func (p *Index) Origins(m *Message, r Role, inputs bool) []flow.Origin {
	var found []flow.Origin
	if len(m.bases) > 0 || len(m.callees) > 0 || m.isCopy {
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
	messageAt := func(v ssa.Value, fn *ssa.Function) *Message {
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
				messageAt(instr, fn)
			case *ssa.FieldAddr:
				if m := messageAt(instr.X, fn); m != nil {
					m.assign(instr)
				}
			case ssa.CallInstruction:
				p.collectCall(instr, fn, messageAt)
			}
		}
	}
	for _, m := range messages {
		p.followUses(m, m.Root, map[ssa.Value]bool{})
	}
	for _, m := range messages {
		m.inheritFlags()
	}
	p.spreadSends(messages)
	p.linkBatches(messages)
	noteCopies(messages)
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
		case *ssa.UnOp:
		default:
			// The code sets parts of the field, or other code gets the field's address and
			// may set the field: there is no single value, so record the address.
			m.Sets[r] = append(m.Sets[r], Set{name, addr, addr.Pos(), addr})
		}
	}
}

// collectCall handles a call. A setter of the AWS SDK v1 counts as an assignment to a
// field of the message. A sending call is added to the field `sends` of its message.
func (p *Index) collectCall(instr ssa.CallInstruction, fn *ssa.Function, messageAt func(ssa.Value, *ssa.Function) *Message) {
	c := instr.Common()
	callee := flow.CalleeOf(c)
	if callee == nil {
		return
	}
	if field, ok := strings.CutPrefix(callee.Name(), "Set"); ok && len(c.Args) == 2 && !c.IsInvoke() {
		if m := messageAt(c.Args[0], fn); m != nil {
			if r := m.Shape.Fields[field]; r != RoleNone {
				m.Sets[r] = append(m.Sets[r], Set{field, c.Args[1], c.Args[1].Pos(), instr})
			}
		}
		return
	}
	// An argument may be a message made by a helper function. Then messageAt adds this
	// message to the index.
	for _, arg := range c.Args {
		switch arg.(type) {
		case *ssa.Call, *ssa.Extract:
			messageAt(arg, fn)
		}
	}
	if IsSend(callee) {
		for _, arg := range c.Args {
			if ShapeOf(arg.Type()) == nil {
				continue
			}
			if m := messageAt(arg, fn); m != nil {
				m.sends = append(m.sends, instr)
			}
		}
	}
}

// inheritFlags sets setByUnknownCode and isCopy of m if they are true in a function that
// returns the message to m.Fn. It ignores functions that get the message as a parameter,
// because their setByUnknownCode is always true. It also fills the field Derived of m.bases.
func (m *Message) inheritFlags() {
	m.visitRelated(map[*Message]bool{}, func(x *Message) {
		if x != m && !isParameter(x.Root) {
			m.setByUnknownCode = m.setByUnknownCode || x.setByUnknownCode
			m.isCopy = m.isCopy || x.isCopy
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

// spreadSends handles functions such as send(client, input) that send a message argument.
// The call of such a function counts as a send of the message.
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

// noteCopies fills the field setInCopies of each message with the roles of fields that may
// be set in copies of the message. Another message can be a copy only if it has the same
// type, and its field `isCopy` or setByUnknownCode is true.
func noteCopies(messages []*Message) {
	for _, other := range messages {
		if !other.setByUnknownCode && !other.isCopy {
			continue
		}
		for _, m := range messages {
			// Copies can be in other functions only if m is returned, by value or in a
			// slice.
			if m == other || m.Shape != other.Shape || flow.Outermost(m.Fn) != flow.Outermost(other.Fn) && !m.isInReturnedSlice() && !m.copyReturned {
				continue
			}
			for r := range other.Sets {
				if m.setInCopies == nil {
					m.setInCopies = map[Role]bool{}
				}
				m.setInCopies[r] = true
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

// InBatch reports whether the message is an entry of a batch.
func (m *Message) InBatch() bool { return len(m.batches) > 0 }

// SendCalls returns the calls that send the message, alone or in a batch.
func (m *Message) SendCalls() []ssa.CallInstruction {
	calls := m.sends
	for _, b := range m.batches {
		calls = append(calls[:len(calls):len(calls)], b.sends...)
	}
	return calls
}
