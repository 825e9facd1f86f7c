package rules

import (
	"fmt"
	"slices"

	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/flow"
	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/message"
)

// randomGroupID checks rule SF007: a group ID from a clock or random source gives each
// message a separate group. An ID is permitted if several messages share it, or if it
// selects one of a fixed set of groups.
func (p *audit) randomGroupID() {
	groups := p.fifoUses(message.RoleGroup)
	for _, u := range groups {
		o, minted := u.Slice.Any(flow.FromSource)
		sharedWith := func(other *message.Use) bool {
			same, ok := other.Slice.Any(flow.FromSource)
			return ok && o.At() != nil && same.At() == o.At() && other.Key() != u.Key()
		}
		if !minted || o.Choice || o.Wraps || o.Seeded || u.Shared(o) || slices.ContainsFunc(groups, sharedWith) {
			continue
		}
		f := about(u, randomGroupID, fmt.Sprintf("%s comes from %s: each message has its own group, without order; use an account or a tile", u.Name(), o.Text))
		f.source, f.name, f.cause = o, u.Field, p.causeOf(o)
		p.r.report(f)
	}
}
