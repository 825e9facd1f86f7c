package rules

import (
	"fmt"

	"golang.org/x/tools/go/ssa"

	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/flow"
	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/message"
)

// randomGroupID checks rule SF007: a group ID from a clock or random source gives each
// message a separate group. An ID is permitted if several messages share it, or if it
// selects one of a fixed set of groups.
func (p *audit) randomGroupID() {
	type groupUse struct {
		u *message.Use
		o flow.Origin
	}
	// fromSource lists the group IDs that come from clocks and random sources.
	var fromSource []groupUse
	// messages maps each call of a clock or random source to the keys of its messages.
	messages := map[ssa.Instruction]map[any]bool{}
	for _, u := range p.uses {
		if u.Role != message.RoleGroup || u.Evidence == message.NotFIFO {
			continue
		}
		o, ok := u.Slice.Any(flow.FromSource)
		if !ok {
			continue
		}
		fromSource = append(fromSource, groupUse{u, o})
		if at := o.At(); at != nil {
			if messages[at] == nil {
				messages[at] = map[any]bool{}
			}
			messages[at][u.Key()] = true
		}
	}
	for _, g := range fromSource {
		if len(messages[g.o.At()]) > 1 || g.o.Choice || g.o.Wraps || g.o.Seeded || g.u.Shared(g.o) {
			continue
		}
		f := about(g.u, randomGroupID, fmt.Sprintf("%s comes from %s: each message has its own group, without order; use an account or a tile", g.u.Name(), g.o.Text))
		f.source, f.name, f.cause = g.o, g.u.Field, p.causeOf(g.o)
		p.r.report(f)
	}
}
