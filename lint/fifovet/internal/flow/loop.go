package flow

import (
	"go/constant"
	"go/token"
	"maps"
	"slices"

	"golang.org/x/tools/go/ssa"
)

// loop describes a loop around a send. After a failure of the send, the loop runs another
// round.
type loop struct {
	blocks    map[*ssa.BasicBlock]bool
	succeeded *ssa.BasicBlock // the block that runs next after a successful send
}

// LoopOf looks for a loop that contains both the block and the send, and returns nil if
// there is none. The loop must start another round if the send fails.
func LoopOf(block *ssa.BasicBlock, send ssa.CallInstruction) *loop {
	blocks := Cycle(send.Block())
	if !blocks[block] || !blocks[send.Block()] {
		return nil
	}
	for _, b := range send.Parent().Blocks {
		if failed, succeeded, ok := Branches(b, send); ok && blocks[b] && blocks[failed] {
			return &loop{blocks, succeeded}
		}
	}
	return nil
}

// Again reports whether the loop l is a retry: it repeats a message until the send
// succeeds. The parameter `values` lists parts of the message, such as its ID.
//
// Two kinds of loops are not retries: a loop with a new message in each round, and a loop
// that repeats the message even after a success, such as a heartbeat.
func (p *Program) Again(values []ssa.Value, l *loop) bool {
	var slices []*Tracer
	for _, v := range values {
		slices = append(slices, p.Trace(v, nil, true))
	}
	for _, t := range slices {
		if Varies(t, l.blocks, false) {
			return false
		}
	}
	if !l.blocks[l.succeeded] {
		return true
	}
	for _, t := range slices {
		if p.advancesOnSuccess(t, l) {
			return true
		}
	}
	return false
}

// TakesNext reports whether the traced value contains an element of the range of a loop, or
// a value received in the loop. The parameter `blocks` has the blocks of the loop.
func TakesNext(t *Tracer, blocks map[*ssa.BasicBlock]bool) bool {
	for v := range t.Visited {
		switch v := v.(type) {
		case *ssa.IndexAddr:
			if indexChanges(v.Index, blocks) {
				return true
			}
		case *ssa.Extract:
			if next, ok := v.Tuple.(ssa.Instruction); ok && blocks[next.Block()] {
				switch next := next.(type) {
				case *ssa.Next, *ssa.Select:
					return true
				case *ssa.UnOp:
					return next.Op == token.ARROW
				}
			}
		case *ssa.UnOp:
			if v.Op == token.ARROW && blocks[v.Block()] {
				return true
			}
		case *ssa.Parameter:
			if blocks[v.Parent().Blocks[0]] { // the body of a range over an iterator
				return true
			}
		}
	}
	return false
}

// RepeatsAfterSuccess reports whether the loop around a send runs another round after the
// send succeeded.
func RepeatsAfterSuccess(send ssa.CallInstruction) bool {
	blocks := Cycle(send.Block())
	for b := range blocks {
		if _, succeeded, ok := Branches(b, send); ok && !blocks[succeeded] {
			return false
		}
	}
	return true
}

// BaseOf returns the value that an address belongs to, for example v for the addresses of
// v, v.f and v[i].
func BaseOf(addr ssa.Value) ssa.Value {
	for range MaxUnwraps {
		switch x := addr.(type) {
		case *ssa.FieldAddr:
			addr = x.X
		case *ssa.IndexAddr:
			addr = x.X
		default:
			return addr
		}
	}
	return addr
}

// Varies reports whether the traced value may be different in each round of a loop with
// these blocks. Examples are an element of a range, a value received from a channel, and the
// result of an unknown call inside the loop. With inCallees, the unknown call may also be
// in a function that the loop calls.
func Varies(t *Tracer, blocks map[*ssa.BasicBlock]bool, inCallees bool) bool {
	if TakesNext(t, blocks) {
		return true
	}
	for _, o := range t.Origins {
		if o.Kind != FromPath {
			continue
		}
		at, _ := o.Root.(ssa.Instruction)
		switch at.(type) {
		case *ssa.Call, *ssa.UnOp, *ssa.Extract:
			if inCallees {
				at = o.At()
			}
			if blocks[at.Block()] {
				return true
			}
		}
	}
	return false
}

// advancesOnSuccess reports whether the loop continues with the next message only after a
// successful send, for example by removing the first message of a buffer.
func (p *Program) advancesOnSuccess(t *Tracer, l *loop) bool {
	for v := range t.Visited {
		if phi, ok := v.(*ssa.Phi); ok && l.blocks[phi.Block()] && slices.Contains(phi.Edges, ssa.Value(phi)) {
			return true
		}
	}
	if len(l.succeeded.Preds) > 1 {
		return false
	}
	return slices.ContainsFunc(l.succeeded.Instrs, func(instr ssa.Instruction) bool {
		store, ok := instr.(*ssa.Store)
		return ok && slices.ContainsFunc(p.Trace(store.Addr, nil, false).Origins, func(to Origin) bool {
			return to.Kind == FromPath && slices.ContainsFunc(t.Origins, to.Same)
		})
	})
}

