package message

import (
	"go/token"
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/flow"
)

// pathSearch searches a function for a path of basic blocks from the creation of a
// message to its send. A path never takes opposite branches of the same condition.
type pathSearch struct {
	p *Index
	m *Message

	// The path must not set a field with this role, such as RoleDedup.
	unsetRole Role

	start    *ssa.BasicBlock
	made     *ssa.BasicBlock          // block with the creation of the message
	excluded map[*ssa.BasicBlock]bool // blocks forbidden on the path
	end      map[*ssa.BasicBlock]bool // possible last blocks of the path

	// The path must contain at least one of the required blocks. If required is nil,
	// every path is permitted.
	required map[*ssa.BasicBlock]bool

	steps  int
	onPath map[stage]bool

	// previous maps each block of the current path to the preceding block.
	previous map[*ssa.BasicBlock]*ssa.BasicBlock
}

// stage is a block of a path. The field `made` is true if the path has made the message, in
// this block or earlier. A path through a loop may contain a block twice, once before and
// once after it makes the message.
type stage struct {
	block *ssa.BasicBlock
	made  bool
}

// assumption is one branch on a path. The field `truth` is the result of the condition cond.
type assumption struct {
	cond  ssa.Value
	truth bool
}

// newPathSearch prepares a search in the function that makes the message. It returns
// false if the code of the function is unknown.
func (p *Index) newPathSearch(m *Message) (*pathSearch, bool) {
	w := &pathSearch{
		p: p, m: m, excluded: map[*ssa.BasicBlock]bool{}, end: map[*ssa.BasicBlock]bool{},
		onPath: map[stage]bool{}, previous: map[*ssa.BasicBlock]*ssa.BasicBlock{},
	}
	fn := m.Root.Parent()
	if fn == nil || len(fn.Blocks) == 0 {
		return nil, false
	}
	w.start, w.made = fn.Blocks[0], fn.Blocks[0]
	if made, ok := m.Root.(ssa.Instruction); ok {
		w.made = made.Block()
	}
	for _, c := range m.SendCalls() {
		if c.Parent() == fn {
			w.end[c.Block()] = true
		}
	}
	if len(w.end) == 0 {
		for _, b := range fn.Blocks {
			if _, ok := flow.Last(b).(*ssa.Return); ok {
				w.end[b] = true
			}
		}
	}
	return w, true
}

func (w *pathSearch) find() bool {
	return w.searchFrom(w.start, nil, false, false, nil)
}

// searchFrom reports whether a path that continues at the block b can reach the send. The
// parameter `made` is true if the path has already made the message. The parameter `passed`
// is true if the path already contains one of the blocks in w.required.
func (w *pathSearch) searchFrom(b, prev *ssa.BasicBlock, made, passed bool, assumed []assumption) bool {
	made = made || b == w.made
	passed = passed || w.required == nil || w.required[b]
	at := stage{b, made}
	if w.onPath[at] || w.excluded[b] {
		return false
	}
	if w.steps++; w.steps > maxPathBlocks {
		return false
	}
	if w.end[b] && passed && made {
		return true
	}
	w.onPath[at] = true
	was, again := w.previous[b]
	if again {
		// The conditions in b are computed again in each iteration of a loop: forget
		// their earlier results.
		assumed = slices.DeleteFunc(slices.Clone(assumed), func(a assumption) bool {
			instr, ok := a.cond.(ssa.Instruction)
			return ok && instr.Block() == b
		})
	}
	w.previous[b] = prev
	defer func() {
		delete(w.onPath, at)
		if delete(w.previous, b); again {
			w.previous[b] = was
		}
	}()
	cond, ok := flow.Last(b).(*ssa.If)
	if !ok {
		for _, next := range b.Succs {
			if w.searchFrom(next, b, made, passed, assumed) {
				return true
			}
		}
		return false
	}
	truth, known := w.resultOf(cond.Cond, assumed)
	for i, next := range b.Succs {
		if known && truth != (i == 0) {
			continue
		}
		if w.searchFrom(next, b, made, passed, append(assumed[:len(assumed):len(assumed)], assumption{cond.Cond, i == 0})) {
			return true
		}
	}
	return false
}

// resultOf returns the result of a condition on the current path, if it is known.
func (w *pathSearch) resultOf(cond ssa.Value, assumed []assumption) (truth, known bool) {
	switch v := w.valueOf(cond).(type) {
	case *ssa.Const:
		if v.Value != nil {
			return v.Value.ExactString() == "true", true
		}
	case *ssa.UnOp:
		if v.Op == token.NOT {
			truth, known = w.resultOf(v.X, assumed)
			return !truth, known
		}
	case *ssa.BinOp:
		if v.Op != token.EQL && v.Op != token.NEQ {
			break
		}
		if IsEmptyText(v.Y) {
			if empty, known := w.isEmpty(v.X, assumed); known {
				return empty == (v.Op == token.EQL), true
			}
		}
	}
	for _, a := range assumed {
		if same, opposite := sameCondition(cond, a.cond); same {
			return a.truth, true
		} else if opposite {
			return !a.truth, true
		}
	}
	return false, false
}

func sameCondition(a, b ssa.Value) (same, opposite bool) {
	c := flow.Comparison{Known: map[[2]ssa.Value]bool{}}
	if c.Same(a, b) {
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
	return false, c.Same(x.X, y.X) && c.Same(x.Y, y.Y)
}

// valueOf returns the value that v has on the current path.
func (w *pathSearch) valueOf(v ssa.Value) ssa.Value {
	for range flow.MaxUnwraps {
		phi, ok := v.(*ssa.Phi)
		if !ok {
			return v
		}
		prev, on := w.previous[phi.Block()]
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

// isEmpty reports whether a text or a pointer is empty on the current path. The result
// `known` is false if the path does not show this.
func (w *pathSearch) isEmpty(v ssa.Value, assumed []assumption) (empty, known bool) {
	// The search follows only paths on which the fields with w.unsetRole are empty.
	if load, ok := v.(*ssa.UnOp); ok && w.isField(load) {
		return true, true
	}
	if c, ok := v.(*ssa.Call); ok && len(c.Call.Args) == 1 {
		if callee := flow.CalleeOf(&c.Call); callee != nil && flow.IsPointerHelper(callee) {
			if load, ok := c.Call.Args[0].(*ssa.UnOp); ok && w.isField(load) {
				return true, true
			}
		}
	}
	for _, a := range assumed {
		cond, ok := a.cond.(*ssa.BinOp)
		if !ok || cond.Op != token.EQL && cond.Op != token.NEQ || !IsEmptyText(cond.Y) || w.valueOf(cond.X) != w.valueOf(v) {
			continue
		}
		return a.truth == (cond.Op == token.EQL), true
	}
	switch value := w.valueOf(v).(type) {
	case *ssa.Const:
		return IsEmptyText(value), true
	case *ssa.Call, *ssa.BinOp:
		// If the path assigns this call or expression to the variable v, assume that it is
		// not empty, because it is probably a default ID. If v itself is the call or
		// expression, nothing is known.
		return false, value != v
	}
	return false, false
}

func (w *pathSearch) isField(load *ssa.UnOp) bool {
	addr, ok := load.X.(*ssa.FieldAddr)
	return ok && w.unsetRole != RoleNone && w.p.rootOf(addr.X, 0) == w.m.Root && w.m.Shape.Fields[flow.FieldName(addr.X.Type(), addr.Field)] == w.unsetRole
}
