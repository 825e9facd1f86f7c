package replay

import (
	"context"
	"fmt"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// progress is what the journal says about one item.
type progress struct {
	outcome    Outcome // the last outcome
	label      Label
	tried      bool
	resolution idempotency.Resolution

	// doubt is the start of the first attempt that may have stored the item and has no
	// answer. It is zero if there is no such attempt. The field earlier reports that the
	// last attempt is a later one: a refusal of the last attempt then leaves the item in
	// doubt.
	doubt    time.Time
	earlier  bool
	noResend bool // SQS stored other content in place of the item

	reason, messageID, sequence string
}

// done reports whether the group continues after the item.
func (p *progress) done() bool {
	return p.outcome == OutcomeSent || p.outcome == OutcomeSuppressed || p.outcome == OutcomeSkipped
}

// apply changes the state of the item according to a mark, an entry of the journal.
func (p *progress) apply(m *mark) {
	switch m.Kind {
	case markTry:
		p.earlier = !p.doubt.IsZero()
		if !p.earlier {
			p.doubt = m.At
		}
		p.outcome, p.label, p.tried, p.reason = OutcomeNone, m.Label, true, ""
	case markEnd:
		p.outcome, p.reason = m.Outcome, m.Reason
		p.messageID, p.sequence = m.MessageID, m.SequenceNumber
		p.noResend = p.noResend || m.NoResend
		if p.done() || m.Refuted && !p.earlier {
			p.doubt = time.Time{}
		}
	case markResolve:
		p.resolution = m.Resolution
		p.doubt, p.earlier, p.noResend = time.Time{}, false, false
		switch m.Resolution {
		case idempotency.ResolutionTookEffect:
			p.outcome = OutcomeSuppressed
		case idempotency.ResolutionGiveUp:
			p.outcome = OutcomeSkipped
		case idempotency.ResolutionNoEffect:
			p.outcome = OutcomeNone
		}
		p.reason = "resolved: " + string(m.Resolution)
	case markBegin:
	}
}

// resendable reports whether SQS certainly recognises a resend of the item now.
func (p *progress) resendable(now time.Time) bool {
	return !p.noResend && Sent{From: p.doubt, To: p.doubt}.label(now) == LabelInside
}

// history is what the journal says about all items of a plan.
type history struct {
	items []progress
	runs  int
	run   string // ID of the last run
}

// readHistory reads a journal. A nil journal is empty.
func readHistory(ctx context.Context, plan *Plan, j *Journal) (*history, error) {
	h := &history{items: make([]progress, len(plan.Items))}
	if j == nil {
		return h, nil
	}
	n := 0
	for m, err := range j.marks(ctx) {
		if err != nil {
			return nil, fmt.Errorf("replay: read the journal: %w", err)
		}
		n++
		if err := h.apply(plan, &m); err != nil {
			return nil, fmt.Errorf("replay: mark %d of the journal: %w", n, err)
		}
	}
	return h, nil
}

func (h *history) apply(plan *Plan, m *mark) error {
	switch m.Kind {
	case markBegin:
		if m.Plan != plan.ID {
			return fmt.Errorf("it is about plan %.16s and not about %.16s; use one journal for each plan", m.Plan, plan.ID)
		}
		h.runs++
		h.run = m.Run
	case markTry, markEnd, markResolve:
		if h.runs == 0 && m.Kind != markResolve {
			return fmt.Errorf("%s before any run began", m.Kind)
		}
		if m.Item < 0 || m.Item >= len(h.items) {
			return fmt.Errorf("it is about item %d of %d", m.Item, len(h.items))
		}
		h.items[m.Item].apply(m)
	default:
		return fmt.Errorf("unknown kind %q", m.Kind)
	}
	return nil
}