// indexChanges reports whether an index has a different value in each round of a loop.
func indexChanges(v ssa.Value, blocks map[*ssa.BasicBlock]bool) bool {
	for range MaxUnwraps {
		switch x := v.(type) {
		case *ssa.Phi:
			return blocks[x.Block()] && !slices.Contains(x.Edges, v)
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

// Branches returns the block that runs next if the send failed and the block that runs next
// if it succeeded. Unless the block b ends with a test of the send's error, the result `ok`
// is false. For a condition such as errors.Is(err, target), true counts as a failure of the
// send, and false counts as success.
func Branches(b *ssa.BasicBlock, send ssa.CallInstruction) (failed, succeeded *ssa.BasicBlock, ok bool) {
	cond, ok := Last(b).(*ssa.If)
	if !ok {
		return nil, nil, false
	}
	v, yes := cond.Cond, 0
	if not, ok := v.(*ssa.UnOp); ok {
		v, yes = not.X, 1
	}
	switch v := v.(type) {
	case *ssa.Call:
		ok = slices.ContainsFunc(v.Call.Args, func(arg ssa.Value) bool { return IsError(arg.Type()) && IsErrorOf(arg, send, 0) })
	case *ssa.BinOp:
		ok = (v.Op == token.EQL || v.Op == token.NEQ) && IsEmpty(v.Y) && IsErrorOf(v.X, send, 0)
		if v.Op == token.EQL {
			yes = 1 - yes
		}
	default:
		ok = false
	}
	return b.Succs[yes], b.Succs[1-yes], ok
}

func IsErrorOf(v ssa.Value, send ssa.CallInstruction, depth int) bool {
	if depth > maxErrorFlow {
		return false
	}
	switch v := v.(type) {
	case *ssa.Extract:
		return v.Tuple == send.Value()
	case *ssa.Call:
		return v == send.Value()
	case *ssa.Phi:
		return slices.ContainsFunc(v.Edges, func(e ssa.Value) bool { return IsErrorOf(e, send, depth+1) })
	case *ssa.UnOp:
		switch v.X.(type) {
		case *ssa.Alloc, *ssa.FreeVar:
			return slices.ContainsFunc(Stores(v.X), func(val ssa.Value) bool { return IsErrorOf(val, send, depth+1) })
		}
	}
	return false
}

// isRangeBody reports whether a function is the body of a range over an iterator. The
// iterator calls this function again if it returns true.
func isRangeBody(fn *ssa.Function) bool { return fn.Synthetic == "range-over-func yield" }

// succs returns the blocks that may run after b. At the end of the body of a range over an
// iterator, this is the begin of the body.
func succs(b *ssa.BasicBlock) []*ssa.BasicBlock {
	if ret, ok := Last(b).(*ssa.Return); ok && isRangeBody(b.Parent()) {
		if c, fixed := ret.Results[0].(*ssa.Const); !fixed || constant.BoolVal(c.Value) {
			return b.Parent().Blocks[:1]
		}
	}
	return b.Succs
}

func preds(b *ssa.BasicBlock) []*ssa.BasicBlock {
	if b.Index > 0 || !isRangeBody(b.Parent()) {
		return b.Preds
	}
	return slices.DeleteFunc(slices.Clone(b.Parent().Blocks), func(x *ssa.BasicBlock) bool { return !slices.Contains(succs(x), b) })
}

// Cycle returns the blocks on any path from b back to b, also through the rounds of a
// range over an iterator.
func Cycle(b *ssa.BasicBlock) map[*ssa.BasicBlock]bool {
	ahead, behind := map[*ssa.BasicBlock]bool{}, map[*ssa.BasicBlock]bool{}
	markReachable(b, ahead, succs)
	markReachable(b, behind, preds)
	maps.DeleteFunc(ahead, func(x *ssa.BasicBlock, _ bool) bool { return !behind[x] })
	return ahead
}

// markReachable adds to the map `seen` all blocks reachable from b in one or more steps.
// The function `neighbors` returns the blocks one step away from a block.
func markReachable(b *ssa.BasicBlock, seen map[*ssa.BasicBlock]bool, neighbors func(*ssa.BasicBlock) []*ssa.BasicBlock) {
	for _, n := range neighbors(b) {
		if !seen[n] {
			seen[n] = true
			markReachable(n, seen, neighbors)
		}
	}
}
