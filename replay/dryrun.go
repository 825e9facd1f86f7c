package replay

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// decision is what a run does with an item now.
type decision struct {
	action   Action
	label    Label
	deadline time.Time // of an attempt that SQS must recognise; zero for any other
	reason   string
}

// decide returns what a run does at now with an item that is the next of its group.
func (p *progress) decide(o Options, item *PlannedItem, now time.Time) decision {
	d := decision{label: item.Sent.Label(now)}
	switch {
	case !p.doubt.IsZero() && p.resendable(now):
		d.label, d.deadline = Inside, p.doubt.Add(ResendFor)
	case !p.doubt.IsZero():
		d.action, d.label = ActionHold, Sent{From: p.doubt, To: p.doubt}.Label(now)
		_, d.reason = p.judge(item, now)
	case p.verdict == VerdictSendAgain:
	case item.Action == ActionSkip || item.Action == ActionConflict || item.Action == ActionHold:
		d.action, d.reason = item.Action, item.Reason
	default:
		return item.now(o, now)
	}
	return d
}

// now returns what the options say of an item that was not tried.
func (p *PlannedItem) now(o Options, now time.Time) decision {
	d := decision{label: p.Sent.Label(now)}
	d.action, d.reason = p.act(o, d.label)
	if p.Status == InDoubt && d.label == Inside {
		d.deadline = p.Sent.From.Add(ResendFor)
	}
	return d
}

// Step is what a run would do with an item.
type Step struct {
	Item   *PlannedItem // with the label of the plan
	Label  Label        // of now
	Action Action
	Reason string

	// Resend says that an earlier run has tried the item and got no answer.
	Resend bool
}

// DryRun returns what a run that begins at now would do, without a request and without
// a look at the source: the items that it sends, those of each group in their order,
// up to the one at which the group stops. The journal may be nil, before the first
// run.
//
// A run that begins later may find items in another part of the window; it sends no
// item that the plan skips.
func DryRun(ctx context.Context, plan *Plan, j Journal, now time.Time) ([]Step, error) {
	h := &history{items: make([]progress, len(plan.Items))}
	if j != nil {
		var err error
		if h, err = readHistory(ctx, plan, j); err != nil {
			return nil, err
		}
	}
	var steps []Step
	stopped := map[string]bool{}
	for i := range plan.Items {
		item, p := &plan.Items[i], &h.items[i]
		if p.done() || stopped[item.Group] {
			continue
		}
		d := p.decide(plan.Options, item, now)
		if d.action == ActionSkip {
			continue
		}
		if d.action == ActionSend && item.Action == ActionDrift {
			d.action, d.reason = ActionDrift, item.Reason
		}
		steps = append(steps, Step{item, d.label, d.action, d.reason, !p.doubt.IsZero()})
		stopped[item.Group] = d.action != ActionSend && d.action != ActionWait
	}
	return steps, nil
}

// WriteSteps writes one line for each step: its number in the plan, the group, the
// event, the labels of the plan and of now, the action and the reason.
func WriteSteps(w io.Writer, steps []Step) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ITEM\tGROUP\tEVENT\tPLANNED\tNOW\tACTION\tREASON")
	for _, s := range steps {
		action := s.Action.String()
		if s.Resend {
			action += " again"
		}
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%s\t%s\n", s.Item.Number, s.Item.Group, s.Item.EventID, s.Item.Label, s.Label, action, cmp.Or(s.Reason, "-"))
	}
	return t.Flush()
}
