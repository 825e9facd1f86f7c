package message

import (
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/flow"
)

// evidence says whether a message's queue or topic is FIFO: certainly, maybe or not.
type evidence uint8

const (
	// NotFIFO means that the code shows no sign of a FIFO queue, or names a standard
	// queue by a constant.
	NotFIFO evidence = iota

	// MaybeFIFO means that the message has a group ID, or has a deduplication ID on some
	// paths only. A group ID is not certain evidence, because standard queues also accept
	// it (F-149).
	MaybeFIFO

	// SurelyFIFO means that the queue's name ends in .fifo, that a message with a group ID
	// gets its URL from a variable such as fifoURL, that the message always has a
	// deduplication ID (refused by standard queues), or that its type belongs to package
	// sqsfifo.
	SurelyFIFO
)

// queueName is the kind of a queue, standard or FIFO, as shown by its URL, ARN or name.
type queueName uint8

const (
	unknownName queueName = iota
	StandardName
	FifoName
)

// nameIn returns a queue's kind and name, given the origins of its URL or name. It returns
// unknownName unless all origins are constants that name queues of one kind, FIFO or
// standard. It ignores empty constants.
func nameIn(origins []flow.Origin) (queueName, string) {
	result, text := unknownName, ""
	for _, o := range origins {
		if o.Kind == flow.FromConst && o.Text == "" && !o.Mixed {
			continue // the URL is not set on this path
		}
		if o.Kind != flow.FromConst || o.Mixed {
			return unknownName, ""
		}
		is := StandardName
		if strings.HasSuffix(o.Text, ".fifo") {
			is = FifoName
		}
		if result != unknownName && result != is {
			return unknownName, ""
		}
		result, text = is, o.Text
	}
	return result, text
}

// QueueOf returns the kind and the name of a message's queue.
func (p *Index) QueueOf(m *Message) (queueName, string) {
	var origins []flow.Origin
	for _, in := range append([]*Message{m}, m.batches...) {
		origins = append(origins, p.Origins(in, RoleURL, false)...)
	}
	return p.kindAndName(origins)
}

// kindAndName returns the kind and the name of a queue. It knows constant URLs, results
// of GetQueueUrl for a constant name, and texts with a constant such as "orders.fifo": the
// name of a standard queue has no dot.
func (p *Index) kindAndName(origins []flow.Origin) (queueName, string) {
	var names []flow.Origin
	for _, o := range origins {
		names = append(names, p.lookedUp(o)...)
	}
	for _, o := range names {
		if o.Kind == flow.FromConst && o.Joined && strings.HasSuffix(o.Text, ".fifo") {
			return FifoName, o.Text
		}
	}
	return nameIn(names)
}

// lookedUp returns the origins of the name of a queue, if its URL is the result of a
// GetQueueUrl call. For any other origin it returns the origin.
func (p *Index) lookedUp(o flow.Origin) []flow.Origin {
	call, ok := o.Root.(*ssa.Call)
	if !ok || o.Kind != flow.FromPath {
		return []flow.Origin{o}
	}
	for _, arg := range call.Call.Args {
		if flow.TypeName(arg.Type()) == "GetQueueUrlInput" {
			t := p.NewTracer()
			t.Value(arg, flow.Place{Path: flow.AccessPath{"QueueName"}, Frame: o.Frame})
			// The tracer adds an unknown origin, because a call may change its argument.
			// GetQueueUrl never does, so ignore this origin.
			return slices.DeleteFunc(t.Origins, func(name flow.Origin) bool { return name.Kind == flow.FromUnknown && name.Root == arg })
		}
	}
	return []flow.Origin{o}
}

// EvidenceOf reports whether the message goes to a FIFO queue: certainly, maybe or not.
// If the code does not show the queue, but returns the message to callers, EvidenceOf also
// looks at the callers.
func (p *Index) EvidenceOf(m *Message) evidence {
	if m.Shape.Sdk {
		return SurelyFIFO
	}
	if m.evidence == nil {
		e := p.findEvidence(m)
		for _, d := range m.Derived {
			e = max(e, p.EvidenceOf(d))
		}
		m.evidence = &e
	}
	return *m.evidence
}

func (p *Index) findEvidence(m *Message) evidence {
	switch name, _ := p.QueueOf(m); {
	case name == StandardName:
		return NotFIFO
	case name == FifoName || p.isAlwaysSet(m, RoleDedup):
		return SurelyFIFO
	case m.Has(RoleGroup) && !m.Absent(RoleGroup), m.Has(RoleDedup) && !m.Absent(RoleDedup):
		if p.isCalledFIFO(m) {
			return SurelyFIFO
		}
		return MaybeFIFO
	}
	return NotFIFO
}

// isCalledFIFO reports whether the queue's URL comes from a variable, a field or a setting
// with "fifo" in its name, such as os.Getenv("ORDERS_FIFO_URL").
func (p *Index) isCalledFIFO(m *Message) bool {
	for _, in := range append([]*Message{m}, m.batches...) {
		for _, o := range p.Origins(in, RoleURL, false) {
			names := slices.Clone(o.Path)
			switch root := o.Root.(type) {
			case *ssa.Parameter, *ssa.Global:
				names = append(names, root.Name())
			case *ssa.Call:
				for _, arg := range root.Call.Args {
					name, _ := flow.ConstString(arg)
					names = append(names, name)
				}
			}
			if strings.Contains(strings.ToLower(strings.Join(names, " ")), "fifo") {
				return true
			}
		}
	}
	return false
}

