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
	due      time.Time // for ActionWait: the end of the wait
	deadline time.Time // latest time for a resend of an item that the source has in doubt; zero means no limit
	gone     bool      // for ActionDrift: the source has no such item any more
	reason   string
}

// outcome returns the outcome of an item that is not sent, and OutcomeNone for ActionSend.
func (d decision) outcome() Outcome {
	if d.gone {
		return OutcomeFailed
	}
	return outcomeOfAction[d.action]
}

// decide returns what a run does with the next item of a group at the given time.
func (p *progress) decide(o Options, item *PlannedItem, now time.Time) decision {
	d := decision{action: ActionSend, label: item.Sent.label(now)}
	switch {
	case p.resendable(now):
		d.label = LabelInside
	case p.outcome == OutcomeUnresolved:
		d.action = ActionUnresolved
		_, d.reason = p.judge(item, now)
	case p.resolved, p.outcome == OutcomeFailed && item.Status == StatusInDoubt: // the item is no longer in doubt
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
	d := decision{label: p.Sent.label(now), due: p.Sent.forgottenAt()}
	d.action, d.reason = p.actionFor(o, d.label)
	if p.Status == StatusInDoubt && d.label == LabelInside {
		d.deadline = p.Sent.From.Add(ResendFor)
	}
	return d
}

// DryRunStep is the action that a run would next take for an item.
type DryRunStep struct {
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
// DryRun makes no request and does not read the source. The store is that of the runs; nil means
// that no run has begun.
//
// The labels and actions depend on the given time. A later run may therefore differ from
// these steps, but never sends an item that the plan skips.
func DryRun(ctx context.Context, plan *Plan, store idempotency.Store, now time.Time) ([]DryRunStep, error) {
	h, err := readHistory(ctx, plan, store)
	if err != nil {
		return nil, err
	}
	var steps []DryRunStep
	stopped := map[string]bool{}
	for i := range plan.Items {
		item, p := &plan.Items[i], &h.items[i]
		if p.outcome.groupContinues() || stopped[item.Group] {
			continue
		}
		d := p.decide(plan.Options, item, now)
		if d.action == ActionSkip {
			continue
		}
		if d.action == ActionSend && item.Action == ActionDrift {
			d.action, d.reason = ActionDrift, item.Reason
		}
		steps = append(steps, DryRunStep{item, d.label, d.action, d.reason, p.outcome == OutcomeUnresolved})
		stopped[item.Group] = d.action != ActionSend && d.action != ActionWait
	}
	return steps, nil
}
