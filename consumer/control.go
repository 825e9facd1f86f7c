package consumer

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

func (e *engine) snapshot() Stats {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.stats
	s.Messages, s.Bytes = e.kept, e.keptBytes
	s.Running, s.Sleeping, s.Blocked = e.running, e.count[stateSleeping], e.count[stateBlocked]
	for b := range e.batches {
		if b.state != stateQueued {
			s.OldestHead = max(s.OldestHead, time.Since(b.headSince))
		}
	}
	return s
}

func (e *engine) blocked() []BlockedGroup {
	var out []BlockedGroup
	e.mu.Lock()
	for b := range e.batches {
		if len(b.items) == 0 || b.headError == nil || b.state == stateQueued || b.state == stateEnding {
			continue
		}
		it := b.items[0]
		out = append(out, BlockedGroup{
			Group: b.group, MessageID: it.id(), Key: b.headKey, Attempts: b.headAttempts, Receives: it.receives, Cause: b.headError,
			Since: b.headSince, Messages: len(b.items), Blocked: b.state == stateBlocked, NoRoom: b.state == stateBlocked && e.stats.NoRoom,
		})
	}
	e.mu.Unlock()
	slices.SortFunc(out, func(a, b BlockedGroup) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Group, b.Group))
	})
	return out
}

func (e *engine) waitIdle(ctx context.Context, d time.Duration) error {
	ticker := time.NewTicker(max(d/20, time.Millisecond))
	defer ticker.Stop()
	since, received := e.clock.Now(), int64(-1)
	for {
		now := e.clock.Now()
		e.mu.Lock()
		failing := e.failing.since
		busy := len(e.batches) > e.count[stateBlocked] || failing != 0 || e.stats.Received != received
		received = e.stats.Received
		e.mu.Unlock()
		switch {
		case failing != 0 && now.Sub(failing) >= max(d, startupRetry):
			if err := e.health(); err != nil {
				return err
			}
		case busy:
			since = now
		case now.Sub(since) >= d:
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// resting returns the batch in progress of a group, if its first message waits for the next
// attempt (sleeping) or for an operator (blocked). The caller holds e.mu.
func (e *engine) resting(group string) (*groupBatch, error) {
	runs := e.byGroup[group]
	if len(runs) == 0 || len(runs[0].items) == 0 || runs[0].state != stateBlocked && runs[0].state != stateSleeping {
		return nil, fmt.Errorf("%w: %q", ErrNotBlocked, group)
	}
	return runs[0], nil
}

// unresolvedKey returns the key of a blocked group's first message if the store has no outcome
// for it, else a zero key.
func (e *engine) unresolvedKey(group string) idempotency.Key {
	e.mu.Lock()
	defer e.mu.Unlock()
	b, err := e.resting(group)
	if err != nil {
		return idempotency.Key{}
	}
	return b.items[0].unresolved
}

func (e *engine) retry(group string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	b, err := e.resting(group)
	if err != nil {
		return err
	}
	select {
	case b.requests <- operatorRequest{done: make(chan error, 1)}:
	default: // the batch already has an operator's request; drop this one
	}
	return nil
}

func (e *engine) parkHead(ctx context.Context, group, messageID string) error {
	if e.parking == nil {
		return invalid("Failure.ParkingQueue", "empty; set it to park messages")
	}
	o := operatorRequest{park: true, done: make(chan error, 1)}
	e.mu.Lock()
	b, err := e.resting(group)
	switch {
	case err != nil:
	case b.items[0].id() != messageID:
		err = fmt.Errorf("%w: group %q, message %s", ErrNotHead, group, messageID)
	default:
		select {
		case b.requests <- o:
		default:
			err = fmt.Errorf("%w: group %q is being retried", ErrNotBlocked, group)
		}
	}
	e.mu.Unlock()
	if err != nil {
		return err
	}
	select {
	case err := <-o.done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (e *engine) pause(paused bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.paused = paused
	e.cond.Broadcast()
}
