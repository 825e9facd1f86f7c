package replay

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
)

// PlanCount counts the items of a plan that are alike.
type PlanCount struct {
	Action Action `json:"action"`
	Label  Label  `json:"label"`
	Reason string `json:"reason,omitempty"`
	Items  int    `json:"items"`
	Groups int    `json:"groups"` // that have such items
}

// Summary counts the items by action, label and reason, in this order. Their sum is
// that of the plan.
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
		return cmp.Or(cmp.Compare(a.action, b.action), cmp.Compare(a.label, b.label), cmp.Compare(a.reason, b.reason))
	}) {
		out = append(out, PlanCount{k.action, k.label, k.reason, counts[k], len(groups[k])})
	}
	return out
}

// WriteSummary writes the summary as a table.
func (p *Plan) WriteSummary(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "plan %.16s of %s, made %s: %d items, %d excluded\n", p.ID, p.Source, p.Made.Format("2006-01-02 15:04:05Z07:00"), len(p.Items), p.Excluded)
	fmt.Fprintln(t, "ACTION\tWINDOW\tITEMS\tGROUPS\tREASON")
	for _, c := range p.Summary() {
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%s\n", c.Action, c.Label, c.Items, c.Groups, cmp.Or(c.Reason, "-"))
	}
	return t.Flush()
}

// Write writes the report as a table: the outcomes, why items were skipped, and the
// labels of the plan beside those at the sends.
func (r Report) Write(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "plan %.16s of %s, run %d (%s)\n", r.Plan, r.Source, r.Runs, r.Run)
	for _, line := range []struct {
		name  string
		items int
	}{
		{"planned", r.Planned},
		{"sent", r.Sent},
		{"suppressed", r.Suppressed},
		{"skipped", r.Skipped},
		{"conflict", r.Conflict},
		{"drift", r.Drift},
		{"indeterminate", r.Indeterminate},
		{"failed", r.Failed},
		{"remaining", r.Remaining},
	} {
		fmt.Fprintf(t, "%s\t%d\n", line.name, line.items)
	}
	for _, reason := range slices.Sorted(maps.Keys(r.SkippedFor)) {
		fmt.Fprintf(t, "skipped: %s\t%d\n", reason, r.SkippedFor[reason])
	}
	if r.StoppedGroups > 0 {
		fmt.Fprintf(t, "groups that stopped\t%d\n", r.StoppedGroups)
	}
	for _, l := range r.Labels {
		fmt.Fprintf(t, "planned %s, sent %s\t%d\n", l.Planned, l.AtSend, l.Items)
	}
	return t.Flush()
}
