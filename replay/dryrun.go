package replay

import (
	"context"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// decision is a run's current decision about an item.
type decision struct {
	action   Action
	label    Label
	deadline time.Time // latest time for a resend of an item in doubt; zero means no limit
	reason   string
}

// decide returns what a run does with the next item of a group at the given time.
func (p *progress) decide(o Options, item *PlannedItem, now time.Time) decision {
	d := decision{action: ActionSend, label: item.Sent.label(now)}
	switch {
	case !p.doubtSince.IsZero() && p.resendable(now):
		d.label, d.deadline = LabelInside, p.doubtSince.Add(ResendFor)
	case !p.doubtSince.IsZero():
		d.action, d.label = ActionUnresolved, Sent{From: p.doubtSince, To: p.doubtSince}.label(now)
		_, d.reason = p.judge(item, now)
	case p.resolution == idempotency.ResolutionNoEffect:
	case item.Action == ActionSkip || item.Action == ActionConflict || item.Action == ActionUnresolved:
		d.action, d.reason = item.Action, item.Reason
	default:
		d = item.decideNow(o, now)
		// Read a drifted item again before the window policy can skip it (see recheck).
		if item.Action == ActionDrift && d.action == ActionSkip {
			d.action, d.reason = ActionDrift, item.Reason
		}
	}
	return d
}

// decideNow decides about an item by its status in the plan. Do not call it if an earlier
// run tried the item and got no answer.
func (p *PlannedItem) decideNow(o Options, now time.Time) decision {
	d := decision{label: p.Sent.label(now)}
	d.action, d.reason = p.actionFor(o, d.label)
	if p.Status == StatusInDoubt && d.label == LabelInside {
		d.deadline = p.Sent.From.Add(ResendFor)
	}
	return d
}

// Step is the action that a run would next take for an item.
type Step struct {
	Item   *PlannedItem // Item.Label is the label when the plan was made
	Label  Label        // label at the time passed to DryRun
	Action Action
	Reason string

	// Resend is true if an earlier run tried to send the item and got no answer.
	Resend bool
}

// DryRun returns the steps of a run at the given time, in plan order. The steps of a
// group end with the item that stops the group. Items that are skipped, or that a run has
// sent or suppressed, have no step.
//
// DryRun makes no request and does not read the source. The journal may be nil before the
// first run.
//
// The labels and actions depend on the given time. A later run may therefore differ from
// these steps, but never sends an item that the plan skips.
func DryRun(ctx context.Context, plan *Plan, j *Journal, now time.Time) ([]Step, error) {
	h, err := readHistory(ctx, plan, j)
	if err != nil {
		return nil, err
	}
	var steps []Step
	stopped := map[string]bool{}
	for i := range plan.Items {
		item, p := &plan.Items[i], &h.items[i]
		if p.groupContinues() || stopped[item.Group] {
			continue
		}
		d := p.decide(plan.Options, item, now)
		if d.action == ActionSkip {
			continue
		}
		if d.action == ActionSend && item.Action == ActionDrift {
			d.action, d.reason = ActionDrift, item.Reason
		}
		steps = append(steps, Step{item, d.label, d.action, d.reason, !p.doubtSince.IsZero()})
		stopped[item.Group] = d.action != ActionSend && d.action != ActionWait
	}
	return steps, nil
}
