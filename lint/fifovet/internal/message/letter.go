package message

import (
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/flow"
)

// Letter is the body and the attributes of one message. Rules use a Letter to compare the
// body with the attributes.
//
// If the analyzed function makes the message, the field m is the message. Otherwise m is
// nil: the function calls another function that makes the message from its arguments.
type Letter struct {
	m   *Message
	Key any // identifies the message, like Use.Key

	Evidence     evidence
	ContentBased bool // the message may be sent without a deduplication ID
	dedup        dedupParam

	Attributes AttributeSet
	body       []flow.Origin
	parts      []ssa.Value // values used to compute the body
}

// Letters returns a [Letter] for each message with a body and attributes. It also returns
// a Letter for each call of a function that makes such a message from the arguments.
//
// Letters also records function parameters that become attributes (see recordAttributes).
func (p *Index) Letters(messages []*Message) []*Letter {
	var letters []*Letter
	for _, m := range messages {
		if l := p.letterOf(m); l != nil {
			letters = append(letters, l)
			p.recordAttributes(l)
		}
	}
	// A function that calls a wrapper of SendMessage may itself be a wrapper, so
	// each round may find more.
	calls := map[ssa.CallInstruction]*Letter{}
	for range flow.MaxCalls {
		n := p.sinkCount()
		for _, c := range p.Calls {
			if l := p.letterAt(c); l != nil {
				calls[c.Instr] = l
				p.recordAttributes(l)
			}
		}
		if p.sinkCount() == n {
			break
		}
	}
	for _, c := range p.Calls {
		if l := calls[c.Instr]; l != nil {
			letters = append(letters, l)
		}
	}
	return letters
}

func (p *Index) sinkCount() int {
	n := 0
	for _, sinks := range p.sinks {
		n += len(sinks)
	}
	return n
}

// letterOf returns the Letter of the message m. It returns nil if m is a batch, has no
// body, has no attributes, or shows no sign of a FIFO queue.
func (p *Index) letterOf(m *Message) *Letter {
	if m.Shape.Batch || !m.Has(RoleBody) {
		return nil
	}
	l := &Letter{
		m: m, Key: m.Root, Evidence: p.EvidenceOf(m), ContentBased: m.Shape.Sdk || p.contentBased(m), dedup: p.dedupParameter(m), Attributes: p.AttributesOf(m),
	}
	if l.Evidence == NotFIFO || len(l.Attributes.Known) == 0 && len(l.Attributes.params) == 0 {
		return nil
	}
	roles := []Role{RoleBody}
	if m.Shape.Sdk {
		// Package sqsfifo sends the dedupe key in the body.
		roles = append(roles, RoleDedup)
	}
	for _, r := range roles {
		l.body = append(l.body, p.Origins(m, r, true)...)
		for _, s := range m.All(r) {
			l.parts = append(l.parts, p.Trace(s.Value, nil, true).InOrder...)
		}
	}
	return l
}

// letterAt returns a Letter (a body with its attributes) for a call whose arguments
// become the body and the attributes of a message. For any other call it returns nil. It
// also returns nil without evidence of a FIFO queue.
func (p *Index) letterAt(c flow.Call) *Letter {
	l := &Letter{Key: c.Instr}
	sends := []ssa.CallInstruction{c.Instr}
	args := flow.Args(c.Instr.Common())
	bodies := 0
	for _, s := range p.sinksAt(c) {
		if s.Index >= len(args) {
			continue
		}
		arg := args[s.Index]
		switch s.Role {
		case roleAttributes:
			p.CollectAttributes(&l.Attributes, sends, arg, s.Path, nil, 0)
		case roleAttribute:
			value := p.TraceUntil(sends, arg, s.Path, true)
			l.Attributes.add(Attribute{Name: s.Field, Value: value, Fn: c.Fn, Pos: c.Instr.Pos(), Arg: argIndex(c, arg)})
		case RoleBody:
			t := p.NewTracer()
			t.Inputs, t.Until = true, sends
			if s.Encoded {
				t.Encoded(arg, flow.Place{Path: s.Path})
			} else {
				t.Value(arg, flow.Place{Path: s.Path})
			}
			l.body = append(l.body, t.Origins...)
			l.parts = append(l.parts, t.InOrder...)
			bodies++
			continue
		default:
			continue
		}
		u := p.argument(c, s)
		if u == nil {
			return nil
		}
		l.Evidence, l.ContentBased, l.dedup = max(l.Evidence, u.Evidence), l.ContentBased || u.ContentBased, u.dedup
	}
	if bodies == 0 || len(l.Attributes.Known) == 0 && len(l.Attributes.params) == 0 {
		return nil
	}
	return l
}

// recordAttributes records the function parameters that become attributes of a message,
// so that the rules also check the arguments passed by callers.
func (p *Index) recordAttributes(l *Letter) {
	sink := paramSink{
		Evidence: l.Evidence, ContentBased: l.ContentBased && (l.m == nil || l.m.concernsCallers(l.dedup)), Unless: l.dedup,
	}
	for _, o := range l.Attributes.params {
		sink.Role, sink.Field = roleAttributes, "MessageAttributes"
		p.recordSink(o, sink)
	}
	for _, a := range l.Attributes.Known {
		// If the analyzed code shows whether the attribute is in the body, skip its callers.
		if l.Carriage(a) != notKnown {
			continue
		}
		variable, _ := a.Variable()
		for _, o := range variable {
			sink.Role, sink.Field = roleAttribute, a.Name
			p.recordSink(o, sink)
		}
	}
}

// recordSink records that the function parameter o.Root becomes part of a message. The
// caller describes the message's field in s, and recordSink sets s.Index and s.Path. It
// returns the function of the parameter and the changed s, or false if it recorded nothing.
func (p *Index) recordSink(o flow.Origin, s paramSink) (*ssa.Function, paramSink, bool) {
	param, ok := o.Root.(*ssa.Parameter)
	if !ok || o.Kind != flow.FromPath || !o.Top || len(o.Path) > maxSinkPath || p.Exempt(param.Parent()) {
		return nil, s, false
	}
	fn := param.Parent()
	s.Index, s.Path = slices.Index(fn.Params, param), o.Path
	known := p.sinks[target(fn)]
	if len(known) >= maxSinks || slices.ContainsFunc(known, s.same) {
		return nil, s, false
	}
	p.sinks[target(fn)] = append(known, s)
	return fn, s, true
}
