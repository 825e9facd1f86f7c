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
	if u.role != roleDedup && u.role != roleBody && u.role != roleEventID && u.role != roleTime {
		return
	}
	if u.role == roleBody && !u.contentBased {
		return
	}
	for _, o := range u.slice.origins {
		if o.kind != fromSource || !u.written(o) {
			continue
		}
		minted, ok := o.root.(ssa.Instruction)
		if !ok || minted.Block() == nil {
			continue
		}
		for _, send := range p.sendsOf(u) {
			loop, ok := p.retried(u, minted, send)
			if !ok {
				continue
			}
			f := finding{
				rule: remintedOnRetry, fn: minted.Parent(), pos: o.pos,
				text: fmt.Sprintf("%s is called anew for each attempt to send (%s): SQS cannot recognise the retry and stores the event twice; call it once, before the first attempt",
					o.text, u.field),
			}
			if loop.IsValid() {
				f.fix, f.loop = fixHoist, loop
			}
			r.report(f)
			return
		}
	}
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
// source called in between. The position is that of the loop, if it is one.
func (p *program) retried(u *use, minted ssa.Instruction, send ssa.CallInstruction) (token.Pos, bool) {
	if fn := send.Parent(); fn == minted.Parent() {
		if loop := p.loopOf(minted.Block(), send); loop != nil && p.again(u, loop) {
			return loopPos(loop), true
		}
		return token.NoPos, p.retryBody(fn)
	}
	return token.NoPos, false
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

// retryBody reports whether a literal is handed to a function that calls it
// again until it succeeds.
func (p *program) retryBody(fn *ssa.Function) bool {
	if fn.Parent() == nil {
		return false
	}
	var values []ssa.Value
	for _, m := range p.closures[fn] {
		values = append(values, m)
	}
	values = append(values, fn)
	for _, v := range values {
		for _, c := range p.calls {
			for _, arg := range c.instr.Common().Args {
				if arg != v && !isConversionOf(arg, v) {
					continue
				}
				if retries(c.callee) {
					return true
				}
			}
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
func (p *program) again(u *use, l *loop) bool {
	var slices []*tracer
	for _, v := range messageValues(u) {
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
			return call.Common().Args
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
