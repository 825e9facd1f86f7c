package replay

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Resolution is an operator's decision about an item that stopped its group.
type Resolution string

const (
	// ResolutionDelivered: the consumer has the item. It counts as suppressed.
	ResolutionDelivered Resolution = "delivered"

	// ResolutionResend: the consumer does not have the item, or recognises it. The next
	// run sends the item as if no run had tried it.
	ResolutionResend Resolution = "resend"

	// ResolutionDiscard: the item must not be sent. It counts as skipped, and its group
	// continues.
	ResolutionDiscard Resolution = "discard"
)

var resolutions = []Resolution{ResolutionDelivered, ResolutionResend, ResolutionDiscard}

// ErrNotStopped is wrapped by errors of [Resolve]: the item did not stop its group.
var ErrNotStopped = errors.New("the item did not stop its group")

// Resolve records a decision about an unresolved, conflicting, drifted or failed item for
// the next run. It sends no message.
func Resolve(ctx context.Context, plan *Plan, j *Journal, item int, r Resolution, now time.Time) error {
	if err := known("resolution", r, resolutions); err != nil {
		return fmt.Errorf("replay: resolve: %w", err)
	}
	h, err := readHistory(ctx, plan, j)
	if err != nil {
		return err
	}
	if item < 0 || item >= len(plan.Items) {
		return fmt.Errorf("replay: resolve: the plan has no item %d, only %d items", item, len(plan.Items))
	}
	if o := tally(plan, h, now).outcomes[item]; !o.Stops() {
		return fmt.Errorf("replay: resolve item %d, outcome %q: %w", item, o, ErrNotStopped)
	}
	if err := j.append(ctx, []mark{{Kind: markResolve, Item: item, At: now.UTC().Round(0), Resolution: r}}); err != nil {
		return fmt.Errorf("replay: resolve item %d: %w", item, err)
	}
	return nil
}
