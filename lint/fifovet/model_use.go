package fifovet

import (
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/ssa"
)

// use is a value that becomes part of a message: a field of one, or an argument
// of a function that puts it into one.
type use struct {
	role  role
	field string
	fn    *ssa.Function
	value ssa.Value
	path  accessPath
	pos   token.Pos
	arg   int // with the position of a call: which argument, from 1
	instr ssa.Instruction

	m   *message    // nil for arguments
	via *types.Func // the function that takes the argument, nil for fields

	evidence     evidence
	alone        bool // nothing but constants is added on the way
	contentBased bool // for a body: nothing else tells the message apart
	unless       given
	many         bool // the value is for several messages
	payload      bool // for a body: the event that one of our producers encodes
	encoded      bool // it is encoded as JSON later

	slice *tracer
}

// key is the same for all that becomes part of one message in this function.
func (u *use) key() any {
	if u.m != nil {
		return u.m.root
	}
	return u.instr
}

// uses returns every value that becomes part of a message in this package,
// each with its backward slice, and records on the way which parameters do.
func (p *program) uses(messages []*message) []*use {
	var queue []*use
	for _, m := range messages {
		content, unless := p.contentBased(m), p.dedupParameter(m)
		for r, sets := range m.sets {
			if r == roleAttributes || r == roleEntries {
				continue
			}
			for _, s := range sets {
				queue = append(queue, &use{
					role: r, field: s.field, fn: p.within(s.instr, m.fn), value: s.value, pos: s.pos, instr: s.instr, m: m,
					evidence: p.evidenceFor(m, r), alone: true, contentBased: content, unless: unless, many: p.repeated(m),
				})
			}
		}
	}
	slices.SortStableFunc(queue, func(a, b *use) int {
		if a.role != b.role && (a.role == roleURL || b.role == roleURL) {
			return rank(a.role) - rank(b.role) // what a caller says of the queue is known before the rest
		}
		return int(a.pos) - int(b.pos)
	})
	for _, c := range p.calls {
		queue = append(queue, p.arguments(c)...)
	}
	for i := 0; i < len(queue); i++ {
		u := queue[i]
		u.slice = p.traceUntil(p.sendsOf(u), u.value, u.path, false)
		queue = append(queue, p.raise(u)...)
	}
	return queue
}

func rank(r role) int {
	if r == roleURL {
		return 0
	}
	return 1
}

// given is a parameter, or a part of one, that is a deduplication ID: 1 + its index, 0
// if there is none. A caller that leaves it empty has a message without an ID.
type given struct {
	param int
	path  accessPath
}

// dedupParameter returns the parameter that is the deduplication ID of a message, as
// it is.
func (p *program) dedupParameter(m *message) given {
	sets := m.sets[roleDedup]
	if len(sets) != 1 || len(m.all(roleDedup)) != 1 {
		return given{}
	}
	return parameterOf(p.trace(sets[0].value, nil, false).origins)
}

// parameterOf returns the parameter that a value is.
func parameterOf(origins []origin) given {
	if len(origins) != 1 || origins[0].kind != fromPath || origins[0].mixed || !origins[0].top || len(origins[0].path) > maxSinkPath {
		return given{}
	}
	param, ok := origins[0].root.(*ssa.Parameter)
	if !ok {
		return given{}
	}
	return given{1 + slices.Index(param.Parent().Params, param), origins[0].path}
}

// forCallers reports whether a message is without a deduplication ID for the callers
// of its function, too: an ID that comes about in another way than from one parameter
// may be theirs.
func (m *message) forCallers(unless given) bool {
	return unless.param > 0 || !slices.ContainsFunc(m.all(roleDedup), func(s set) bool { return !isEmptyText(s.value) })
}

// repeated reports whether a message is made again and again in its function, so
// that what comes from outside of the loop is for several messages.
func (p *program) repeated(m *message) bool {
	made, ok := m.root.(ssa.Instruction)
	if ok && made.Block() != nil && cycle(made.Block())[made.Block()] {
		return true
	}
	return slices.ContainsFunc(m.sendCalls(), func(c ssa.CallInstruction) bool { return cycle(c.Block())[c.Block()] })
}

func (p *program) within(instr ssa.Instruction, fn *ssa.Function) *ssa.Function {
	if instr != nil && instr.Parent() != nil {
		return instr.Parent()
	}
	return fn
}

// arguments returns the uses that a call of a function of another package makes
// of its arguments.
func (p *program) arguments(c call) []*use {
	if event, ok := payloadOf(c); ok {
		return []*use{{
			role: roleBody, field: "payload", fn: c.fn, value: event, pos: c.instr.Pos(), arg: argIndex(c, event), instr: c.instr, via: c.callee,
			evidence: surelyFIFO, alone: true, contentBased: true, payload: true, encoded: true,
		}}
	}
	if c.callee.Pkg() == p.pass.Pkg {
		return nil
	}
	var uses []*use
	for _, s := range p.sinksOf(c.callee) {
		if u := p.argument(c, s); u != nil {
			uses = append(uses, u)
		}
	}
	return uses
}

