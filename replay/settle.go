package replay

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Verdict is what an operator knows of an item that stopped its group.
type Verdict uint8

const (
	// VerdictDelivered: the consumer has it. It counts as suppressed.
	VerdictDelivered Verdict = iota + 1

	// VerdictSendAgain: the consumer does not have it, or recognises it. The next run
	// sends it as if it had never been tried.
	VerdictSendAgain

	// VerdictDiscard: it is not to be sent. It counts as skipped, and its group goes on
	// without it.
	VerdictDiscard
)

var verdictNames = names{"", "delivered", "send_again", "discard"}

// String returns the verdict as a journal has it.
func (v Verdict) String() string { return verdictNames.of(uint8(v), "Verdict") }

// MarshalText returns String.
func (v Verdict) MarshalText() ([]byte, error) { return verdictNames.marshal(uint8(v), "Verdict") }

// UnmarshalText is the inverse of MarshalText.
func (v *Verdict) UnmarshalText(text []byte) error {
	return verdictNames.unmarshal(text, (*uint8)(v), "Verdict")
}

// ErrNotStopped is wrapped by errors of [Settle]: the item did not stop its group.
var ErrNotStopped = errors.New("the item did not stop its group")

// Settle notes what becomes of an item that is indeterminate, a conflict, drifted or
// failed, for the next run. It sends nothing.
func Settle(ctx context.Context, plan *Plan, j Journal, item int, v Verdict, now time.Time) error {
	if v < VerdictDelivered || v > VerdictDiscard {
		return fmt.Errorf("replay: settle: unknown verdict %d; want VerdictDelivered, VerdictSendAgain or VerdictDiscard", v)
	}
	h, err := readHistory(ctx, plan, j)
	if err != nil {
		return err
	}
	if item < 0 || item >= len(plan.Items) {
		return fmt.Errorf("replay: settle: the plan has no item %d, only %d items", item, len(plan.Items))
	}
	if p := tally(plan, h, now).outcomes[item]; !p.Stops() {
		return fmt.Errorf("replay: settle item %d, which is %v: %w", item, p, ErrNotStopped)
	}
	if err := j.Append(ctx, []Mark{{Kind: MarkSettle, Item: item, At: now.UTC().Round(0), Verdict: v}}); err != nil {
		return fmt.Errorf("replay: settle item %d: %w", item, err)
	}
	return nil
}