// evidenceFor reports whether the queue of m is FIFO: certainly, maybe or not. The
// message must set a field with the role r. If this field is the deduplication ID
// (RoleDedup), MaybeFIFO becomes SurelyFIFO, because only FIFO queues accept a
// deduplication ID.
func (p *Index) evidenceFor(m *Message, r Role) evidence {
	if e := p.EvidenceOf(m); r != RoleDedup || e != MaybeFIFO {
		return e
	}
	return SurelyFIFO
}

// isAlwaysSet reports whether every path to the send sets a field with the role r to a
// value that is neither nil nor empty.
func (p *Index) isAlwaysSet(m *Message, r Role) bool {
	given := slices.ContainsFunc(m.All(r), func(s Set) bool { return !IsEmptyText(s.Value) && !p.nilable(s.Value, nil) })
	return given && !p.leavesOut(m, r, RoleNone)
}

// contentBased reports whether some path sends the message to a FIFO queue without a
// deduplication ID. SQS then uses the body's hash.
func (p *Index) contentBased(m *Message) bool {
	if m.Shape.Sdk {
		return false
	}
	if slices.ContainsFunc(m.Derived, p.contentBased) {
		return true
	}
	required := RoleNone
	switch p.EvidenceOf(m) {
	case NotFIFO:
		return false
	case MaybeFIFO:
		required = RoleGroup
	}
	return m.complete() && !m.setInCopies[RoleDedup] && p.leavesOut(m, RoleDedup, required)
}

// leavesOut reports whether a path leads to the send without an assignment to a field with
// the role r. With a requiredRole other than RoleNone, the path must also assign a field
// with requiredRole.
func (p *Index) leavesOut(m *Message, r, requiredRole Role) bool {
	if slices.ContainsFunc(m.callees, func(c *Message) bool { return c.Has(r) }) {
		return false // assignments in the called function are not followed
	}
	if len(m.bases) > 0 && !slices.ContainsFunc(m.bases, func(b *Message) bool { return p.leavesOut(b, r, RoleNone) }) {
		return false
	}
	w, ok := p.newPathSearch(m)
	if !ok {
		return false
	}
	nilable := false
	for _, s := range m.Sets[r] {
		if IsEmptyText(s.Value) {
			continue
		}
		if p.nilable(s.Value, nil) {
			nilable = true
			continue
		}
		if s.Instr == nil || s.Instr.Parent() != w.start.Parent() {
			return false
		}
		w.excluded[s.Instr.Block()] = true
	}
	inherited := slices.ContainsFunc(slices.Concat(m.bases, m.callees), func(x *Message) bool { return x.Has(requiredRole) })
	if requiredRole != RoleNone && !inherited {
		w.required = map[*ssa.BasicBlock]bool{}
		for _, s := range m.Sets[requiredRole] {
			// Skip an empty value. If a value for the role r may be nil, also skip a value
			// that may be nil, unless it is the result of a call: both values are probably
			// nil on the same paths.
			if IsEmptyText(s.Value) || nilable && !isResult(s.Value) && p.nilable(s.Value, nil) {
				continue
			}
			if s.Instr != nil && s.Instr.Parent() == w.start.Parent() {
				w.required[s.Instr.Block()] = true
			}
		}
	}
	w.unsetRole = r
	return w.find()
}

// nilable reports whether a pointer is known to be nil on some path.
func (p *Index) nilable(v ssa.Value, seen map[ssa.Value]bool) bool {
	if seen == nil {
		seen = map[ssa.Value]bool{}
	}
	if seen[v] || len(seen) > flow.MaxUnwraps {
		return false
	}
	seen[v] = true
	isNilable := func(v ssa.Value) bool { return p.nilable(v, seen) }
	switch v := v.(type) {
	case *ssa.Const:
		return v.IsNil()
	case *ssa.Phi:
		return slices.ContainsFunc(v.Edges, isNilable)
	case *ssa.UnOp:
		if cell, ok := v.X.(*ssa.Alloc); ok { // a variable shared with a function literal
			stored := flow.Stores(cell)
			return slices.ContainsFunc(stored, isNilable) || len(stored) == 0 && flow.IsReference(v.Type())
		}
	case *ssa.Call:
		return p.returnsNil(v, 0, seen)
	case *ssa.Extract:
		if call, ok := v.Tuple.(*ssa.Call); ok {
			return p.returnsNil(call, v.Index, seen)
		}
	}
	return false
}

// returnsNil reports whether a call may return nil as one of its results, without an
// error. The parameter `result` is the number of this result, from 0. The called function
// must be in this package.
func (p *Index) returnsNil(call *ssa.Call, result int, seen map[ssa.Value]bool) bool {
	fn := p.Body(call.Common())
	if fn == nil || result >= fn.Signature.Results().Len() || !flow.IsReference(fn.Signature.Results().At(result).Type()) {
		return false
	}
	return slices.ContainsFunc(flow.Results(fn, result), func(v ssa.Value) bool { return p.nilable(v, seen) })
}

// isResult reports whether a value is a result of a call.
func isResult(v ssa.Value) bool {
	switch v.(type) {
	case *ssa.Call, *ssa.Extract:
		return true
	}
	return false
}
