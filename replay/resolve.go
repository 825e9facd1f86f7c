package replay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// ErrNotStopped is wrapped by an error of [Resolve]: only an item that stopped its message
// group can be resolved (see [Outcome.Stops]).
var ErrNotStopped = errors.New("the item did not stop its group")

// Resolve records an operator's decision about an unresolved, conflicting, drifted or
// failed item for the next run. It sends no message.
//
//   - [idempotency.ResolutionTookEffect]: the consumer has received the item. The item
//     counts as suppressed.
//   - [idempotency.ResolutionNoEffect]: the consumer has not received the item, or
//     recognises a second copy. The next run sends the item as if no run had tried it.
//   - [idempotency.ResolutionGiveUp]: the item must not be sent. The item counts as
//     skipped, and its group continues.
func Resolve(ctx context.Context, plan *Plan, j *Journal, item int, r idempotency.Resolution, now time.Time) error {
	if err := r.Check(); err != nil {
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
	if err := j.append(ctx, []journalEntry{{Kind: entryResolve, Item: item, At: now.UTC().Round(0), Resolution: r}}); err != nil {
		return fmt.Errorf("replay: resolve item %d: %w", item, err)
	}
	return nil
}
