package replay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// sendItem sends an item, the next of its group, or does what the plan and the item's record
// say instead. It reports whether the group continues.
func (r *runner) sendItem(ctx context.Context, item *PlannedItem) bool {
	p := &r.history.items[item.Number]
	for ctx.Err() == nil {
		now := r.config.Now()
		d := p.decide(r.plan.Options, item, now)
		switch {
		case p.outcome.groupContinues() || d.action == ActionSkip && item.Action == ActionSkip:
			return true
		case d.action == ActionConflict, d.action == ActionUnresolved && p.outcome == OutcomeUnresolved:
			return r.report(item, d.outcome(), d.reason)
		}
		var m *sqsfifo.Message
		if d.action == ActionSend || d.action == ActionDrift {
			var err error
			if m, d, err = r.load(ctx, item, d, now); err != nil {
				r.stop(err)
				return false
			}
		}
		if d.action == ActionWait {
			r.sleep(ctx, d.due)
			continue
		}
		return r.attempt(ctx, item, d, m)
	}
	return false
}

// load reads the message of an item from the source. It changes the decision if the message
// is missing, differs from the plan or the source's record, or must not be sent now because
// the source knows more about an earlier delivery (see recheck).
func (r *runner) load(ctx context.Context, item *PlannedItem, d decision, now time.Time) (*sqsfifo.Message, decision, error) {
	r.serial.Lock()
	found, err := r.config.Source.Fetch(ctx, []string{item.Position})
	r.serial.Unlock()
	if err == nil && len(found) != 1 {
		err = fmt.Errorf("it returned %d items for one position", len(found))
	}
	if err != nil {
		return nil, d, fmt.Errorf("replay: source %q: %w", r.plan.Source, err)
	}
	f := &found[0]
	switch why := f.drift(); {
	case f.Message == nil && f.Err == nil:
		return nil, decision{action: ActionDrift, gone: true, reason: "it is not in the source any more"}, nil
	case why != "":
		return nil, decision{action: ActionDrift, reason: shorten(why)}, nil
	case hashOf(f.Message.Body) != item.BodyHash || f.Message.Group != item.Group || item.DedupeKey != "" && f.Message.DedupeKey != item.DedupeKey:
		return nil, decision{action: ActionDrift, reason: "the body, the group or the dedupe key is not the planned one"}, nil
	}
	return f.Message, r.recheck(item, d, f, now), nil
}

// recheck compares the planned item with f, the same item as just read from the source. If
// the source now knows more about an earlier delivery, or the item was planned as drift and
// has no drift now, recheck decides again.
func (r *runner) recheck(item *PlannedItem, d decision, f *Item, now time.Time) decision {
	p := &r.history.items[item.Number]
	news := f.Status != StatusUnknown && certainty[f.Status] > certainty[item.Status]
	if !news && item.Action != ActionDrift || p.outcome == OutcomeUnresolved || p.resolved {
		return d
	}
	fresh := *item
	if news {
		fresh.Status, fresh.Sent = f.Status, f.Sent
		if fresh.Sent.To.IsZero() {
			if p.newsSince.IsZero() {
				p.newsSince = now
			}
			fresh.Sent.To = p.newsSince
		}
	}
	return fresh.decideNow(r.plan.Options, now)
}

