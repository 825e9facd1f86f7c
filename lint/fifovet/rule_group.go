package fifovet

import (
	"golang.org/x/tools/go/ssa"
)

// entityKey is SF005.
func (p *program) entityKey(r *reporter, u *use) {
	if u.m == nil || len(u.m.sets[roleGroup]) == 0 || len(u.path) > 0 {
		return
	}
	c := comparison{known: map[[2]ssa.Value]bool{}}
	if !c.same(u.value, u.m.sets[roleGroup][0].value) || !c.varies {
		return
	}
	r.report(finding{
		rule: entityKey, fn: u.fn, pos: u.pos, arg: u.arg,
		text: u.name() + " is the group ID: it names the entity and not the event, so two events of one entity within five minutes become one; add what tells them apart",
	})
}
