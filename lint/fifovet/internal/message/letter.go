package message

import (
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/flow"
)

// Letter is a message body with the attributes of the same message, for rules that compare
// body and attributes. It describes the message m. If m is nil, it describes the message
// that a called function makes from the arguments of call.
type Letter struct {
	m    *Message
	call ssa.CallInstruction

	Evidence     evidence
	ContentBased bool // the message may be sent without a deduplication ID
	unless       given

	Attributes AttributeSet
	body       []flow.Origin
	made       []ssa.Value // values that the body is made from
}

// Key identifies the letter: all findings about one letter have an equal Key.
func (l *Letter) Key() any {
	if l.m != nil {
		return l.m.Root
	}
	return l.call
}

// Letters returns a [Letter] for each message with attributes and for each call whose
// arguments become a body and attributes. It records the parameters that become
// attributes.
func (p *Index) Letters(messages []*Message) []*Letter {
	var letters []*Letter
	for _, m := range messages {
		if l := p.letterOf(m); l != nil {
			letters = append(letters, l)
			p.raiseAttributes(l)
		}
	}
	// Each round may record parameters of a calling function that become attributes too,
	// as in nested wrappers. The next round then includes the calls of this function.
	calls := map[ssa.CallInstruction]*Letter{}
	for range flow.MaxCalls {
		n := p.sinkCount()
		for _, c := range p.Calls {
			if l := p.letterAt(c); l != nil {
				calls[c.Instr] = l
				p.raiseAttributes(l)
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

// letterOf returns a Letter for the message m. It returns nil for a batch, and for a
// message without a body or attributes. It also returns nil without evidence of a FIFO
// queue, unless callers pass the queue's name.
func (p *Index) letterOf(m *Message) *Letter {
	if m.Shape.Batch || !m.Has(RoleBody) {
		return nil
	}
	l := &Letter{
		m: m, Evidence: p.EvidenceOf(m), ContentBased: m.Shape.Sdk || p.contentBased(m), unless: p.dedupParameter(m), Attributes: p.AttributesOf(m),
	}
	if l.Evidence == NotFIFO && !p.namedByCaller(m) || len(l.Attributes.Known) == 0 && len(l.Attributes.params) == 0 {
		return nil
	}
	roles := []Role{RoleBody}
	if m.Shape.Sdk {
		roles = append(roles, RoleDedup) // the body contains the dedupe key, so the key's value is checked like a part of the body
	}
	for _, r := range roles {
		l.body = append(l.body, p.Origins(m, r, true)...)
		for _, s := range m.All(r) {
			l.made = append(l.made, p.Trace(s.Value, nil, true).InOrder...)
		}
	}
	return l
}

// namedByCaller reports whether the name of the queue is a parameter of the message's
// function.
func (p *Index) namedByCaller(m *Message) bool {
	for _, o := range p.Origins(m, RoleURL, false) {
		if _, ok := o.Root.(*ssa.Parameter); ok && o.Kind == flow.FromPath {
			return true
		}
	}
	return false
}

// letterAt returns a Letter (a body with its attributes) for a call whose arguments
// become both the body and attributes of a message. It returns nil for any other call, or
// without evidence of a FIFO queue.
func (p *Index) letterAt(c flow.Call) *Letter {
	l := &Letter{call: c.Instr}
	until := []ssa.CallInstruction{c.Instr}
	args := flow.Args(c.Instr.Common())
	bodies := 0
	for _, s := range p.sinksAt(c) {
		if s.Index >= len(args) {
			continue
		}
		arg := args[s.Index]
		switch s.Role {
		case roleAttributes:
			p.CollectAttributes(&l.Attributes, until, arg, s.Path, nil, 0)
		case roleAttribute:
			value := p.TraceUntil(until, arg, s.Path, true)
			l.Attributes.add(Attribute{Name: s.Field, Value: value, Fn: c.Fn, Pos: c.Instr.Pos(), Arg: argIndex(c, arg)})
		case RoleBody:
			t := p.NewTracer()
			t.Inputs, t.Until = true, until
			if s.Encoded {
				t.Encoded(arg, flow.Place{Path: s.Path})
			} else {
				t.Value(arg, flow.Place{Path: s.Path})
			}
			l.body = append(l.body, t.Origins...)
			l.made = append(l.made, t.InOrder...)
			bodies++
			continue
		default:
			continue
		}
		u := p.argument(c, s)
		if u == nil {
			return nil
		}
		l.Evidence, l.ContentBased, l.unless = max(l.Evidence, u.Evidence), l.ContentBased || u.ContentBased, u.unless
	}
	if bodies == 0 || len(l.Attributes.Known) == 0 && len(l.Attributes.params) == 0 {
		return nil
	}
	return l
}

// raiseAttributes records the parameters of the function that become attributes of the
// letter l. The rules then also check the arguments that callers pass for these
// parameters.
func (p *Index) raiseAttributes(l *Letter) {
	sink := paramSink{
		Evidence: l.Evidence, ContentBased: l.ContentBased && (l.m == nil || l.m.concernsCallers(l.unless)), Unless: l.unless,
	}
	for _, o := range l.Attributes.params {
		sink.Role, sink.Field = roleAttributes, "MessageAttributes"
		p.raise(o, sink)
	}
	for _, a := range l.Attributes.Known {
		// If the analysis knows here whether the body contains the value, the rules need
		// not check the arguments of calls.
		if l.Carriage(a) != notKnown {
			continue
		}
		variable, _ := a.Variable()
		for _, o := range variable {
			sink.Role, sink.Field = roleAttribute, a.Name
			p.raise(o, sink)
		}
	}
}

// raise records the part s of a message for the parameter that the origin o comes from. It
// sets s.Index and s.Path. It returns the parameter's function, the complete s, and whether
// it recorded s.
func (p *Index) raise(o flow.Origin, s paramSink) (*ssa.Function, paramSink, bool) {
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
