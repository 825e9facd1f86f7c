package replay

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// attempt is one attempt to send an item. The send begins after the attempt's journal
// entry is durable.
type attempt struct {
	queue    *groupQueue
	item     int
	label    Label
	deadline time.Time // latest time for a resend of an item in doubt; zero means no limit
	message  *sqsfifo.Message
	tagged   bool // the message has the replay attribute
}

// fits reports whether the next item may be sent now: no messages are in flight, or the
// messages in flight and this item together have at most BytesInFlight bytes.
func (r *runner) fits() bool {
	if len(r.ready) == 0 || r.inFlight == 0 {
		return true
	}
	return r.bytes+r.plan.Items[r.ready[0].items[0]].Size <= r.config.BytesInFlight
}

// commit chooses up to n items to send now. It writes the outcomes since the last commit
// and an entry for each attempt to the journal, and then sends the items.
func (r *runner) commit(ctx context.Context, n int) error {
	now := r.config.Now()
	var attempts []*attempt
	for ; n > 0 && len(r.ready) > 0 && r.fits(); n-- {
		l := r.ready[0]
		r.ready = r.ready[1:]
		if t := r.nextAttempt(l, now); t != nil {
			attempts = append(attempts, t)
			r.inFlight++
			r.bytes += r.plan.Items[t.item].Size
		}
	}
	attempts, err := r.load(ctx, attempts, now)
	if err == nil {
		err = r.save(ctx, attempts)
	}
	if err != nil {
		r.inFlight -= len(attempts)
		return err
	}
	r.pace.charge(now, len(attempts))
	for _, t := range attempts {
		r.send(t)
	}
	return nil
}

// nextAttempt decides about a group's first item at the given time. It returns the attempt
// to make, or nil.
func (r *runner) nextAttempt(l *groupQueue, now time.Time) *attempt {
	item, p := &r.plan.Items[l.items[0]], &r.history.items[l.items[0]]
	return r.apply(l, item, p.decide(r.plan.Options, item, now))
}

// apply carries out the decision d about the given item, the first of its group. It returns
// the attempt to make, or nil if the item is not sent now.
func (r *runner) apply(l *groupQueue, item *PlannedItem, d decision) *attempt {
	m := &journalEntry{Item: item.Number, Reason: d.reason}
	switch d.action {
	case ActionWait:
		l.due = item.Sent.forgottenAt()
		heap.Push(&r.waiting, l)
		return nil
	case ActionSkip:
		m.Outcome = OutcomeSkipped
	case ActionUnresolved:
		m.Outcome = OutcomeUnresolved
	case ActionConflict:
		m.Outcome = OutcomeConflict
	case ActionSend, ActionDrift:
		return &attempt{queue: l, item: item.Number, label: d.label, deadline: d.deadline}
	}
	r.record(l, m)
	return nil
}

