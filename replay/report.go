package replay

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Report is what a plan came to, over all runs of its journal.
type Report struct {
	Plan   string `json:"plan"`
	Source string `json:"source"`
	Run    string `json:"run"` // the last one
	Runs   int    `json:"runs"`

	// Planned is how many items the plan has. Each is in one of the fields down to
	// Remaining.
	Planned int `json:"planned"`

	Sent          int `json:"sent"`
	Suppressed    int `json:"suppressed"`
	Skipped       int `json:"skipped"`
	Conflict      int `json:"conflict"`
	Drift         int `json:"drift"`
	Indeterminate int `json:"indeterminate"`
	Failed        int `json:"failed"`

	// Remaining were not reached, or are to be sent again by the next run. It is 0
	// after a run that was not interrupted.
	Remaining int `json:"remaining"`

	// SkippedFor counts the skipped items by their reasons.
	SkippedFor map[string]int `json:"skipped_for,omitempty"`

	// StoppedGroups is how many message groups have an item that is in Conflict, Drift,
	// Indeterminate or Failed. Another run tries them again; see [Settle] for those that
	// it cannot help.
	StoppedGroups int `json:"stopped_groups"`

	// Labels counts the items that were tried by their labels in the plan and at the
	// send.
	Labels []LabelCount `json:"labels,omitempty"`
}

// LabelCount counts items by two labels.
type LabelCount struct {
	Planned Label `json:"planned"`
	AtSend  Label `json:"at_send"`
	Items   int   `json:"items"`
}

// ReportError says that the numbers of a report do not add up, so that nothing in it
// can be relied on.
type ReportError struct{ Report Report }

func (e *ReportError) Error() string {
	r := &e.Report
	return fmt.Sprintf("replay: the report does not add up: %d planned, but %d sent + %d suppressed + %d skipped + %d conflict + %d drift + %d indeterminate + %d failed + %d remaining = %d; this is a defect, keep the journal",
		r.Planned, r.Sent, r.Suppressed, r.Skipped, r.Conflict, r.Drift, r.Indeterminate, r.Failed, r.Remaining, r.sum())
}

func (r *Report) sum() int {
	return r.Sent + r.Suppressed + r.Skipped + r.Conflict + r.Drift + r.Indeterminate + r.Failed + r.Remaining
}

// Check returns a [*ReportError] unless each planned item is counted once.
func (r Report) Check() error {
	reasons := 0
	for _, n := range r.SkippedFor {
		reasons += n
	}
	if r.sum() != r.Planned || reasons != r.Skipped {
		return &ReportError{r}
	}
	return nil
}

// Complete reports whether nothing is left for another run.
func (r Report) Complete() bool {
	return r.Planned == r.Sent+r.Suppressed+r.Skipped-r.SkippedFor[ReasonGroupStopped]
}

// Result is what became of one item.
type Result struct {
	Item    *PlannedItem
	Outcome Outcome // None if it remains

	// Label is the one at the send, of an item that was Tried.
	Label Label
	Tried bool

	Reason                    string
	MessageID, SequenceNumber string
}

// ReadReport returns what a journal says of its plan at now, and of each item in the
// order of the plan. It needs no lock, see [ReadJournal]; during a run, or after one
// that was killed, what waits for an answer remains as long as it may be sent again.
func ReadReport(ctx context.Context, plan *Plan, j Journal, now time.Time) (Report, []Result, error) {
	h, err := readHistory(ctx, plan, j)
	if err != nil {
		return Report{}, nil, err
	}
	t := tally(plan, h, now)
	results := make([]Result, len(plan.Items))
	for i := range results {
		p := &h.items[i]
		results[i] = Result{&plan.Items[i], t.outcomes[i], p.label, p.tried, t.reasons[i], p.messageID, p.sequence}
	}
	return t.report, results, t.report.Check()
}

// tallied is the outcome of each item, and their sum.
type tallied struct {
	outcomes []Outcome
	reasons  []string
	report   Report
}

// tally judges all items. With a zero time, no item in doubt is sent again.
func tally(plan *Plan, h *history, now time.Time) tallied {
	t := tallied{
		outcomes: make([]Outcome, len(plan.Items)), reasons: make([]string, len(plan.Items)),
		report: Report{Plan: plan.ID, Source: plan.Source, Run: h.run, Runs: h.runs, Planned: len(plan.Items), SkippedFor: map[string]int{}},
	}
	stopped := map[string]bool{}
	labels := map[[2]Label]int{}
	r := &t.report
	for i := range plan.Items {
		item, p := &plan.Items[i], &h.items[i]
		o, reason := p.judge(item, now)
		switch {
		case o == None && stopped[item.Group]:
			o, reason = OutcomeSkipped, ReasonGroupStopped
		case o.Stops():
			stopped[item.Group] = true
		}
		if p.tried {
			labels[[2]Label{item.Label, p.label}]++
		}
		t.outcomes[i], t.reasons[i] = o, reason
		*r.count(o)++
		if o == OutcomeSkipped {
			r.SkippedFor[reason]++
		}
	}
	r.StoppedGroups = len(stopped)
	for _, pair := range slices.SortedFunc(maps.Keys(labels), func(a, b [2]Label) int {
		return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]))
	}) {
		r.Labels = append(r.Labels, LabelCount{pair[0], pair[1], labels[pair]})
	}
	return t
}

func (r *Report) count(o Outcome) *int {
	switch o {
	case OutcomeSent:
		return &r.Sent
	case OutcomeSuppressed:
		return &r.Suppressed
	case OutcomeSkipped:
		return &r.Skipped
	case OutcomeConflict:
		return &r.Conflict
	case OutcomeDrift:
		return &r.Drift
	case OutcomeIndeterminate:
		return &r.Indeterminate
	case OutcomeFailed:
		return &r.Failed
	case None:
	}
	return &r.Remaining
}

// Stops reports whether the group does not go on after an item with the outcome: it is a
// conflict, has drifted, failed or is indeterminate.
func (o Outcome) Stops() bool {
	return o == OutcomeConflict || o == OutcomeDrift || o == OutcomeIndeterminate || o == OutcomeFailed
}

// judge returns what became of an item, apart from the others of its group.
func (p *progress) judge(item *PlannedItem, now time.Time) (Outcome, string) {
	switch {
	case p.done():
		return p.outcome, p.reason
	case !p.doubt.IsZero() && p.resendable(now):
		return None, ""
	case !p.doubt.IsZero():
		return OutcomeIndeterminate, cmp.Or(p.reason, "it was sent at "+p.doubt.Format(time.RFC3339)+" and has no answer")
	case p.outcome != None:
		return p.outcome, p.reason
	case p.verdict == VerdictSendAgain:
		return None, ""
	}
	switch item.Action {
	case ActionSkip:
		return OutcomeSkipped, item.Reason
	case ActionHold:
		return OutcomeIndeterminate, item.Reason
	case ActionConflict:
		return OutcomeConflict, item.Reason
	default:
		return None, ""
	}
}
