package replay

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// The records of a plan in the store have the scope of the plan and one of these operations.
const (
	operationItem = "replay.item"
	operationRun  = "replay.run"
)

// StoreScope returns the scope of a plan's records in a store ([idempotency.Key]), for
// example to list the records or to resolve them.
func StoreScope(plan *Plan) string { return "replay:" + plan.ID }

// key returns the key of the item's record. Its Value begins with the number of the item.
func (p *PlannedItem) key(plan *Plan) idempotency.Key {
	number := strconv.Itoa(p.Number) + " "
	text := p.DedupeKey
	if len(number)+len(text) > idempotency.MaxValue {
		text = ""
	}
	return idempotency.Key{Scope: StoreScope(plan), Operation: operationItem, Value: number + text}
}

// progress is the state of one item according to its record.
type progress struct {
	outcome Outcome // an item in doubt has OutcomeUnresolved

	// at is the time of the first attempt to send the item, or zero. resendUntil is the time
	// until which SQS certainly recognises a resend of an item in doubt, or zero.
	at, resendUntil time.Time

	// newsSince is the time at which a recheck first found news of the source without a
	// time, or zero. It is not in the store.
	newsSince time.Time

	// resolved is true if an operator recorded that no attempt stored the item.
	resolved bool

	reason, messageID, sequence string
}

// altered begins the reason of an item of which SQS stored altered content. The item is not
// resent, because SQS might suppress the resend as a duplicate.
const altered = "altered"

// given is the reason of an item that an operator gave up: see Config.GiveUp.
const given = "given up"

// maxReason is the length in bytes of the reason in a record. With the outcome it is below
// idempotency.MaxReason.
const maxReason = 900

// textOf encodes an outcome and a reason as a text for the store, and parseText decodes the
// text. A reason that an operator wrote has no outcome.
func textOf(o Outcome, reason string) string {
	return strings.ToValidUTF8(fmt.Sprintf("%s: %s", o, strings.ReplaceAll(reason[:min(len(reason), maxReason)], "\x00", " ")), "?")
}

func parseText(text string) (Outcome, string) {
	if before, after, ok := strings.Cut(text, ": "); ok && slices.Contains(outcomes, Outcome(before)) {
		return Outcome(before), after
	}
	return OutcomeNone, text
}

// progressOf returns the state of an item with the record r.
func progressOf(r idempotency.Record) progress {
	p := progress{messageID: r.Result.MessageID, sequence: r.Result.SequenceNumber}
	switch r.Status {
	case idempotency.StatusSucceeded:
		if p.outcome, p.reason = parseText(string(r.Result.Response)); !p.outcome.groupContinues() { // an operator's response
			p.outcome, p.reason = OutcomeSuppressed, "resolved: "+string(idempotency.ResolutionTookEffect)
		}
	case idempotency.StatusFailed:
		if p.outcome, p.reason = parseText(r.Reason); p.outcome.groupContinues() || p.outcome == OutcomeUnresolved { // an operator's reason
			p.outcome, p.reason = OutcomeNone, r.Reason
		}
		p.resolved = p.outcome == OutcomeNone
	case idempotency.StatusRunning:
		p.outcome, p.resendUntil = OutcomeUnresolved, r.ResendUntil
		if _, p.reason = parseText(r.Reason); strings.HasPrefix(p.reason, altered) {
			p.resendUntil = time.Time{}
		}
	case idempotency.StatusAbsent:
		return progress{}
	}
	if !r.ResendUntil.IsZero() && p.outcome != OutcomeSkipped {
		p.at = r.Created
	}
	return p
}

// label returns the item's label at the time of the first attempt, or "" without an attempt.
func (p *progress) label(item *PlannedItem) Label {
	if p.at.IsZero() {
		return ""
	}
	return item.Sent.label(p.at)
}

// resendable reports whether SQS certainly recognises a resend of the item now.
func (p *progress) resendable(now time.Time) bool {
	return p.outcome == OutcomeUnresolved && !now.IsZero() && now.Before(p.resendUntil)
}

// history is the state of all items of a plan according to the store.
type history struct {
	items   []progress
	runs    int
	lastRun string // ID of the last run of the plan
}

// readHistory reads the records of a plan. A nil store has none.
func readHistory(ctx context.Context, plan *Plan, store idempotency.Store) (*history, error) {
	h := &history{items: make([]progress, len(plan.Items))}
	if store == nil {
		return h, nil
	}
	var last time.Time
	for r, err := range store.Scan(ctx, idempotency.Filter{Scope: StoreScope(plan)}) {
		if err != nil {
			return nil, fmt.Errorf("replay: read the store: %w", err)
		}
		if r.Key.Operation == operationRun {
			if h.runs++; r.Created.After(last) {
				last, h.lastRun = r.Created, r.Key.Value
			}
			continue
		}
		number, _, _ := strings.Cut(r.Key.Value, " ")
		n, err := strconv.Atoi(number)
		if err != nil || n < 0 || n >= len(h.items) {
			return nil, fmt.Errorf("replay: the store has a record of item %q, and the plan has %d items", number, len(h.items))
		}
		h.items[n] = progressOf(r)
	}
	return h, nil
}
