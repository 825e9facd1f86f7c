package replay

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo"
)

// try is an item that a wave sends.
type try struct {
	lane     *lane
	item     int
	label    Label
	deadline time.Time // until which SQS surely recognises an earlier attempt; zero without one
	message  *sqsfifo.Message
	tagged   bool // the message names the run
}

// fits reports whether the next item may be under way next to the others.
func (r *Runner) fits() bool {
	if len(r.ready) == 0 || r.inFlight == 0 {
		return true
	}
	return r.bytes+r.plan.Items[r.ready[0].items[0]].Size <= r.config.BytesInFlight
}

// wave is one durable write: the outcomes since the last one, and the tries of up to n
// items, which are sent after it.
func (r *Runner) wave(ctx context.Context, n int) error {
	now := r.config.Now()
	var tries []*try
	for ; n > 0 && len(r.ready) > 0 && r.fits(); n-- {
		l := r.ready[0]
		r.ready = r.ready[1:]
		if t := r.judge(l, now); t != nil {
			tries = append(tries, t)
			r.inFlight++
			r.bytes += r.plan.Items[t.item].Size
		}
	}
	tries, err := r.load(ctx, tries, now)
	if err == nil {
		err = r.save(ctx, tries)
	}
	if err != nil {
		r.inFlight -= len(tries)
		return err
	}
	r.pace.submitted(len(tries))
	for _, t := range tries {
		r.send(t)
	}
	return nil
}

// judge decides what becomes of the first item of a lane now. It returns nil if that is
// not sent.
func (r *Runner) judge(l *lane, now time.Time) *try {
	item, p := &r.plan.Items[l.items[0]], &r.history.items[l.items[0]]
	return r.follow(l, item, p.decide(r.plan.Options, item, now))
}

// follow does with the first item of a lane what was decided.
func (r *Runner) follow(l *lane, item *PlannedItem, d decision) *try {
	m := &Mark{Item: item.Number, Reason: d.reason}
	switch d.action {
	case ActionWait:
		l.due = item.Sent.OutsideFrom()
		heap.Push(&r.waiting, l)
		return nil
	case ActionSkip:
		m.Outcome = OutcomeSkipped
	case ActionHold:
		m.Outcome = OutcomeIndeterminate
	case ActionConflict:
		m.Outcome = OutcomeConflict
	case ActionSend, ActionDrift:
		return &try{lane: l, item: item.Number, label: d.label, deadline: d.deadline}
	}
	r.settle(l, m)
	return nil
}

// load reads the messages and drops those that are not what was recorded.
func (r *Runner) load(ctx context.Context, tries []*try, now time.Time) ([]*try, error) {
	if len(tries) == 0 {
		return nil, nil
	}
	positions := make([]string, len(tries))
	for i, t := range tries {
		positions[i] = r.plan.Items[t.item].Position
	}
	found, err := r.config.Source.Fetch(ctx, positions)
	if err == nil && len(found) != len(tries) {
		err = fmt.Errorf("it returned %d items for %d positions", len(found), len(tries))
	}
	if err != nil {
		return tries, fmt.Errorf("replay: source %q: %w", r.plan.Source, err)
	}
	kept := tries[:0]
	for i, t := range tries {
		item, f := &r.plan.Items[t.item], &found[i]
		refuse := func(o Outcome, reason string) {
			r.inFlight--
			r.bytes -= item.Size
			r.settle(t.lane, &Mark{Item: t.item, Outcome: o, Reason: reason, Refuted: true})
		}
		t.message = f.Message
		switch why := f.drift(); {
		case f.Message == nil && f.Err == nil:
			refuse(OutcomeFailed, "it is not in the source any more")
			continue
		case why != "":
			refuse(OutcomeDrift, text(why))
			continue
		case hashOf(f.Message.Body) != item.BodyHash || f.Message.Group != item.Group || item.DedupeKey != "" && f.Message.DedupeKey != item.DedupeKey:
			refuse(OutcomeDrift, "the body, the group or the dedupe key is not the planned one")
			continue
		}
		if t = r.recheck(t, item, f, now); t != nil {
			kept = append(kept, t)
		}
	}
	return kept, nil
}

// recheck decides again if the source knows more of an item than when the plan was
// made, for example that it was delivered since.
func (r *Runner) recheck(t *try, item *PlannedItem, f *Item, now time.Time) *try {
	p := &r.history.items[t.item]
	if f.Status == Unknown || certainty[f.Status] <= certainty[item.Status] || p.verdict == VerdictSendAgain || !p.doubt.IsZero() {
		return t
	}
	fresh := *item
	fresh.Status, fresh.Sent = f.Status, f.Sent
	if fresh.Sent.To.IsZero() {
		fresh.Sent.To = now
	}
	next := r.follow(t.lane, &fresh, fresh.now(r.plan.Options, now))
	if next == nil {
		r.inFlight--
		r.bytes -= item.Size
		return nil
	}
	next.message = t.message
	return next
}

// saveFor is how long the journal and the ledger have.
const saveFor = 30 * time.Second

