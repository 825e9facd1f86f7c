package replay

import (
	"context"
	"fmt"
	"time"
)

// progress is what the marks of a journal say of one item.
type progress struct {
	outcome Outcome // the last one
	label   Label
	tried   bool
	verdict Verdict

	// doubt is when the first attempt began that may have stored the item and has no
	// proof; zero without one. Earlier says that there was one before the last MarkTry.
	doubt   time.Time
	earlier bool
	held    bool

	reason, messageID, sequence string
}

// done reports whether the group goes on after the item.
func (p *progress) done() bool {
	return p.outcome == OutcomeSent || p.outcome == OutcomeSuppressed || p.outcome == OutcomeSkipped
}

// apply notes a mark.
func (p *progress) apply(m *Mark) {
	switch m.Kind {
	case MarkTry:
		p.earlier = !p.doubt.IsZero()
		if !p.earlier {
			p.doubt = m.At
		}
		p.outcome, p.label, p.tried, p.reason = None, m.Label, true, ""
	case MarkEnd:
		p.outcome, p.reason = m.Outcome, m.Reason
		p.messageID, p.sequence = m.MessageID, m.SequenceNumber
		p.held = p.held || m.Held
		if p.done() || m.Refuted && !p.earlier {
			p.doubt = time.Time{}
		}
	case MarkSettle:
		p.verdict = m.Verdict
		p.doubt, p.earlier, p.held = time.Time{}, false, false
		switch m.Verdict {
		case VerdictDelivered:
			p.outcome = OutcomeSuppressed
		case VerdictDiscard:
			p.outcome = OutcomeSkipped
		case VerdictSendAgain:
			p.outcome = None
		}
		p.reason = "settled: " + m.Verdict.String()
	case MarkBegin:
	}
}

// resendable reports whether SQS surely recognises another attempt at now.
func (p *progress) resendable(now time.Time) bool {
	return !p.held && Sent{From: p.doubt, To: p.doubt}.Label(now) == Inside
}

// history is what a journal says of a plan.
type history struct {
	items []progress
	runs  int
	run   string // the last one
}

func readHistory(ctx context.Context, plan *Plan, j Journal) (*history, error) {
	h := &history{items: make([]progress, len(plan.Items))}
	n := 0
	for m, err := range j.Marks(ctx) {
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

func (h *history) apply(plan *Plan, m *Mark) error {
	switch m.Kind {
	case MarkBegin:
		if m.Plan != plan.ID {
			return fmt.Errorf("it is about plan %.16s and not about %.16s; use one journal for each plan", m.Plan, plan.ID)
		}
		h.runs++
		h.run = m.Run
	case MarkTry, MarkEnd, MarkSettle:
		if h.runs == 0 && m.Kind != MarkSettle {
			return fmt.Errorf("%v before any run began", m.Kind)
		}
		if m.Item < 0 || m.Item >= len(h.items) {
			return fmt.Errorf("it is about item %d of %d", m.Item, len(h.items))
		}
		h.items[m.Item].apply(m)
	default:
		return fmt.Errorf("unknown kind %v", m.Kind)
	}
	return nil
}
