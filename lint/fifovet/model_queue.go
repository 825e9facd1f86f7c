package fifovet

import (
	"strings"

	"golang.org/x/tools/go/ssa"
)

// evidence says what is known of the queue or topic that a message goes to.
type evidence uint8

const (
	notFIFO    evidence = iota // nothing, or a constant name that says that it is a standard queue
	maybeFIFO                  // a group ID, which standard queues take, too (F-149)
	surelyFIFO                 // a constant name that ends in .fifo, a deduplication ID, one of our own types
)

// queueName is what a message's URL or ARN says.
type queueName uint8

const (
	unknownName queueName = iota
	standardName
	fifoName
)

// nameIn decides by the values of URLs. Each of them has to be one whole constant: a
// suffix that is added for some queues says nothing about the others.
func nameIn(origins []origin) (queueName, string) {
	result, text := unknownName, ""
	for _, o := range origins {
		if o.kind == fromConst && o.text == "" && !o.mixed {
			continue // not set
		}
		if o.kind != fromConst || o.mixed {
			return unknownName, ""
		}
		is := standardName
		if strings.HasSuffix(o.text, ".fifo") {
			is = fifoName
		}
		if result != unknownName && result != is {
			return unknownName, ""
		}
		result, text = is, o.text
	}
	return result, text
}

func (p *program) queueOf(m *message) (queueName, string) {
	var origins []origin
	for _, in := range append([]*message{m}, m.batches...) {
		origins = append(origins, p.origins(in, roleURL, false)...)
	}
	return nameIn(origins)
}

// evidenceOf says what is known of the queue of a message.
func (p *program) evidenceOf(m *message) evidence {
	if m.shape.sdk {
		return surelyFIFO
	}
	if m.evidence == nil {
		e := p.findEvidence(m)
		for _, d := range m.derived {
			e = max(e, p.evidenceOf(d))
		}
		m.evidence = &e
	}
	return *m.evidence
}

func (p *program) findEvidence(m *message) evidence {
	switch name, _ := p.queueOf(m); {
	case name == standardName:
		return notFIFO
	case name == fifoName || p.always(m, roleDedup):
		return surelyFIFO
	case m.has(roleGroup) && !m.absent(roleGroup), m.has(roleDedup) && !m.absent(roleDedup):
		return maybeFIFO
	}
	return notFIFO
}

// evidenceFor is what a field says of the queue that its message goes to: a
// deduplication ID is taken by FIFO queues alone.
func (p *program) evidenceFor(m *message, r role) evidence {
	e := p.evidenceOf(m)
	if r != roleDedup || e != maybeFIFO {
		return e
	}
	return surelyFIFO
}

// always reports whether a field is set on every way to the send.
func (p *program) always(m *message, r role) bool {
	given := false
	for _, s := range m.all(r) {
		given = given || !isEmptyText(s.value) && !p.nilable(s.value, nil)
	}
	return given && !p.leavesOut(m, r, roleNone)
}

// contentBased reports whether there is a way on which the message goes out
// without a deduplication ID, to a queue that is FIFO or may be: there the body
// alone tells it from others.
func (p *program) contentBased(m *message) bool {
	if m.shape.sdk {
		return false
	}
	for _, d := range m.derived {
		if p.contentBased(d) {
			return true
		}
	}
	switch p.evidenceOf(m) {
	case surelyFIFO:
		return m.complete() && !m.later[roleDedup] && p.leavesOut(m, roleDedup, roleNone)
	case maybeFIFO:
		return m.complete() && !m.later[roleDedup] && p.leavesOut(m, roleDedup, roleGroup)
	}
	return false
}

// leavesOut reports whether there is a way to the send on which a field is not set
// and another one is, if one is named.
func (p *program) leavesOut(m *message, r, with role) bool {
	for _, c := range m.callees {
		if c.has(r) {
			return false // how is not looked at
		}
	}
	if len(m.bases) > 0 {
		left := false
		for _, b := range m.bases {
			left = left || p.leavesOut(b, r, roleNone)
		}
		if !left {
			return false
		}
	}
	w, ok := p.waysOf(m)
	if !ok {
		return false
	}
	nilable := false
	for _, s := range m.sets[r] {
		if isEmptyText(s.value) {
			continue
		}
		if p.nilable(s.value, nil) {
			nilable = true
			continue
		}
		if s.instr == nil || s.instr.Parent() != w.start.Parent() {
			return false
		}
		w.avoid[s.instr.Block()] = true
	}
	inherited := false
	for _, x := range append(m.bases, m.callees...) {
		inherited = inherited || x.has(with)
	}
	if with != roleNone && !inherited {
		w.need = map[*ssa.BasicBlock]bool{}
		for _, s := range m.sets[with] {
			if isEmptyText(s.value) || nilable && p.nilable(s.value, nil) {
				continue // one goes with the other
			}
			if s.instr != nil && s.instr.Parent() == w.start.Parent() {
				w.need[s.instr.Block()] = true
			}
		}
	}
	w.role = r
	return w.find()
}

// nilable reports whether a pointer is nil on some way, as far as it is seen.
func (p *program) nilable(v ssa.Value, seen map[ssa.Value]bool) bool {
	if seen == nil {
		seen = map[ssa.Value]bool{}
	}
	if seen[v] || len(seen) > maxUnwraps {
		return false
	}
	seen[v] = true
	switch v := v.(type) {
	case *ssa.Const:
		return v.IsNil()
	case *ssa.Phi:
		for _, e := range v.Edges {
			if p.nilable(e, seen) {
				return true
			}
		}
	case *ssa.UnOp:
		if cell, ok := v.X.(*ssa.Alloc); ok { // a variable that a literal uses, too
			stores := 0
			for _, instr := range referrers(cell) {
				if store, ok := instr.(*ssa.Store); ok && store.Addr == cell {
					if p.nilable(store.Val, seen) {
						return true
					}
					stores++
				}
			}
			return stores == 0 && isReference(v.Type())
		}
	case *ssa.Call:
		fn := staticBody(v.Common())
		if fn == nil || fn.Signature.Results().Len() != 1 {
			return false
		}
		for _, block := range fn.Blocks {
			if ret, ok := last(block).(*ssa.Return); ok && isEmpty(ret.Results[0]) && isReference(v.Type()) {
				return true
			}
		}
	}
	return false
}
