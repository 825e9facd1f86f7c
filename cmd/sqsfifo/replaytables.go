package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"

	"github.com/kansas-frontier-matrix/sqsfifo/replay"
)

// writePlanTable writes the number of a plan's items by action, label and reason. The
// label "inside", for example, says that SQS would suppress the item at the time of the
// plan.
func writePlanTable(w io.Writer, p *replay.Plan) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "plan %.16s of %s, made %s: %d items, %d excluded\n", p.ID, p.Source, p.Made.Format("2006-01-02 15:04:05Z07:00"), len(p.Items), p.Excluded)
	fmt.Fprintln(t, "ACTION\tWINDOW\tITEMS\tGROUPS\tREASON")
	for _, c := range p.Summary() {
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%s\n", c.Action, c.Label, c.Items, c.Groups, cmp.Or(c.Reason, "-"))
	}
	return t.Flush()
}

// writeReportTable writes the number of items by outcome and by reason to skip. The last
// lines compare run and plan. For example, "planned inside, sent outside" counts the items
// that SQS still remembered when the plan was made, but not when they were sent.
func writeReportTable(w io.Writer, r replay.PlanReport) error {
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
		{"unresolved", r.Unresolved},
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

// writeStepsTable writes one line per step of a dry run.
func writeStepsTable(w io.Writer, steps []replay.DryRunStep) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ITEM\tGROUP\tEVENT\tPLANNED\tNOW\tACTION\tREASON")
	for _, s := range steps {
		action := string(s.Action)
		if s.Resend {
			action += " again"
		}
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%s\t%s\n", s.Item.Number, s.Item.Group, s.Item.EventID, s.Item.Label, s.Label, action, cmp.Or(s.Reason, "-"))
	}
	return t.Flush()
}
