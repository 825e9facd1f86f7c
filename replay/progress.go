package replay

import (
	"context"
	"fmt"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// progress is the state of one item according to the journal.
type progress struct {
	outcome    Outcome // the last outcome
	label      Label
	tried      bool
	resolution idempotency.Resolution

	// doubtSince is the start of the first attempt in doubt, or zero.
	doubtSince time.Time
	retried    bool // another attempt followed
	// newsSince is the time at which a recheck first found news of the source without a
	// time, or zero. It is not in the journal.
	newsSince time.Time
	// noResend is true if SQS stored altered content and might suppress a resend as a
	// duplicate.
	noResend bool

	reason, messageID, sequence string
}

// groupContinues reports whether the item was sent, suppressed or skipped. Only then may
// the group's next item be sent.
func (p *progress) groupContinues() bool {
	return p.outcome == OutcomeSent || p.outcome == OutcomeSuppressed || p.outcome == OutcomeSkipped
}

// apply changes the state of the item according to an entry of the journal.
func (p *progress) apply(m *journalEntry) {
	switch m.Kind {
	case entryTry:
		p.retried = !p.doubtSince.IsZero()
		if !p.retried {
			p.doubtSince = m.At
		}
		p.outcome, p.label, p.tried, p.reason = OutcomeNone, m.Label, true, ""
	case entryEnd:
		p.outcome, p.reason = m.Outcome, m.Reason
		p.messageID, p.sequence = m.MessageID, m.SequenceNumber
		p.noResend = p.noResend || m.NoResend
		// A refused retry does not end the doubt about the first attempt.
		if p.groupContinues() || m.Refuted && !p.retried {
			p.doubtSince = time.Time{}
		}
	case entryResolve:
		p.resolution = m.Resolution
		p.doubtSince, p.retried, p.noResend = time.Time{}, false, false
		switch m.Resolution {
		case idempotency.ResolutionTookEffect:
			p.outcome = OutcomeSuppressed
		case idempotency.ResolutionGiveUp:
			p.outcome = OutcomeSkipped
		case idempotency.ResolutionNoEffect:
			p.outcome = OutcomeNone
		}
		p.reason = "resolved: " + string(m.Resolution)
	case entryBegin:
	}
}

// resendable reports whether SQS certainly recognises a resend of the item now.
func (p *progress) resendable(now time.Time) bool {
	return !p.noResend && Sent{From: p.doubtSince, To: p.doubtSince}.label(now) == LabelInside
}

// history is the state of all items of a plan according to the journal.
type history struct {
	items   []progress
	runs    int
	lastRun string // ID of the last run of the plan
}

// readHistory reads a journal. A nil journal is empty.
func readHistory(ctx context.Context, plan *Plan, j *Journal) (*history, error) {
	h := &history{items: make([]progress, len(plan.Items))}
	if j == nil {
		return h, nil
	}
	n := 0
	for m, err := range j.entries(ctx) {
		if err != nil {
			return nil, fmt.Errorf("replay: read the journal: %w", err)
		}
		n++
		if err := h.apply(plan, &m); err != nil {
			return nil, fmt.Errorf("replay: entry %d of the journal: %w", n, err)
		}
	}
	return h, nil
}

func (h *history) apply(plan *Plan, m *journalEntry) error {
	switch m.Kind {
	case entryBegin:
		if m.Plan != plan.ID {
			return fmt.Errorf("it is about plan %.16s and not about %.16s; use one journal for each plan", m.Plan, plan.ID)
		}
		h.runs++
		h.lastRun = m.Run
	case entryTry, entryEnd, entryResolve:
		if h.runs == 0 && m.Kind != entryResolve {
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
