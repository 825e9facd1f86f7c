package fifovet

import (
	"fmt"
	"go/token"
	"go/types"
	"slices"

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
