package message

import (
	"cmp"
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/flow"
)

// Use is a value in a message: the value of a field, or an argument that the called
// function puts into a message.
type Use struct {
	Role  Role
	Field string
	Fn    *ssa.Function
	Value ssa.Value
	Path  flow.AccessPath
	Pos   token.Pos
	Arg   int // number of Value among the arguments of a call, from 1; otherwise 0
	Instr ssa.Instruction

	M *Message // nil if Value is an argument

	// via is the called function, or nil if Value is not an argument or goes to a
	// function literal.
	via *types.Func

	Evidence     evidence
	Alone        bool // the field contains only Value and constants, as in "order-" + id
	ContentBased bool // the code may send the message without a deduplication ID
	dedup        dedupParam
	many         bool // several messages contain Value
	NoGroup      bool // Value is a queue URL, and messages to this queue have no group
	Payload      bool // Value is an event passed to a Producer of package sqsfifo
	encoded      bool // the called function encodes Value, an argument, as JSON

	Slice *flow.Tracer
}

// Key returns a comparable ID for the message of u. If two values in one function have
// equal keys, they belong to the same message.
func (u *Use) Key() any {
	if u.M != nil {
		return u.M.Root
	}
	return u.Instr
}

// Uses returns the values in the messages of this package, and traces each value back to
// its origins. It also records the parameters that become parts of messages.
func (p *Index) Uses(messages []*Message) []*Use {
	var queue []*Use
	for _, m := range messages {
		content, dedup := p.contentBased(m), p.dedupParameter(m)
		for r, sets := range m.Sets {
			if r == roleAttributes || r == roleEntries {
				continue
			}
			for _, s := range sets {
				queue = append(queue, &Use{
					Role: r, Field: s.field, Fn: s.Instr.Parent(), Value: s.Value, Pos: s.Pos, Instr: s.Instr, M: m,
					Evidence: p.evidenceFor(m, r), Alone: true, ContentBased: content, dedup: dedup, many: p.repeated(m), NoGroup: r == RoleURL && p.groupless(m, messages),
				})
			}
		}
	}
	rank := func(u *Use) int { // URLs come first, because they show whether the queue is FIFO
		if u.Role == RoleURL {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(queue, func(a, b *Use) int { return cmp.Or(rank(a)-rank(b), cmp.Compare(a.Pos, b.Pos)) })
	for _, c := range p.Calls {
		queue = append(queue, p.usesOfArguments(c)...)
	}
	for i := 0; i < len(queue); i++ {
		u := queue[i]
		u.Slice = p.TraceUntil(u.SendCalls(), u.Value, u.Path, false)
		queue = append(queue, p.recordParameters(u)...)
	}
	return queue
}

// groupless reports whether a message has no group ID. For a batch, every known entry
// must lack a group ID.
func (p *Index) groupless(m *Message, messages []*Message) bool {
	if m.Shape.Sdk {
		return false
	}
	if !m.Shape.Batch {
		return len(m.batches) == 0 && m.Absent(RoleGroup)
	}
	found := false
	for _, entry := range messages {
		if slices.Contains(entry.batches, m) {
			if !entry.Absent(RoleGroup) {
				return false
			}
			found = true
		}
	}
	return found
}

// Queue returns the kind and the name of a queue. The value of u must be the URL of the
// queue.
func (p *Index) Queue(u *Use) (queueName, string) {
	return p.kindAndName(u.Slice.Origins)
}

// dedupParam identifies the function parameter with the deduplication ID of a message.
// Param is the parameter's index plus 1, or 0 if there is no such parameter. Path selects
// the part of the parameter with the ID.
type dedupParam struct {
	Param int
	Path  flow.AccessPath
}

// dedupParameter returns the parameter whose unchanged value becomes the deduplication ID
// of the message. It returns the zero value if there is no such parameter, or if the code
// sets the ID in several places.
func (p *Index) dedupParameter(m *Message) dedupParam {
	sets := m.Sets[RoleDedup]
	if len(sets) != 1 || len(m.All(RoleDedup)) != 1 {
		return dedupParam{}
	}
	return ParameterOf(p.Trace(sets[0].Value, nil, false).Origins)
}

// ParameterOf returns the parameter from which a value comes unchanged, given the value's
// origins. For any other value it returns the zero value.
func ParameterOf(origins []flow.Origin) dedupParam {
	if len(origins) != 1 || origins[0].Kind != flow.FromPath || origins[0].Mixed || !origins[0].Top || len(origins[0].Path) > maxSinkPath {
		return dedupParam{}
	}
	param, ok := origins[0].Root.(*ssa.Parameter)
	if !ok {
		return dedupParam{}
	}
	return dedupParam{1 + slices.Index(param.Parent().Params, param), origins[0].Path}
}

// concernsCallers reports whether the rules must also check callers for a missing
// deduplication ID: either the callers choose the ID, or no code sets an ID.
func (m *Message) concernsCallers(dedup dedupParam) bool {
	return dedup.Param > 0 || !slices.ContainsFunc(m.All(RoleDedup), func(s Set) bool { return !IsEmptyText(s.Value) })
}

// repeated reports whether a message is made or sent in a loop. A value computed before
// the loop is then the same in several messages.
func (p *Index) repeated(m *Message) bool {
	made, ok := m.Root.(ssa.Instruction)
	if ok && made.Block() != nil && flow.Cycle(made.Block())[made.Block()] {
		return true
	}
	return slices.ContainsFunc(m.SendCalls(), func(c ssa.CallInstruction) bool { return flow.Cycle(c.Block())[c.Block()] })
}

// usesOfArguments handles calls of functions in other packages. It returns a Use for each
// argument that becomes part of a message, such as event in producer.Send(ctx, event).
func (p *Index) usesOfArguments(c flow.Call) []*Use {
	if event, ok := payloadOf(c); ok {
		return []*Use{{
			Role: RoleBody, Field: "payload", Fn: c.Fn, Value: event, Pos: c.Instr.Pos(), Arg: argIndex(c, event), Instr: c.Instr, via: c.Callee,
			Evidence: SurelyFIFO, Alone: true, ContentBased: true, Payload: true, encoded: true,
		}}
	}
	if c.Callee == nil || c.Callee.Pkg() == p.Pass.Pkg {
		return nil
	}
	var uses []*Use
	for _, s := range p.SinksOf(c.Callee) {
		if u := p.argument(c, s); u != nil {
			uses = append(uses, u)
		}
	}
	return uses
}

func (p *Index) argument(c flow.Call, s paramSink) *Use {
	args := flow.Args(c.Instr.Common())
	if s.Index >= len(args) {
		return nil
	}
	e := p.evidenceAt(c, s)
	if e == NotFIFO && s.Role != RoleURL {
		return nil
	}
	arg := args[s.Index]
	u := &Use{
		Role: s.Role, Field: s.Field, Fn: c.Fn, Value: arg, Path: s.Path, Pos: c.Instr.Pos(), Arg: argIndex(c, arg), Instr: c.Instr, via: c.Callee,
		Evidence: e, Alone: s.Alone, ContentBased: s.ContentBased, many: s.Many, encoded: s.Encoded, NoGroup: s.NoGroup,
	}
	// The call passes a deduplication ID. An empty ID means that the message has no ID.
	if s.Unless.Param > 0 && s.Unless.Param <= len(args) {
		dedup := args[s.Unless.Param-1]
		origins := p.Trace(dedup, s.Unless.Path, false).Origins
		u.ContentBased = isAlwaysEmpty(origins) || len(s.Unless.Path) == 0 && p.nilable(dedup, nil)
		u.dedup = ParameterOf(origins)
	}
	return u
}

func isAlwaysEmpty(origins []flow.Origin) bool {
	return len(origins) > 0 && !slices.ContainsFunc(origins, func(o flow.Origin) bool { return o.Kind != flow.FromConst || o.Text != "" || o.Mixed })
}

// evidenceAt reports whether the call c sends its message to a FIFO queue: certainly,
// maybe or not. If c passes the URL of a queue with a known name, such as orders.fifo,
// the name decides. Otherwise the code of the called function decides (s.Evidence).
func (p *Index) evidenceAt(c flow.Call, s paramSink) evidence {
	args := flow.Args(c.Instr.Common())
	for _, url := range p.sinksAt(c) {
		if url.Role != RoleURL || url.Index >= len(args) {
			continue
		}
		name, _ := p.Queue(&Use{Value: args[url.Index], Path: url.Path, Alone: url.Alone, Slice: p.Trace(args[url.Index], url.Path, false)})
		switch name {
		case FifoName:
			return SurelyFIFO
		case StandardName:
			return NotFIFO
		}
	}
	return s.Evidence
}

// argIndex returns the number of an argument in the call's parentheses, from 1. For the
// receiver of a method it returns 0.
func argIndex(c flow.Call, arg ssa.Value) int {
	i := slices.Index(flow.Args(c.Instr.Common()), arg)
	if c.Callee == nil || c.Callee.Signature().Recv() == nil {
		i++
	}
	return i
}

// recordParameters handles a value u that comes from function parameters, so callers
// choose the value. It records the parameters, and returns a Use for each argument that
// calls in this package pass for them.
func (p *Index) recordParameters(u *Use) []*Use {
	var more []*Use
	for _, o := range u.Slice.Origins {
		fn, s, recorded := p.recordSink(o, paramSink{
			Role: u.Role, Field: u.Field, Evidence: u.Evidence,
			Alone: u.Alone && isOnlyFrom(u.Slice.Origins, o), ContentBased: u.ContentBased && (u.M == nil || u.M.concernsCallers(u.dedup)),
			Unless: u.dedup, NoGroup: u.NoGroup,
			Many: u.many || u.Instr != nil && flow.Cycle(u.Instr.Block())[u.Instr.Block()], Encoded: u.encoded || o.Encoded != nil,
		})
		if !recorded {
			continue
		}
		for _, c := range p.Calls {
			if c.Body == fn || c.Callee != nil && target(fn) == any(c.Callee) {
				if arg := p.argument(c, s); arg != nil {
					more = append(more, arg)
				}
			}
		}
	}
	return more
}

// isOnlyFrom reports whether a value has no origins except constants and a part of a
// parameter.
func isOnlyFrom(origins []flow.Origin, part flow.Origin) bool {
	return !slices.ContainsFunc(origins, func(o flow.Origin) bool {
		return o.Kind != flow.FromConst && (o.Root != part.Root || o.Kind == flow.FromPath && !o.Same(part))
	})
}

// payloadOf returns the event passed by a call to a producer of package sqsfifo.
func payloadOf(c flow.Call) (ssa.Value, bool) {
	if c.Callee == nil {
		return nil, false
	}
	recv := c.Callee.Signature().Recv()
	if recv == nil || c.Callee.Pkg() == nil || c.Callee.Pkg().Path() != flow.SDKPath || flow.TypeName(recv.Type()) != "Producer" {
		return nil, false
	}
	i := 2
	switch c.Callee.Name() {
	case "Build":
		i = 1
	case "Send", "SendBatch", "SendAsync", "TrySend":
	default:
		return nil, false
	}
	if args := flow.Args(c.Instr.Common()); i < len(args) {
		return args[i], true
	}
	return nil, false
}

// Written reports whether the data from the origin o reaches the message. If the called
// function encodes the value as JSON, the encoder may omit this data, for example an
// unexported field.
func (u *Use) Written(o flow.Origin) bool {
	if !u.encoded {
		return true
	}
	return flow.JSONVisible(flow.TypeAt(flow.EncodedType(u.Value), u.Path), o.Under)
}

// SentInRange reports whether o is a range loop over a map, and u is a value in a message
// made inside the loop: a separate message for each map entry.
func SentInRange(u *Use, o flow.Origin) bool {
	r, ok := o.Root.(*ssa.Range)
	if !ok || u.Instr == nil {
		return false
	}
	for _, instr := range flow.Referrers(r) {
		if next, ok := instr.(*ssa.Next); ok && flow.Cycle(next.Block())[u.Instr.Block()] {
			return true
		}
	}
	return false
}

// Name returns the field's name, for the text of a finding. If the value is an argument
// of a call, Name appends the called function, as in "MessageBody (through queue.Send)".
func (u *Use) Name() string {
	if u.via == nil || u.Payload {
		return u.Field
	}
	return u.Field + " (through " + flow.Short(u.via) + ")"
}

// Shared reports whether several messages contain the same clock reading or random value.
// For example, the code may read the clock once before a loop. A value made once in each
// process, such as a seed, is also shared. The parameter o is the origin of the value.
func (u *Use) Shared(o flow.Origin) bool {
	at := o.At()
	// The value comes, for example, from a package-level variable. All messages share it.
	if at == nil || at.Block() == nil {
		return true
	}
	if u.M == nil {
		if u.many {
			return true
		}
		in := flow.Cycle(u.Instr.Block())
		return in[u.Instr.Block()] && at.Parent() == u.Instr.Parent() && !in[at.Block()]
	}
	if !u.many {
		// A value computed outside of a function literal is the same in each call.
		return at.Parent() != u.Fn && o.Frame == nil && !flow.Encloses(u.Fn, at.Parent())
	}
	made, ok := u.M.Root.(ssa.Instruction)
	if !ok || at.Parent() != made.Parent() {
		return at.Parent() != u.Fn
	}
	block := made.Block()
	if !flow.Cycle(block)[block] {
		for _, c := range u.M.SendCalls() {
			if c.Parent() == at.Parent() && flow.Cycle(c.Block())[c.Block()] {
				block = c.Block()
			}
		}
	}
	return !flow.Cycle(block)[at.Block()]
}

// SendCalls returns the calls that send the message of u.
func (u *Use) SendCalls() []ssa.CallInstruction {
	if u.M != nil {
		return u.M.SendCalls()
	}
	if call, ok := u.Instr.(ssa.CallInstruction); ok {
		return []ssa.CallInstruction{call}
	}
	return nil
}
