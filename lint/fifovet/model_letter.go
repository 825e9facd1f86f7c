package fifovet

import (
	"go/types"
	"slices"

	"golang.org/x/tools/go/ssa"
)

// letter is a body with its attributes, on the way to a queue: a message, or the
// arguments of a call that makes one.
type letter struct {
	m    *message
	call ssa.CallInstruction

	evidence     evidence
	contentBased bool // there is no deduplication ID, on some way
	unless       given

	attributes attributeSet
	body       []origin
	made       []ssa.Value // what the body is made of
}

// key is the same for all findings about one letter.
func (l *letter) key() any {
	if l.m != nil {
		return l.m.root
	}
	return l.call
}

// letters returns the messages and calls with attributes, and records on the way
// which parameters of functions become attributes.
func (p *program) letters(messages []*message) []*letter {
	var letters []*letter
	for _, m := range messages {
		if l := p.letterOf(m); l != nil {
			letters = append(letters, l)
			p.raiseAttributes(l)
		}
	}
	// Each round goes up by one caller.
	calls := map[ssa.CallInstruction]*letter{}
	for range maxCalls {
		n := p.sinkCount()
		for _, c := range p.calls {
			if l := p.letterAt(c); l != nil {
				calls[c.instr] = l
				p.raiseAttributes(l)
			}
		}
		if p.sinkCount() == n {
			break
		}
	}
	for _, c := range p.calls {
		if l := calls[c.instr]; l != nil {
			letters = append(letters, l)
		}
	}
	return letters
}

func (p *program) sinkCount() int {
	n := 0
	for _, sinks := range p.sinks {
		n += len(sinks)
	}
	return n
}

// letterOf returns a message as a letter, nil if it has no attributes or no body.
func (p *program) letterOf(m *message) *letter {
	if m.shape.batch || !m.has(roleBody) {
		return nil
	}
	l := &letter{
		m: m, evidence: p.evidenceOf(m), contentBased: m.shape.sdk || p.contentBased(m), unless: p.dedupParameter(m), attributes: p.attributesOf(m),
	}
	if l.evidence == notFIFO && !p.namedByCaller(m) || len(l.attributes.known) == 0 && len(l.attributes.params) == 0 {
		return nil
	}
	roles := []role{roleBody}
	if m.shape.sdk {
		roles = append(roles, roleDedup) // which is a member of the body
	}
	for _, r := range roles {
		l.body = append(l.body, p.origins(m, r, true)...)
		for _, s := range m.all(r) {
			l.made = append(l.made, p.trace(s.value, nil, true).inOrder...)
		}
	}
	return l
}

// namedByCaller reports whether the queue is a parameter.
func (p *program) namedByCaller(m *message) bool {
	for _, o := range p.origins(m, roleURL, false) {
		if _, ok := o.root.(*ssa.Parameter); ok && o.kind == fromPath {
			return true
		}
	}
	return false
}

// letterAt returns a call as a letter, nil if the callee puts none of its arguments
// into attributes.
func (p *program) letterAt(c call) *letter {
	l := &letter{call: c.instr}
	until := []ssa.CallInstruction{c.instr}
	args := c.instr.Common().Args
	bodies := 0
	for _, s := range p.sinksOf(c.callee) {
		if s.Index >= len(args) {
			continue
		}
		arg := args[s.Index]
		switch s.Role {
		case roleAttributes:
			p.collectAttributes(&l.attributes, until, arg, s.Path, nil, 0)
		case roleAttribute:
			value := p.newTracer()
			value.inputs, value.until = true, until
			value.value(arg, place{path: s.Path})
			l.attributes.add(attribute{name: s.Field, value: value, fn: c.fn, pos: c.instr.Pos(), arg: argIndex(c, arg)})
		case roleBody:
			t := p.newTracer()
			t.inputs, t.until = true, until
			if s.Encoded {
				t.encoded(arg, place{path: s.Path})
			} else {
				t.value(arg, place{path: s.Path})
			}
			l.body = append(l.body, t.origins...)
			l.made = append(l.made, t.inOrder...)
			bodies++
			continue
		default:
			continue
		}
		u := p.argument(c, s)
		if u == nil {
			return nil
		}
		l.evidence, l.contentBased, l.unless = max(l.evidence, u.evidence), l.contentBased || u.contentBased, u.unless
	}
	if bodies == 0 || len(l.attributes.known) == 0 && len(l.attributes.params) == 0 {
		return nil
	}
	return l
}

// raiseAttributes records the parameters that become attributes.
func (p *program) raiseAttributes(l *letter) {
	sink := paramSink{
		Evidence: l.evidence, ContentBased: l.contentBased && (l.m == nil || l.m.forCallers(l.unless)), Unless: l.unless.param, UnlessPath: l.unless.path,
	}
	for _, o := range l.attributes.params {
		sink.Role, sink.Field = roleAttributes, "MessageAttributes"
		p.raiseOrigin(o, sink)
	}
	for _, a := range l.attributes.known {
		if l.carriage(a) != notKnown {
			continue // it is decided here
		}
		variable, _ := a.variable()
		for _, o := range variable {
			sink.Role, sink.Field = roleAttribute, a.name
			p.raiseOrigin(o, sink)
		}
	}
}

func (p *program) raiseOrigin(o origin, sink paramSink) {
	param, ok := o.root.(*ssa.Parameter)
	if !ok || o.kind != fromPath || !o.top || len(o.path) > maxSinkPath {
		return
	}
	fn := param.Parent()
	obj, ok := fn.Object().(*types.Func)
	if !ok || fn.Parent() != nil || p.exempt(fn) {
		return
	}
	sink.Index, sink.Path = slices.Index(fn.Params, param), o.path
	p.addSink(obj, sink)
}
