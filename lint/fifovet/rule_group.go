package fifovet

import (
	"fmt"
	"slices"

	"golang.org/x/tools/go/ssa"
)

// checkGroups is SF007: a group of its own for each message. A group for several
// messages, such as those of one call or session, is not one, and neither is one of a
// fixed set.
func (p *program) checkGroups(r *reporter, uses []*use) {
	type groupUse struct {
		u *use
		o origin
	}
	var minted []groupUse
	messages := map[ssa.Instruction]map[any]bool{} // that one call of a source reaches
	for _, u := range uses {
		if u.role != roleGroup || u.evidence == notFIFO {
			continue
		}
		o, ok := u.slice.any(fromSource)
		if !ok {
			continue
		}
		minted = append(minted, groupUse{u, o})
		if at := o.at(); at != nil {
			if messages[at] == nil {
				messages[at] = map[any]bool{}
			}
			messages[at][u.key()] = true
		}
	}
	for _, g := range minted {
		if len(messages[g.o.at()]) > 1 || g.o.choice || g.o.wraps || g.o.seeded || g.u.shared(g.o) {
			continue
		}
		r.report(finding{
			rule: randomGroupID, fn: g.u.fn, pos: g.u.pos, arg: g.u.arg, source: g.o, maybe: g.u.evidence == maybeFIFO, what: g.u.field, cause: p.causeOf(g.o),
			text: fmt.Sprintf("%s comes from %s: each message is a group of its own, so nothing is kept in order; use what has to stay in order, such as an account or a tile",
				g.u.name(), g.o.text),
		})
	}
}

// shared reports whether a minted value is for several messages: it is minted
// outside of the loop that makes them, or its function makes them all.
func (u *use) shared(o origin) bool {
	at := o.at()
	if at == nil || at.Block() == nil {
		return true // such as a seed of the process
	}
	if u.m == nil {
		if u.many {
			return true
		}
		in := cycle(u.instr.Block())
		return in[u.instr.Block()] && at.Parent() == u.instr.Parent() && !in[at.Block()]
	}
	if !u.many {
		return at.Parent() != u.fn && o.frame == nil // minted around a literal
	}
	made, ok := u.m.root.(ssa.Instruction)
	if !ok || at.Parent() != made.Parent() {
		return at.Parent() != u.fn
	}
	block := made.Block()
	if !cycle(block)[block] {
		for _, c := range u.m.sendCalls() {
			if c.Parent() == at.Parent() && cycle(c.Block())[c.Block()] {
				block = c.Block()
			}
		}
	}
	return !cycle(block)[at.Block()]
}

// entityKey is SF005.
func (p *program) entityKey(r *reporter, u *use) {
	if u.m == nil || len(u.m.sets[roleGroup]) == 0 || len(u.path) > 0 {
		return
	}
	c := comparison{known: map[[2]ssa.Value]bool{}}
	if !c.same(u.value, u.m.sets[roleGroup][0].value) || !c.varies || p.mintedByCaller(u) {
		return
	}
	r.report(finding{
		rule: entityKey, fn: u.fn, pos: u.pos, arg: u.arg, maybe: u.evidence == maybeFIFO, cause: valueCause{u.pos},
		text: u.name() + " is the group ID: it names the entity and not the event, so two events of one entity within five minutes become one; add what tells them apart",
	})
}

// mintedByCaller reports whether a value is a parameter that a call in this package
// gives a fresh ID: what is wrong is that, and it names no entity.
func (p *program) mintedByCaller(u *use) bool {
	from := parameterOf(u.slice.origins)
	if from.param == 0 {
		return false
	}
	fn := u.slice.origins[0].root.Parent()
	return slices.ContainsFunc(p.direct[fn], func(c ssa.CallInstruction) bool {
		_, minted := p.trace(c.Common().Args[from.param-1], from.path, false).any(fromSource)
		return minted
	})
}
