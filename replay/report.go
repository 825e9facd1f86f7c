package replay

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// PlanReport has the results of all runs of a plan so far.
type PlanReport struct {
	Plan   string `json:"plan"`
	Source string `json:"source"`
	Run    string `json:"run"` // the last run
	Runs   int    `json:"runs"`

	// Planned is the number of items in the plan. Each item counts in exactly one field
	// from Sent to Remaining.
	Planned int `json:"planned"`

	Sent       int `json:"sent"`
	Suppressed int `json:"suppressed"`
	Skipped    int `json:"skipped"`
	Conflict   int `json:"conflict"`
	Drift      int `json:"drift"`
	Unresolved int `json:"unresolved"`
	Failed     int `json:"failed"`

	// Remaining items were not reached, or are to be sent again by the next run. After an
	// uninterrupted run Remaining is 0.
	Remaining int `json:"remaining"`

	// SkippedFor counts the skipped items by reason.
	SkippedFor map[string]int `json:"skipped_for,omitempty"`

	// StoppedGroups is the number of message groups with an item in Conflict, Drift,
	// Unresolved or Failed. The next run tries these items again. For an item that stops
	// its group again, see [Config].GiveUp.
	StoppedGroups int `json:"stopped_groups"`

	// Labels counts the tried items by two labels: the label in the plan and the label at
	// the time of the send.
	Labels []LabelCount `json:"labels,omitempty"`
}

// LabelCount counts items by two labels.
type LabelCount struct {
	Planned Label `json:"planned"`
	AtSend  Label `json:"at_send"`
	Items   int   `json:"items"`
}

// ReportError reports that the numbers of a report do not add up. The report is
// unreliable.
type ReportError struct{ Report PlanReport }

func (e *ReportError) Error() string {
	r := &e.Report
	return fmt.Sprintf("replay: the report does not add up: %d planned, but %d sent + %d suppressed + %d skipped + %d conflict + %d drift + %d unresolved + %d failed + %d remaining = %d; this is a defect, keep the store",
		r.Planned, r.Sent, r.Suppressed, r.Skipped, r.Conflict, r.Drift, r.Unresolved, r.Failed, r.Remaining, r.sum())
}

func (r *PlanReport) sum() int {
	return r.Sent + r.Suppressed + r.Skipped + r.Conflict + r.Drift + r.Unresolved + r.Failed + r.Remaining
}

// check returns a [*ReportError] unless the counts add up to the planned items.
func (r PlanReport) check() error {
	reasons := 0
	for _, n := range r.SkippedFor {
		reasons += n
	}
	if r.sum() != r.Planned || reasons != r.Skipped {
		return &ReportError{r}
	}
	return nil
}

// Complete reports whether another run would have no item to send.
func (r PlanReport) Complete() bool {
	return r.Planned == r.Sent+r.Suppressed+r.Skipped-r.SkippedFor[reasonGroupStopped]
}

// ItemResult is the outcome of one item.
type ItemResult struct {
	Item *PlannedItem
	// Outcome is OutcomeNone in two cases: no run has reached the item yet, or the next run
	// will send it again.
	Outcome Outcome

	// Label is the label at the time of the first send. It is empty if no run has tried to
	// send the item.
	Label Label

	Reason                    string
	MessageID, SequenceNumber string
}

// ReadReport returns the report of a plan at the given time, and the result of each item in
// plan order. The store is that of the runs; nil means that no run has begun.
//
// During a run, or after a killed run, an item may have been sent without an answer. For the
// time [ResendFor] such an item counts in Remaining, because a run may send it again. Later
// it counts in Unresolved.
func ReadReport(ctx context.Context, plan *Plan, store idempotency.Store, now time.Time) (PlanReport, []ItemResult, error) {
	h, err := readHistory(ctx, plan, store)
	if err != nil {
		return PlanReport{}, nil, err
	}
	t := tally(plan, h, now)
	results := make([]ItemResult, len(plan.Items))
	for i := range results {
		p := &h.items[i]
		results[i] = ItemResult{&plan.Items[i], t.outcomes[i], p.label(&plan.Items[i]), t.reasons[i], p.messageID, p.sequence}
	}
	return t.report, results, t.report.check()
}

// tallied has the outcome of each item and its reason. The report counts these outcomes.
type tallied struct {
	outcomes []Outcome
	reasons  []string
	report   PlanReport
}

// tally computes the outcomes at the given time. With the zero time, every item in doubt is
// unresolved.
func tally(plan *Plan, h *history, now time.Time) tallied {
	t := tallied{
		outcomes: make([]Outcome, len(plan.Items)), reasons: make([]string, len(plan.Items)),
		report: PlanReport{Plan: plan.ID, Source: plan.Source, Run: h.lastRun, Runs: h.runs, Planned: len(plan.Items), SkippedFor: map[string]int{}},
	}
	stopped := map[string]bool{}
	counts := map[[2]Label]int{}
	items := map[Outcome]int{}
	r := &t.report
	for i := range plan.Items {
		item, p := &plan.Items[i], &h.items[i]
		o, reason := p.judge(item, now)
		switch {
		case o == OutcomeNone && stopped[item.Group]:
			o, reason = OutcomeSkipped, reasonGroupStopped
		case o.Stops():
			stopped[item.Group] = true
		}
		if l := p.label(item); l != "" {
			counts[[2]Label{item.Label, l}]++
		}
		t.outcomes[i], t.reasons[i] = o, reason
		items[o]++
		if o == OutcomeSkipped {
			r.SkippedFor[reason]++
		}
	}
	r.Sent, r.Suppressed, r.Skipped, r.Conflict = items[OutcomeSent], items[OutcomeSuppressed], items[OutcomeSkipped], items[OutcomeConflict]
	r.Drift, r.Unresolved, r.Failed, r.Remaining = items[OutcomeDrift], items[OutcomeUnresolved], items[OutcomeFailed], items[OutcomeNone]
	r.StoppedGroups = len(stopped)
	for _, pair := range slices.SortedFunc(maps.Keys(counts), func(a, b [2]Label) int {
		return cmp.Or(cmp.Compare(slices.Index(labels, a[0]), slices.Index(labels, b[0])), cmp.Compare(slices.Index(labels, a[1]), slices.Index(labels, b[1])))
	}) {
		r.Labels = append(r.Labels, LabelCount{pair[0], pair[1], counts[pair]})
	}
	return t
}

// judge returns an item's outcome and reason. It does not check whether an earlier item
// stopped the group.
func (p *progress) judge(item *PlannedItem, now time.Time) (Outcome, string) {
	switch {
	case p.resendable(now), p.resolved:
		return OutcomeNone, ""
	case p.outcome == OutcomeUnresolved:
		return OutcomeUnresolved, cmp.Or(p.reason, item.Reason, "it was sent at "+p.at.Format(time.RFC3339)+" and has no answer")
	case p.outcome != OutcomeNone:
		return p.outcome, p.reason
	}
	if item.Action != ActionDrift { // a drifted item is read again
		return outcomeOfAction[item.Action], item.Reason
	}
	return OutcomeNone, ""
}