// save makes the outcomes since the last wave, and the tries, durable.
func (r *Runner) save(ctx context.Context, tries []*try) error {
	marks := r.unsaved
	at := r.config.Now().UTC().Round(0)
	for _, t := range tries {
		marks = append(marks, Mark{Kind: MarkTry, Item: t.item, At: at, Label: t.label})
	}
	if len(marks) == 0 {
		return nil
	}
	// What is known is worth keeping, also without the time to send more.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveFor)
	defer cancel()
	if len(r.entries) > 0 && r.config.Ledger != nil {
		if err := r.config.Ledger.Append(ctx, r.entries); err != nil {
			r.broken = true
			return fmt.Errorf("replay: ledger: %w", err)
		}
		r.entries = r.entries[:0]
	}
	if err := r.config.Journal.Append(ctx, marks); err != nil {
		r.broken = true
		return fmt.Errorf("replay: %w", err)
	}
	for i := len(r.unsaved); i < len(marks); i++ {
		r.history.items[marks[i].Item].apply(&marks[i])
	}
	r.unsaved = marks[:0]
	return nil
}

// send submits a message. Its answer comes on the channel.
func (r *Runner) send(t *try) {
	m := *t.message
	if t.tagged = len(m.Attributes) < maxAttributes; t.tagged {
		m.Attributes = maps.Clone(m.Attributes)
		if m.Attributes == nil {
			m.Attributes = map[string]string{}
		}
		m.Attributes[sqsfifo.ReplayAttribute] = r.config.ID
	}
	r.submit(t, &m)
}

// maxAttributes is how many attributes a message may have.
const maxAttributes = 10

func (r *Runner) submit(t *try, m *sqsfifo.Message) {
	ctx, cancel := r.sends, context.CancelFunc(nil)
	if !t.deadline.IsZero() {
		ctx, cancel = context.WithTimeoutCause(ctx, t.deadline.Sub(r.config.Now()), errTooLate)
	}
	r.config.Sender.SendMessageAsync(ctx, m, func(receipt sqsfifo.Receipt, err error) {
		r.answers <- answer{t, receipt, err, cancel}
	})
}

var errTooLate = errors.New("replay: SQS may not recognise another attempt")

// take notes an answer.
func (r *Runner) take(a answer) {
	if a.cancel != nil {
		a.cancel()
	}
	var violation *sqsfifo.ViolationError
	if a.tagged && r.sends.Err() == nil && errors.As(a.err, &violation) {
		// Perhaps there is no room for the name of the run. Nothing was sent.
		a.tagged = false
		r.submit(a.try, a.message)
		return
	}
	r.inFlight--
	item := &r.plan.Items[a.item]
	r.bytes -= item.Size
	m := &Mark{Item: a.item, MessageID: a.receipt.MessageID, SequenceNumber: a.receipt.SequenceNumber}
	var conflict *sqsfifo.ConflictError
	switch fate := sqsfifo.FateOf(a.err); {
	case fate == sqsfifo.Stored && (a.receipt.Duplicate || a.receipt.MessageID != "" && a.receipt.MessageID == item.MessageID):
		m.Outcome = OutcomeSuppressed
	case fate == sqsfifo.Stored:
		m.Outcome = OutcomeSent
	case fate == sqsfifo.NotStored && r.sends.Err() != nil: // which says nothing about the item
		m.Refuted = true
	case errors.As(a.err, &conflict):
		m.Outcome, m.Refuted = OutcomeConflict, true
		if conflict.Reuse == sqsfifo.Drift {
			m.Outcome = OutcomeDrift
		}
	case fate == sqsfifo.NotStored:
		m.Outcome, m.Refuted = OutcomeFailed, true
	default:
		m.Outcome, m.Held = OutcomeIndeterminate, fate == sqsfifo.Altered
	}
	if a.err != nil {
		m.Reason = text(a.err.Error())
	}
	r.settle(a.lane, m)
}

// settle notes the outcome of the first item of a lane, which goes on after it or is
// over.
func (r *Runner) settle(l *lane, m *Mark) {
	m.Kind, m.At = MarkEnd, r.config.Now().UTC().Round(0)
	p := &r.history.items[m.Item]
	p.apply(m)
	r.unsaved = append(r.unsaved, *m)
	if p.tried && m.Outcome != None {
		item, e := &r.plan.Items[m.Item], r.entry(LedgerTriggered)
		e.Item, e.EventID, e.EventSource, e.DedupeKey = m.Item, item.EventID, item.EventSource, item.DedupeKey
		e.MessageGroup, e.BodyHash = item.Group, item.BodyHash
		e.Outcome, e.MessageID, e.SequenceNumber = m.Outcome, m.MessageID, m.SequenceNumber
		r.entries = append(r.entries, e)
	}
	r.meters.add(m.Outcome)
	switch {
	case p.done():
		l.items = l.items[1:]
		r.advance(l)
	case m.Outcome != None:
		r.stop(m.Item, m.Outcome, m.Reason)
	}
}

// stop says that a group does not go on.
func (r *Runner) stop(item int, o Outcome, reason string) {
	r.config.Logger.Warn("replay: a message group stops", "run", r.config.ID, "group", r.plan.Items[item].Group, "item", item, "outcome", o.String(), "reason", reason)
}