func (p *program) argument(c call, s paramSink) *use {
	args := c.instr.Common().Args
	if s.Index >= len(args) {
		return nil
	}
	e := p.evidenceAt(c, s)
	if e == notFIFO && s.Role != roleURL {
		return nil
	}
	arg := args[s.Index]
	u := &use{
		role: s.Role, field: s.Field, fn: c.fn, value: arg, path: s.Path, pos: c.instr.Pos(), arg: argIndex(c, arg), instr: c.instr, via: c.callee,
		evidence: e, alone: s.Alone, contentBased: s.ContentBased, many: s.Many, encoded: s.Encoded,
	}
	if s.Unless > 0 && s.Unless <= len(args) {
		dedup := args[s.Unless-1]
		origins := p.trace(dedup, s.UnlessPath, false).origins
		u.contentBased = leftEmpty(origins) || len(s.UnlessPath) == 0 && p.nilable(dedup, nil)
		u.unless = parameterOf(origins)
	}
	return u
}

// leftEmpty reports whether a value is surely empty.
func leftEmpty(origins []origin) bool {
	return len(origins) > 0 && !slices.ContainsFunc(origins, func(o origin) bool { return o.kind != fromConst || o.text != "" || o.mixed })
}

// evidenceAt is what a call says of the queue: what the callee knows, unless the
// queue's name is one of the arguments.
func (p *program) evidenceAt(c call, s paramSink) evidence {
	args := c.instr.Common().Args
	for _, url := range p.sinksOf(c.callee) {
		if url.Role != roleURL || url.Index >= len(args) {
			continue
		}
		switch name, _ := nameIn(p.trace(args[url.Index], url.Path, false).origins); name {
		case fifoName:
			return surelyFIFO
		case standardName:
			return notFIFO
		}
	}
	return s.Evidence
}

// argIndex is the argument's number in the source, where a method's receiver
// does not count; 0 is the receiver.
func argIndex(c call, arg ssa.Value) int {
	i := slices.Index(c.instr.Common().Args, arg)
	if c.callee.Signature().Recv() == nil {
		i++
	}
	return i
}

// raise records the parameters that reach a use, and returns the uses that the
// calls in this package make of them.
func (p *program) raise(u *use) []*use {
	var more []*use
	for _, o := range u.slice.origins {
		param, ok := o.root.(*ssa.Parameter)
		if !ok || o.kind != fromPath || !o.top || len(o.path) > maxSinkPath {
			continue
		}
		fn := param.Parent()
		obj, ok := fn.Object().(*types.Func)
		if !ok || fn.Parent() != nil || p.exempt(fn) {
			continue
		}
		s := paramSink{
			Index: slices.Index(fn.Params, param), Path: o.path, Role: u.role, Field: u.field, Evidence: u.evidence,
			Alone: u.alone && only(u.slice.origins, param), ContentBased: u.contentBased && (u.m == nil || u.m.forCallers(u.unless)),
			Unless: u.unless.param, UnlessPath: u.unless.path,
			Many: u.many || u.instr != nil && cycle(u.instr.Block())[u.instr.Block()], Encoded: u.encoded || o.encoded != nil,
		}
		if !p.addSink(obj, s) {
			continue
		}
		for _, c := range p.calls {
			if c.callee == obj {
				if arg := p.argument(c, s); arg != nil {
					more = append(more, arg)
				}
			}
		}
	}
	return more
}

// addSink records one argument of a function and reports whether it is new.
func (p *program) addSink(obj *types.Func, s paramSink) bool {
	known := p.sinks[obj]
	if len(known) >= maxSinks || slices.ContainsFunc(known, s.same) {
		return false
	}
	p.sinks[obj] = append(known, s)
	return true
}

// only reports whether a value is made of one parameter and constants.
func only(origins []origin, param *ssa.Parameter) bool {
	for _, o := range origins {
		if o.kind != fromConst && o.root != param {
			return false
		}
	}
	return true
}

// payloadOf returns the event that a call hands to one of our producers.
func payloadOf(c call) (ssa.Value, bool) {
	recv := c.callee.Signature().Recv()
	if recv == nil || c.callee.Pkg() == nil || c.callee.Pkg().Path() != sdkPath || typeName(recv.Type()) != "Producer" {
		return nil, false
	}
	args := c.instr.Common().Args
	switch c.callee.Name() {
	case "Build":
		return at(args, 1)
	case "Send", "SendBatch", "SendAsync", "TrySend":
		return at(args, 2)
	}
	return nil, false
}

func at(args []ssa.Value, i int) (ssa.Value, bool) {
	if i >= len(args) {
		return nil, false
	}
	return args[i], true
}
