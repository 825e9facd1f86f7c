package fifovet

import (
	"go/token"
	"slices"

	"golang.org/x/tools/go/ssa"
)

// ways looks for a way through a function past where a message is made to where it is
// sent. Conditions that are met twice have the same answer both times, so that
// two branches which exclude each other are not on one way.
type ways struct {
	p     *program
	m     *message
	role  role // the field that is not set on the way
	start *ssa.BasicBlock
	made  *ssa.BasicBlock // where the message is
	avoid map[*ssa.BasicBlock]bool
	need  map[*ssa.BasicBlock]bool // one of these is on the way; nil if none has to be
	end   map[*ssa.BasicBlock]bool

	steps int
	on    map[stage]bool
	came  map[*ssa.BasicBlock]*ssa.BasicBlock // on the way so far: from where
}

// stage is a block, before or after the message is made.
type stage struct {
	block *ssa.BasicBlock
	made  bool
}

// answer is what a condition was taken for.
type answer struct {
	cond  ssa.Value
	truth bool
}

// waysOf starts at the message's own function. It reports whether that is known.
func (p *program) waysOf(m *message) (*ways, bool) {
	w := &ways{
		p: p, m: m, avoid: map[*ssa.BasicBlock]bool{}, end: map[*ssa.BasicBlock]bool{},
		on: map[stage]bool{}, came: map[*ssa.BasicBlock]*ssa.BasicBlock{},
	}
	fn := m.root.Parent()
	if fn == nil || len(fn.Blocks) == 0 {
		return nil, false
	}
	w.start, w.made = fn.Blocks[0], fn.Blocks[0]
	if made, ok := m.root.(ssa.Instruction); ok {
		w.made = made.Block()
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
	return w.from(w.start, nil, false, false, nil)
}

// from goes on at a block. Each block is on a way at most twice: before and after the
// message is made, which may be in a loop.
func (w *ways) from(b, prev *ssa.BasicBlock, made, passed bool, answers []answer) bool {
	made = made || b == w.made
	passed = passed || w.need == nil || w.need[b]
	at := stage{b, made}
	if w.on[at] || w.avoid[b] {
		return false
	}
	if w.steps++; w.steps > maxWays {
		return false
	}
	if w.end[b] && passed && made {
		return true
	}
	w.on[at] = true
	was, again := w.came[b]
	if again { // in a loop, what is computed here may be something else this time
		answers = slices.DeleteFunc(slices.Clone(answers), func(a answer) bool {
			instr, ok := a.cond.(ssa.Instruction)
			return ok && instr.Block() == b
		})
	}
	w.came[b] = prev
	defer func() {
		delete(w.on, at)
		if delete(w.came, b); again {
			w.came[b] = was
		}
	}()
	cond, ok := last(b).(*ssa.If)
	if !ok {
		for _, next := range b.Succs {
			if w.from(next, b, made, passed, answers) {
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
		if w.from(next, b, made, passed, append(answers[:len(answers):len(answers)], answer{cond.Cond, i == 0})) {
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
			if empty, known := w.isEmpty(v.X, answers); known {
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
func (w *ways) isEmpty(v ssa.Value, answers []answer) (empty, known bool) {
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
	for _, a := range answers {
		cond, ok := a.cond.(*ssa.BinOp)
		if !ok || cond.Op != token.EQL && cond.Op != token.NEQ || !isEmptyText(cond.Y) || w.resolve(cond.X) != w.resolve(v) {
			continue
		}
		return a.truth == (cond.Op == token.EQL), true
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
