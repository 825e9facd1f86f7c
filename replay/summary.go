package replay

import (
	"cmp"
	"maps"
	"slices"
)

// PlanCount counts items of a plan with the same action, label and reason.
type PlanCount struct {
	Action Action `json:"action"`
	Label  Label  `json:"label"`
	Reason string `json:"reason,omitempty"`
	Items  int    `json:"items"`
	Groups int    `json:"groups"` // message groups that have at least one of these items
}

// Summary counts the items for each combination of action, label and reason, sorted in
// this order. The sum of all Items is the number of items in the plan.
func (p *Plan) Summary() []PlanCount {
	type kind struct {
		action Action
		label  Label
		reason string
	}
	counts, groups := map[kind]int{}, map[kind]map[string]bool{}
	for i := range p.Items {
		it := &p.Items[i]
		k := kind{it.Action, it.Label, it.Reason}
		if groups[k] == nil {
			groups[k] = map[string]bool{}
		}
		counts[k]++
		groups[k][it.Group] = true
	}
	var out []PlanCount
	for _, k := range slices.SortedFunc(maps.Keys(counts), func(a, b kind) int {
		return cmp.Or(cmp.Compare(slices.Index(actions, a.action), slices.Index(actions, b.action)), cmp.Compare(slices.Index(labels, a.label), slices.Index(labels, b.label)), cmp.Compare(a.reason, b.reason))
	}) {
		out = append(out, PlanCount{k.action, k.label, k.reason, counts[k], len(groups[k])})
	}
	return out
}
