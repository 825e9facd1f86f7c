package rules

import (
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/flow"
	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/message"
)

// entityKey checks rule SF005. It reports a deduplication ID that is equal to the group ID.
func (p *audit) entityKey() {
	for _, u := range p.dedupIDs() {
		if u.M == nil || len(u.M.Sets[message.RoleGroup]) == 0 || len(u.Path) > 0 {
			continue
		}
		c := flow.Comparison{Known: map[[2]ssa.Value]bool{}}
		if !c.Same(u.Value, u.M.Sets[message.RoleGroup][0].Value) || !c.Varies || p.callerPassesRandomID(u) {
			continue
		}
		p.r.report(about(u, entityKey, u.Name()+" is the group ID: two events of one group become one; add an event ID or a version"))
	}
}

// callerPassesRandomID reports whether a value is a parameter, and some call in this
// package passes a random ID for the parameter. Each event then has a different ID, so
// SF005 permits the ID.
func (p *audit) callerPassesRandomID(u *message.Use) bool {
	from := message.ParameterOf(u.Slice.Origins)
	if from.Param == 0 {
		return false
	}
	fn := u.Slice.Origins[0].Root.Parent()
	return slices.ContainsFunc(p.Direct[fn], func(c ssa.CallInstruction) bool {
		_, minted := p.Trace(flow.Args(c.Common())[from.Param-1], from.Path, false).Any(flow.FromSource)
		return minted
	})
}