// load reads the messages of the attempts from the source. It drops an attempt if the message
// is missing, differs from the plan or the source's record, or must not be sent now because
// the source knows more about an earlier delivery (see recheck).
func (r *runner) load(ctx context.Context, attempts []*attempt, now time.Time) ([]*attempt, error) {
	if len(attempts) == 0 {
		return nil, nil
	}
	positions := make([]string, len(attempts))
	for i, t := range attempts {
		positions[i] = r.plan.Items[t.item].Position
	}
	found, err := r.config.Source.Fetch(ctx, positions)
	if err == nil && len(found) != len(attempts) {
		err = fmt.Errorf("it returned %d items for %d positions", len(found), len(attempts))
	}
	if err != nil {
		return attempts, fmt.Errorf("replay: source %q: %w", r.plan.Source, err)
	}
	kept := attempts[:0]
	for i, t := range attempts {
		item, f := &r.plan.Items[t.item], &found[i]
		refuse := func(o Outcome, reason string) {
			r.inFlight--
			r.bytes -= item.Size
			// Do not set Refuted, which means that the latest attempt did not store the item.
			// This run made no attempt, and an attempt of an earlier run may have stored it.
			r.record(t.queue, &journalEntry{Item: t.item, Outcome: o, Reason: reason})
		}
		t.message = f.Message
		switch why := f.drift(); {
		case f.Message == nil && f.Err == nil:
			refuse(OutcomeFailed, "it is not in the source any more")
			continue
		case why != "":
			refuse(OutcomeDrift, shorten(why))
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

// recheck compares the planned item with f, the same item as just read from the source. If
// the source now knows more about an earlier delivery, or the item was planned as drift and
// has no drift now, recheck decides again. It returns the attempt to make, or nil if the item
// is not sent now.
func (r *runner) recheck(t *attempt, item *PlannedItem, f *Item, now time.Time) *attempt {
	p := &r.history.items[t.item]
	news := f.Status != StatusUnknown && certainty[f.Status] > certainty[item.Status]
	if !news && item.Action != ActionDrift || p.resolution == idempotency.ResolutionNoEffect || !p.doubtSince.IsZero() {
		return t
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
	next := r.apply(t.queue, &fresh, fresh.decideNow(r.plan.Options, now))
	if next == nil {
		r.inFlight--
		r.bytes -= item.Size
		return nil
	}
	next.message = t.message
	return next
}

// saveFor is the longest time of one write to the journal and of one call of the ledger.
const saveFor = 30 * time.Second

// save writes the outcomes since the last commit, and an entry for each of the attempts,
// durably to the journal.
func (r *runner) save(ctx context.Context, attempts []*attempt) error {
	entries := r.unsaved
	at := r.config.Now().UTC().Round(0)
	for _, t := range attempts {
		entries = append(entries, journalEntry{Kind: entryTry, Item: t.item, At: at, Label: t.label})
	}
	if len(entries) == 0 {
		return nil
	}
	// save known outcomes even if ctx has ended
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveFor)
	defer cancel()
	if len(r.ledgerEntries) > 0 && r.config.Ledger != nil {
		if err := r.config.Ledger(ctx, r.ledgerEntries); err != nil {
			r.broken = true
			return fmt.Errorf("replay: ledger: %w", err)
		}
		r.ledgerEntries = r.ledgerEntries[:0]
	}
	if err := r.config.Journal.append(ctx, entries); err != nil {
		r.broken = true
		return fmt.Errorf("replay: %w", err)
	}
	for i := len(r.unsaved); i < len(entries); i++ {
		r.history.items[entries[i].Item].apply(&entries[i])
	}
	if r.config.Progress != nil {
		for i := range r.unsaved {
			r.config.Progress(&r.plan.Items[r.unsaved[i].Item], r.unsaved[i].Outcome)
		}
	}
	r.unsaved = entries[:0]
	return nil
}

// send submits a message. The answer arrives on r.answers.
func (r *runner) send(t *attempt) {
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

// maxAttributes is the largest number of attributes that SQS accepts in a message.
const maxAttributes = 10

func (r *runner) submit(t *attempt, m *sqsfifo.Message) {
	ctx, cancel := r.sends, context.CancelFunc(nil)
	if !t.deadline.IsZero() {
		ctx, cancel = context.WithTimeoutCause(ctx, t.deadline.Sub(r.config.Now()), errTooLate)
	}
	r.config.Sender.SendMessageAsync(ctx, m, func(receipt sqsfifo.Receipt, err error) {
		r.answers <- answer{t, receipt, err, cancel}
	})
}

var errTooLate = errors.New("replay: SQS may not recognise another attempt")

func (r *runner) handleAnswer(a answer) {
	if a.cancel != nil {
		a.cancel()
	}
	var violation *sqsfifo.ViolationError
	if a.tagged && r.sends.Err() == nil && errors.As(a.err, &violation) {
		// The replay attribute made the message too large for SQS. Send the message
		// without it.
		a.tagged = false
		r.submit(a.attempt, a.message)
		return
	}
	r.inFlight--
	item := &r.plan.Items[a.item]
	r.bytes -= item.Size
	m := &journalEntry{Item: a.item, Outcome: outcomeOf(a.receipt, a.err), MessageID: a.receipt.MessageID, SequenceNumber: a.receipt.SequenceNumber}
	switch fate := sqsfifo.FateOf(a.err); {
	case fate == sqsfifo.Stored && a.receipt.MessageID != "" && a.receipt.MessageID == item.MessageID:
		m.Outcome = OutcomeSuppressed
	case fate == sqsfifo.NotStored:
		m.Refuted = true
		// If the run itself cancelled the send, the item has no outcome: the next run sends
		// the item.
		if r.sends.Err() != nil {
			m.Outcome = OutcomeNone
		}
	case fate == sqsfifo.Altered:
		m.NoResend = true
	}
	if a.err != nil {
		m.Reason = shorten(a.err.Error())
	}
	r.record(a.queue, m)
}

func outcomeOf(receipt sqsfifo.Receipt, err error) Outcome {
	var conflict *sqsfifo.ConflictError
	switch fate := sqsfifo.FateOf(err); {
	case fate == sqsfifo.Stored && receipt.Duplicate:
		return OutcomeSuppressed
	case fate == sqsfifo.Stored:
		return OutcomeSent
	case errors.As(err, &conflict) && conflict.Reuse == sqsfifo.ReuseDrift:
		return OutcomeDrift
	case errors.As(err, &conflict):
		return OutcomeConflict
	case fate == sqsfifo.NotStored:
		return OutcomeFailed
	default:
		return OutcomeUnresolved
	}
}

// record applies the outcome of a group's first item. The next call of the method `save`
// writes the journal entry m with this outcome. If the group may continue after the outcome,
// record moves the group to its next item. Otherwise the group stops.
func (r *runner) record(l *groupQueue, m *journalEntry) {
	m.Kind, m.At = entryEnd, r.config.Now().UTC().Round(0)
	p := &r.history.items[m.Item]
	p.apply(m)
	r.unsaved = append(r.unsaved, *m)
	if p.tried && m.Outcome != OutcomeNone {
		item, e := &r.plan.Items[m.Item], r.ledgerEntry(ledgerTriggered)
		e.Item, e.EventID, e.EventSource, e.DedupeKey = m.Item, item.EventID, item.EventSource, item.DedupeKey
		e.MessageGroup, e.BodyHash = item.Group, item.BodyHash
		e.Outcome, e.MessageID, e.SequenceNumber = m.Outcome, m.MessageID, m.SequenceNumber
		r.ledgerEntries = append(r.ledgerEntries, e)
	}
	r.meters.add(m.Outcome)
	switch {
	case p.groupContinues():
		l.items = l.items[1:]
		r.advance(l)
	case m.Outcome != OutcomeNone:
		r.logStop(m.Item, m.Outcome, m.Reason)
	}
}

func (r *runner) logStop(item int, o Outcome, reason string) {
	r.config.Logger.Warn("replay: a message group stops", "run", r.config.ID, "group", r.plan.Items[item].Group, "item", item, "outcome", string(o), "reason", reason)
}
