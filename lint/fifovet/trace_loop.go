package fifovet

import (
	"go/token"
	"slices"

	"golang.org/x/tools/go/ssa"
)

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