// attempt claims the item in the store, sends the message or, if d does not say to send it,
// records the reason, and ends the claim with the outcome.
func (r *runner) attempt(ctx context.Context, item *PlannedItem, d decision, m *sqsfifo.Message) bool {
	resendFor := time.Duration(0)
	if d.action == ActionSend {
		if r.limiter != nil && r.limiter.Wait(ctx) != nil {
			<-ctx.Done() // Wait also fails if ctx would end before the wait
			return false
		}
		if resendFor = ResendFor; !d.deadline.IsZero() {
			resendFor = max(0, d.deadline.Sub(r.config.Now()))
		}
	}
	p, claim, begin := &r.history.items[item.Number], r.claimOf(item, resendFor), time.Now()
	out, err := r.claim(ctx, claim)
	switch {
	case err != nil:
		r.stop(fmt.Errorf("replay: %w", err))
		return false
	case out.Decision == idempotency.DecisionDuplicate || out.Decision == idempotency.DecisionUnresolved:
		// An operator resolved the item meanwhile, or it has become too late for a resend.
		*p = progressOf(out.Record)
		return r.report(item, p.outcome, p.reason)
	case !out.Decision.Granted():
		r.stop(fmt.Errorf("replay: item %d: %w", item.Number, out.Err(claim.Key)))
		return false
	}
	*p = progressOf(out.Record)
	o, reason, how := d.outcome(), d.reason, idempotency.Ending{}
	var receipt sqsfifo.Receipt
	if o == OutcomeNone {
		sends, cancel := ctx, context.CancelFunc(func() {})
		if out.Decision == idempotency.DecisionReclaimed || !d.deadline.IsZero() {
			sends, cancel = context.WithDeadlineCause(ctx, begin.Add(out.Record.ResendUntil.Sub(out.Record.ReadAt)), errTooLate)
		}
		receipt, err = sendAndWait(sends, r.config.Sender, m, r.config.ID)
		cancel()
		o, reason = outcomeOf(receipt, err), ""
		if err != nil {
			reason = shorten(err.Error())
		}
	}
	switch fate := sqsfifo.FateOf(err); {
	case o == OutcomeSkipped:
		how = idempotency.Completed(idempotency.Result{Response: []byte(textOf(o, reason))})
	case o.groupContinues():
		if receipt.MessageID != "" && receipt.MessageID == item.MessageID {
			o = OutcomeSuppressed
		}
		how = idempotency.Completed(idempotency.Result{MessageID: receipt.MessageID, SequenceNumber: receipt.SequenceNumber, Response: []byte(textOf(o, ""))})
	case fate == sqsfifo.FateNotStored && ctx.Err() != nil:
		// The run itself cancelled the send, so the next run sends the item.
		o, how = OutcomeNone, idempotency.Released()
	case fate == sqsfifo.FateAltered:
		how = idempotency.FailedWith(idempotency.Failure{Reason: textOf(o, altered+": "+reason)})
	default:
		how = idempotency.FailedWith(idempotency.Failure{Proof: r.proofOf(item, o, &out), Reason: textOf(o, reason)})
	}
	record, err := r.finish(ctx, &out, how)
	*p = progressOf(record)
	if err != nil {
		r.stop(fmt.Errorf("replay: item %d: %w", item.Number, err))
		return false
	}
	return r.report(item, o, reason)
}

// proofOf returns which attempts to send the item certainly stored nothing. An item that
// the source has in doubt stays in doubt, unless an operator resolved it.
func (r *runner) proofOf(item *PlannedItem, o Outcome, out *idempotency.Outcome) idempotency.Proof {
	doubt := item.Status == StatusInDoubt && !r.plan.Options.ResendInDoubt && out.Record.Prior.Status != idempotency.StatusFailed
	if o == OutcomeUnresolved || doubt {
		return idempotency.ProofNone
	}
	return idempotency.ProofForClaim
}

var errTooLate = errors.New("replay: SQS may not recognise another attempt")

func outcomeOf(receipt sqsfifo.Receipt, err error) Outcome {
	var conflict *sqsfifo.ConflictError
	switch fate := sqsfifo.FateOf(err); {
	case fate == sqsfifo.FateStored && receipt.Duplicate:
		return OutcomeSuppressed
	case fate == sqsfifo.FateStored:
		return OutcomeSent
	case errors.As(err, &conflict) && conflict.Reuse == sqsfifo.ReuseDrift:
		return OutcomeDrift
	case errors.As(err, &conflict):
		return OutcomeConflict
	case fate == sqsfifo.FateNotStored:
		return OutcomeFailed
	default:
		return OutcomeUnresolved
	}
}

// report counts an outcome, and passes it to Config.Progress and to the log. It reports
// whether the group continues.
func (r *runner) report(item *PlannedItem, o Outcome, reason string) bool {
	r.meters.add(o)
	if r.config.Progress != nil {
		r.serial.Lock()
		r.config.Progress(item, o)
		r.serial.Unlock()
	}
	if o.Stops() {
		r.config.Logger.Warn("replay: a message group stops", "run", r.config.ID, "group", item.Group, "item", item.Number, "outcome", string(o), "reason", reason)
	}
	return o.groupContinues()
}
