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

	alone        bool // nothing but constants is added on the way
	contentBased bool // for a body: nothing else tells the message apart
	payload      bool // for a body: the event that one of our producers encodes
	encoded      bool // it is encoded as JSON later

	slice *tracer
}

// uses returns every value that becomes part of a message in this package,
// each with its backward slice, and records on the way which parameters do.
func (p *program) uses(messages []*message) []*use {
	var queue []*use
	for _, m := range messages {
		content := !m.shape.sdk && p.fifo(m) && m.absent(roleDedup)
		for r, sets := range m.sets {
			if r == roleAttributes || r == roleEntries {
				continue
			}
			for _, s := range sets {
				queue = append(queue, &use{
					role: r, field: s.field, fn: p.within(s.instr, m.fn), value: s.value, pos: s.pos, instr: s.instr, m: m, alone: true, contentBased: content,
				})
			}
		}
	}
	slices.SortStableFunc(queue, func(a, b *use) int { return int(a.pos) - int(b.pos) })
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
			alone: true, contentBased: true, payload: true, encoded: true,
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
	arg := args[s.Index]
	return &use{
		role: role(s.Role), field: s.Field, fn: c.fn, value: arg, path: s.Path, pos: c.instr.Pos(), arg: argIndex(c, arg), instr: c.instr, via: c.callee,
		alone: s.Alone, contentBased: s.ContentBased, encoded: s.Encoded,
	}
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
			Index: slices.Index(fn.Params, param), Path: o.path, Role: string(u.role), Field: u.field,
			Alone: u.alone && only(u.slice.origins, param), ContentBased: u.contentBased, Encoded: u.encoded || o.encoded != nil,
		}
		known := p.sinks[obj]
		if len(known) >= maxSinks || slices.ContainsFunc(known, s.same) {
			continue
		}
		p.sinks[obj] = append(known, s)
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
