package fifovet

import (
	"go/token"

	"golang.org/x/tools/go/ssa"
)

// ways looks for a way through a function from where a message is made to where it
// is sent. Conditions that are met twice have the same answer both times, so that
// two branches which exclude each other are not on one way.
type ways struct {
	p     *program
	m     *message
	role  role // the field that is not set on the way
	start *ssa.BasicBlock
	avoid map[*ssa.BasicBlock]bool
	need  map[*ssa.BasicBlock]bool // one of these is on the way; nil if none has to be
	end   map[*ssa.BasicBlock]bool

	steps int
	came  map[*ssa.BasicBlock]*ssa.BasicBlock // on the way so far: from where
}

// answer is what a condition was taken for.
type answer struct {
	cond  ssa.Value
	truth bool
}

// waysOf starts at the message's own function. It reports whether that is known.
func (p *program) waysOf(m *message) (*ways, bool) {
	w := &ways{
		p: p, m: m, avoid: map[*ssa.BasicBlock]bool{}, end: map[*ssa.BasicBlock]bool{}, came: map[*ssa.BasicBlock]*ssa.BasicBlock{},
	}
	fn := m.root.Parent()
	if fn == nil || len(fn.Blocks) == 0 {
		return nil, false
	}
	w.start = fn.Blocks[0]
	if made, ok := m.root.(ssa.Instruction); ok {
		w.start = made.Block()
	}
	for _, c := range m.sendCalls() {
		if c.Parent() == fn {
			w.end[c.Block()] = true
		}
	}
	if len(w.end) == 0 {
		for _, b := range fn.Blocks {
			if _, ok := last(b).(*ssa.Return); ok {
				w.end[b] = true
			}
		}
	}
	return w, true
}

func (w *ways) find() bool {
	return w.from(w.start, nil, false, nil)
}

func (w *ways) from(b, prev *ssa.BasicBlock, passed bool, answers []answer) bool {
	if _, again := w.came[b]; again || w.avoid[b] {
		return false
	}
	if w.steps++; w.steps > maxWays {
		return false
	}
	passed = passed || w.need == nil || w.need[b]
	if w.end[b] && passed {
		return true
	}
	w.came[b] = prev
	defer delete(w.came, b)
	cond, ok := last(b).(*ssa.If)
	if !ok {
		for _, next := range b.Succs {
			if w.from(next, b, passed, answers) {
				return true
			}
		}
		return false
	}
	truth, known := w.decide(cond.Cond, answers)
	for i, next := range b.Succs {
		if known && truth != (i == 0) {
			continue
		}
		if w.from(next, b, passed, append(answers[:len(answers):len(answers)], answer{cond.Cond, i == 0})) {
			return true
		}
	}
	return false
}

// decide returns what a condition is on the way so far, if that is known.
func (w *ways) decide(cond ssa.Value, answers []answer) (truth, known bool) {
	switch v := w.resolve(cond).(type) {
	case *ssa.Const:
		if v.Value != nil {
			return v.Value.ExactString() == "true", true
		}
	case *ssa.UnOp:
		if v.Op == token.NOT {
			truth, known = w.decide(v.X, answers)
			return !truth, known
		}
	case *ssa.BinOp:
		if v.Op != token.EQL && v.Op != token.NEQ {
			break
		}
		if isEmptyText(v.Y) {
			if empty, known := w.isEmpty(v.X); known {
				return empty == (v.Op == token.EQL), true
			}
		}
	}
	for _, a := range answers {
		if same, opposite := sameCondition(cond, a.cond); same {
			return a.truth, true
		} else if opposite {
			return !a.truth, true
		}
	}
	return false, false
}

func sameCondition(a, b ssa.Value) (same, opposite bool) {
	c := comparison{known: map[[2]ssa.Value]bool{}}
	if c.same(a, b) {
		return true, false
	}
	x, ok := a.(*ssa.BinOp)
	if !ok {
		return false, false
	}
	y, ok := b.(*ssa.BinOp)
	if !ok || !(x.Op == token.EQL && y.Op == token.NEQ || x.Op == token.NEQ && y.Op == token.EQL) {
		return false, false
	}
	return false, c.same(x.X, y.X) && c.same(x.Y, y.Y)
}

// resolve returns which of its values a variable has on the way so far.
func (w *ways) resolve(v ssa.Value) ssa.Value {
	for range maxUnwraps {
		phi, ok := v.(*ssa.Phi)
		if !ok {
			return v
		}
		prev, on := w.came[phi.Block()]
		at := -1
		for i, pred := range phi.Block().Preds {
			if on && pred == prev {
				at = i
			}
		}
		if at < 0 {
			return v
		}
		v = phi.Edges[at]
	}
	return v
}

// isEmpty decides whether a text or pointer is empty: the field that was not set so
// far is, and a default that was put in place of an empty one is not.
func (w *ways) isEmpty(v ssa.Value) (empty, known bool) {
	if load, ok := v.(*ssa.UnOp); ok && w.isField(load) {
		return true, true
	}
	if c, ok := v.(*ssa.Call); ok && len(c.Call.Args) == 1 {
		if callee := calleeOf(&c.Call); callee != nil && isPointerHelper(callee) {
			if load, ok := c.Call.Args[0].(*ssa.UnOp); ok && w.isField(load) {
				return true, true
			}
		}
	}
	switch is := w.resolve(v).(type) {
	case *ssa.Const:
		return isEmptyText(is), true
	case *ssa.Call, *ssa.BinOp:
		return false, is != v
	}
	return false, false
}

func (w *ways) isField(load *ssa.UnOp) bool {
	addr, ok := load.X.(*ssa.FieldAddr)
	return ok && w.role != roleNone && w.p.rootOf(addr.X, 0) == w.m.root && w.m.shape.fields[fieldName(addr.X.Type(), addr.Field)] == w.role
}
