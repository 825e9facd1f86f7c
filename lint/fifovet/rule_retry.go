package fifovet

import (
	"fmt"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// checkRetry is SF006: what tells the event apart is minted between two
// attempts to send it.
func (p *program) checkRetry(r *reporter, u *use) {
	if u.evidence == notFIFO || u.role != roleDedup && u.role != roleBody && u.role != roleEventID && u.role != roleTime {
		return
	}
	if u.role == roleBody && !u.contentBased {
		return
	}
	for _, o := range u.slice.origins {
		if o.kind != fromSource || o.seeded || !u.written(o) {
			continue
		}
		minted := o.at()
		if minted == nil || minted.Block() == nil {
			continue
		}
		for _, try := range p.attempts(u, minted) {
			loop, ok := p.retried(try, maxLift)
			if !ok {
				continue
			}
			f := finding{
				rule: remintedOnRetry, fn: minted.Parent(), pos: minted.Pos(), maybe: u.evidence == maybeFIFO, what: u.field, cause: p.causeOf(o),
				text: fmt.Sprintf("%s is called again for each attempt to send (%s): SQS cannot recognise the retry and stores the event twice; call it once, before the first attempt",
					o.text, u.field),
			}
			if loop.IsValid() && o.frame == nil && try.minted == minted {
				f.fix, f.loop = fixHoist, loop
			}
			r.report(f)
			return
		}
	}
}

// attempt is one try to send, in one function: where the value is minted, the call
// that sends, and what the message is made of.
type attempt struct {
	minted ssa.Instruction
	send   ssa.CallInstruction
	values []ssa.Value
}

// attempts returns where a use is sent: in its own function, or in those that get the
// message from it.
func (p *program) attempts(u *use, minted ssa.Instruction) []attempt {
	var tries []attempt
	for _, send := range p.sendsOf(u) {
		if send.Parent() == minted.Parent() {
			tries = append(tries, attempt{minted, send, messageValues(u)})
		}
	}
	if u.m == nil {
		return tries
	}
	for _, d := range u.m.derived {
		call, ok := d.root.(*ssa.Call)
		if e, isExtract := d.root.(*ssa.Extract); isExtract {
			call, ok = e.Tuple.(*ssa.Call)
		}
		if !ok || call.Common().StaticCallee() != minted.Parent() {
			continue
		}
		for _, send := range d.sendCalls() {
			if send.Parent() == call.Parent() {
				tries = append(tries, attempt{call, send, withoutContext(call.Common().Args)})
			}
		}
	}
	return tries
}

// sendsOf returns the calls that send what a use is part of.
func (p *program) sendsOf(u *use) []ssa.CallInstruction {
	if u.m != nil {
		return u.m.sendCalls()
	}
	if call, ok := u.instr.(ssa.CallInstruction); ok {
		return []ssa.CallInstruction{call}
	}
	return nil
}

// retried reports whether the send is tried again after a failure, with the
// source called in between: by a loop, a function that calls a literal again, the
// function itself, or one of its callers. The position is that of the loop, if it is
// one around the send itself.
func (p *program) retried(try attempt, lift int) (token.Pos, bool) {
	if loop := p.loopOf(try.minted.Block(), try.send); loop != nil && p.again(try.values, loop) {
		return loopPos(loop), true
	}
	fn := try.send.Parent()
	if p.retryBody(fn) || recurs(fn, try.send) {
		return token.NoPos, true
	}
	if lift == 0 || !p.returnsErrorOf(fn, try.send) {
		return token.NoPos, false
	}
	for _, c := range p.callers(fn) {
		if _, ok := p.retried(attempt{c, c, withoutContext(c.Common().Args)}, lift-1); ok {
			return token.NoPos, true
		}
	}
	return token.NoPos, false
}

// callers returns the calls of a function in this package.
func (p *program) callers(fn *ssa.Function) []ssa.CallInstruction {
	var calls []ssa.CallInstruction
	for _, c := range p.direct[fn] {
		if c.Parent() != fn {
			calls = append(calls, c)
		}
	}
	return calls
}

// returnsErrorOf reports whether a function hands on the error of a send.
func (p *program) returnsErrorOf(fn *ssa.Function, send ssa.CallInstruction) bool {
	call := send.Value()
	if call == nil {
		return false
	}
	for _, block := range fn.Blocks {
		ret, ok := last(block).(*ssa.Return)
		if !ok || len(ret.Results) == 0 {
			continue
		}
		err := ret.Results[len(ret.Results)-1]
		if isError(err.Type()) && (isErrorOf(err, send, 0) || p.trace(err, nil, true).visited[call]) {
			return true
		}
	}
	return false
}

func isError(t types.Type) bool {
	return types.Identical(t, types.Universe.Lookup("error").Type())
}

// recurs reports whether a function calls itself after a send failed, with the same
// arguments.
func recurs(fn *ssa.Function, send ssa.CallInstruction) bool {
	for _, block := range fn.Blocks {
		cond, ok := last(block).(*ssa.If)
		if !ok {
			continue
		}
		failed, _, ok := branches(cond, send)
		if !ok || len(failed.Preds) != 1 {
			continue
		}
		for _, b := range fn.Blocks {
			if !failed.Dominates(b) {
				continue
			}
			for _, instr := range b.Instrs {
				if c, ok := instr.(ssa.CallInstruction); ok && c.Common().StaticCallee() == fn && sameArguments(fn, c) {
					return true
				}
			}
		}
	}
	return false
}

// sameArguments reports whether a call of a function by itself is about the same
// message: one of its parameters is handed on as it is, and no part of one is.
func sameArguments(fn *ssa.Function, c ssa.CallInstruction) bool {
	same := false
	for i, arg := range c.Common().Args {
		switch {
		case i >= len(fn.Params) || i == 0 && fn.Signature.Recv() != nil || isContextType(arg.Type()):
		case arg == ssa.Value(fn.Params[i]) || holdsParameter(arg, fn.Params[i]):
			same = true
		default:
			if _, cut := arg.(*ssa.Slice); cut {
				return false
			}
		}
	}
	return same
}

// holdsParameter reports whether a value is read from the variable of a parameter.
func holdsParameter(v ssa.Value, param *ssa.Parameter) bool {
	load, ok := v.(*ssa.UnOp)
	if !ok {
		return false
	}
	cell, ok := load.X.(*ssa.Alloc)
	return ok && slices.ContainsFunc(referrers(cell), func(instr ssa.Instruction) bool {
		store, ok := instr.(*ssa.Store)
		return ok && store.Addr == cell && store.Val == ssa.Value(param)
	})
}

func withoutContext(args []ssa.Value) []ssa.Value {
	return slices.DeleteFunc(slices.Clone(args), func(v ssa.Value) bool { return isContextType(v.Type()) })
}

func isContextType(t types.Type) bool {
	return typeName(t) == "Context" && packagePath(t) == "context"
}

// retries reports whether a function is called, or belongs to a type or package
// that is called, after trying again.
func retries(obj *types.Func) bool {
	if hookName.MatchString(obj.Name()) {
		return false
	}
	name := short(obj)
	if obj.Pkg() != nil {
		path := majorVersion.ReplaceAllString(obj.Pkg().Path(), "")
		name = path[strings.LastIndexByte(path, '/')+1:] + strings.TrimPrefix(qualified(obj), obj.Pkg().Path())
	}
	return retryName.MatchString(name)
}

// retryBody reports whether a function is handed to another one that calls it
// again until it succeeds.
func (p *program) retryBody(fn *ssa.Function) bool {
	values := []ssa.Value{fn}
	for _, m := range p.closures[fn] {
		values = append(values, m)
	}
	for _, v := range values {
		for _, c := range p.calls {
			for i, arg := range c.instr.Common().Args {
				if (arg == v || isConversionOf(arg, v)) && p.callsAgain(c, i) {
					return true
				}
			}
		}
	}
	return false
}

// callsAgain reports whether a callee calls one of its arguments until it succeeds.
// Its name decides only where its body is not known.
func (p *program) callsAgain(c call, arg int) bool {
	if fn := staticBody(c.instr.Common()); fn != nil {
		if again, known := p.repeats(fn, arg, 0); known {
			return again
		}
	}
	var fact callsFact
	if c.callee.Pkg() != p.pass.Pkg && p.pass.ImportObjectFact(c.callee, &fact) {
		for _, known := range fact.Params {
			if known.Index == arg {
				return known.Again
			}
		}
	}
	return retries(c.callee)
}

// repeats reports whether a function calls one of its parameters again after it
// failed. It is known where the parameter is called and nothing else happens to it.
func (p *program) repeats(fn *ssa.Function, param, depth int) (again, known bool) {
	if param >= len(fn.Params) || !isFunc(fn.Params[param].Type()) || depth > maxForwards {
		return false, false
	}
	called := false
	for _, instr := range referrers(fn.Params[param]) {
		c, ok := instr.(ssa.CallInstruction)
		switch {
		case ok && c.Common().Value == ssa.Value(fn.Params[param]):
			called = true
			if tries(c) {
				return true, true
			}
		case ok:
			inner := staticBody(c.Common())
			i := slices.Index(c.Common().Args, ssa.Value(fn.Params[param]))
			if inner == nil || i < 0 {
				return false, false
			}
			innerAgain, innerKnown := p.repeats(inner, i, depth+1)
			if !innerKnown || innerAgain {
				return innerAgain, innerKnown
			}
			called = true
		default:
			return false, false
		}
	}
	return false, called
}

// tries reports whether a call is in a loop that is left once it succeeded and goes
// on when it failed.
func tries(c ssa.CallInstruction) bool {
	blocks := cycle(c.Block())
	for b := range blocks {
		cond, ok := last(b).(*ssa.If)
		if !ok {
			continue
		}
		if failed, succeeded, ok := branches(cond, c); ok && blocks[failed] && !blocks[succeeded] {
			return true
		}
	}
	return false
}

func isConversionOf(arg, v ssa.Value) bool {
	switch arg := arg.(type) {
	case *ssa.ChangeType:
		return arg.X == v
	case *ssa.MakeInterface:
		return arg.X == v
	}
	return false
}

// loop is a cycle of blocks that holds a send and is run again when it failed.
type loop struct {
	blocks    map[*ssa.BasicBlock]bool
	succeeded *ssa.BasicBlock // where the control goes after a success
}

// loopOf returns the loop in which both the source and the send stand and in
// which a failure of the send is followed by another round, nil if there is
// none.
func (p *program) loopOf(source *ssa.BasicBlock, send ssa.CallInstruction) *loop {
	blocks := cycle(send.Block())
	if !blocks[source] || !blocks[send.Block()] {
		return nil
	}
	for b := range blocks {
		cond, ok := last(b).(*ssa.If)
		if !ok {
			continue
		}
		if failed, succeeded, ok := branches(cond, send); ok && blocks[failed] {
			return &loop{blocks, succeeded}
		}
	}
	return nil
}

// again reports whether the next round of a loop is about the same message
// after a failure, and only then: a loop that goes on to the next message
// either way, or that sends a heartbeat, retries nothing.
func (p *program) again(values []ssa.Value, l *loop) bool {
	var slices []*tracer
	for _, v := range values {
		slices = append(slices, p.trace(v, nil, true))
	}
	for _, t := range slices {
		if l.renews(t) {
			return false
		}
	}
	if !l.blocks[l.succeeded] {
		return true
	}
	for _, t := range slices {
		if p.progress(t, l) {
			return true
		}
	}
	return false
}

func messageValues(u *use) []ssa.Value {
	if u.m == nil {
		if call, ok := u.instr.(ssa.CallInstruction); ok {
			return withoutContext(call.Common().Args)
		}
		return nil
	}
	var values []ssa.Value
	for _, r := range []role{roleBody, roleDedup, roleGroup} {
		for _, s := range u.m.sets[r] {
			values = append(values, s.value)
		}
	}
	return values
}

// renews reports whether a value comes from something that is another in each
// round: an element of a range, a receive, the result of a call.
func (l *loop) renews(t *tracer) bool {
	for v := range t.visited {
		switch v := v.(type) {
		case *ssa.IndexAddr:
			if l.moves(v.Index) {
				return true
			}
		case *ssa.Index:
			if l.moves(v.Index) {
				return true
			}
		case *ssa.Extract:
			if next, ok := v.Tuple.(*ssa.Next); ok && l.blocks[next.Block()] {
				return true
			}
		}
	}
	for _, o := range t.origins {
		if o.kind != fromPath && o.kind != fromUnknown {
			continue
		}
		if instr, ok := o.root.(ssa.Instruction); ok && l.blocks[instr.Block()] {
			switch instr.(type) {
			case *ssa.Call, *ssa.UnOp, *ssa.Extract:
				return true
			}
		}
	}
	return false
}

// progress reports whether a success moves on to the next message while a
// failure does not: the head of a buffer that is cut off only then.
func (p *program) progress(t *tracer, l *loop) bool {
	for v := range t.visited {
		if phi, ok := v.(*ssa.Phi); ok && l.blocks[phi.Block()] && slices.Contains(phi.Edges, ssa.Value(phi)) {
			return true
		}
	}
	if len(l.succeeded.Preds) > 1 {
		return false
	}
	for _, instr := range l.succeeded.Instrs {
		store, ok := instr.(*ssa.Store)
		if !ok {
			continue
		}
		for _, to := range p.trace(store.Addr, nil, false).origins {
			for _, from := range t.origins {
				if to.kind == fromPath && from.kind == fromPath && to.root == from.root && slices.Equal(to.path, from.path) {
					return true
				}
			}
		}
	}
	return false
}

// moves reports whether an index is another one in each round.
func (l *loop) moves(v ssa.Value) bool {
	for range maxUnwraps {
		switch x := v.(type) {
		case *ssa.Phi:
			return l.blocks[x.Block()] && !slices.Contains(x.Edges, v)
		case *ssa.BinOp:
			v = x.X
		case *ssa.Convert:
			v = x.X
		default:
			return false
		}
	}
	return false
}

// branches returns where an If leads after the send failed and after it
// succeeded, provided that it asks for the error of that send.
func branches(cond *ssa.If, send ssa.CallInstruction) (failed, succeeded *ssa.BasicBlock, ok bool) {
	if failed, succeeded, ok := asked(cond, send); ok {
		return failed, succeeded, true
	}
	cmp, ok := cond.Cond.(*ssa.BinOp)
	if !ok || cmp.Op != token.EQL && cmp.Op != token.NEQ {
		return nil, nil, false
	}
	if !isEmpty(cmp.Y) || !isErrorOf(cmp.X, send, 0) {
		return nil, nil, false
	}
	succs := cond.Block().Succs
	if cmp.Op == token.NEQ {
		return succs[0], succs[1], true
	}
	return succs[1], succs[0], true
}

// asked is branches for a condition that a function of the error decides, such as
// errors.Is: what it says yes to is a failure.
func asked(cond *ssa.If, send ssa.CallInstruction) (failed, other *ssa.BasicBlock, ok bool) {
	v, yes := cond.Cond, 0
	if not, ok := v.(*ssa.UnOp); ok && not.Op == token.NOT {
		v, yes = not.X, 1
	}
	c, ok := v.(*ssa.Call)
	if !ok || !slices.ContainsFunc(c.Call.Args, func(arg ssa.Value) bool { return isError(arg.Type()) && isErrorOf(arg, send, 0) }) {
		return nil, nil, false
	}
	succs := cond.Block().Succs
	return succs[yes], succs[1-yes], true
}

func isErrorOf(v ssa.Value, send ssa.CallInstruction, depth int) bool {
	if depth > maxErrorFlow {
		return false
	}
	switch v := v.(type) {
	case *ssa.Extract:
		return v.Tuple == send.Value()
	case *ssa.Call:
		return v == send.Value()
	case *ssa.Phi:
		return slices.ContainsFunc(v.Edges, func(e ssa.Value) bool { return isErrorOf(e, send, depth+1) })
	case *ssa.UnOp:
		cell, ok := v.X.(*ssa.Alloc)
		if !ok {
			return false
		}
		for _, instr := range referrers(cell) {
			if store, ok := instr.(*ssa.Store); ok && store.Addr == cell && isErrorOf(store.Val, send, depth+1) {
				return true
			}
		}
	}
	return false
}

// cycle returns the blocks on a way from b back to b, nil if there is none.
func cycle(b *ssa.BasicBlock) map[*ssa.BasicBlock]bool {
	ahead, behind := map[*ssa.BasicBlock]bool{}, map[*ssa.BasicBlock]bool{}
	spread(b, ahead, func(x *ssa.BasicBlock) []*ssa.BasicBlock { return x.Succs })
	spread(b, behind, func(x *ssa.BasicBlock) []*ssa.BasicBlock { return x.Preds })
	both := map[*ssa.BasicBlock]bool{}
	for x := range ahead {
		if behind[x] {
			both[x] = true
		}
	}
	return both
}

// spread marks everything that is reached from b by at least one step.
func spread(b *ssa.BasicBlock, seen map[*ssa.BasicBlock]bool, next func(*ssa.BasicBlock) []*ssa.BasicBlock) {
	for _, n := range next(b) {
		if !seen[n] {
			seen[n] = true
			spread(n, seen, next)
		}
	}
}

func last(b *ssa.BasicBlock) ssa.Instruction {
	if len(b.Instrs) == 0 {
		return nil
	}
	return b.Instrs[len(b.Instrs)-1]
}

func loopPos(l *loop) token.Pos {
	pos := token.NoPos
	for b := range l.blocks {
		for _, instr := range b.Instrs {
			if at := instr.Pos(); at.IsValid() && (!pos.IsValid() || at < pos) {
				pos = at
			}
		}
	}
	return pos
}
