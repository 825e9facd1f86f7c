package replay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// LockedError reports that another run uses the source. No message was sent.
type LockedError struct {
	Source string
	Run    string    // the other run's ID, or "" if the store does not say it
	Until  time.Time // end of the other run's lease, unless that run renews it
}

func (e *LockedError) Error() string {
	return fmt.Sprintf("replay: not run: the source %q is being replayed by run %q, until %s at least; wait for its end or stop it", e.Source, e.Run, e.Until.Format(time.RFC3339))
}

// sourceLock is a claim of a source in the store. While the run renews the claim, no other
// run of the store can use the source. After a crash, the lease ends by itself.
type sourceLock struct {
	store idempotency.Store
	ref   idempotency.Ref
}

const (
	lockLease       = 30 * time.Second
	operationSource = "replay.source"
)

// processStart is the same in all tokens of this process, so two runs in one process never
// succeed each other.
var processStart = time.Now()

// lockSource claims the source for the run with the given ID.
func lockSource(ctx context.Context, c *Config, source string) (*sourceLock, error) {
	claim := idempotency.Claim{
		Key: idempotency.Key{Scope: "replay", Operation: operationSource, Value: hashOf(source)}, Token: idempotency.NewToken(),
		Fingerprint: idempotency.FingerprintOf(operationSource + "/1"), Group: c.ID,
		Terms: idempotency.Terms{Lease: lockLease, TTL: idempotency.Forever, ResendFor: idempotency.Forever},
	}
	if c.Owner != "" {
		claim.Token = idempotency.NewTokenOf(c.Owner, processStart)
	}
	for {
		out, err := c.Store.Claim(ctx, claim)
		switch {
		case err != nil:
			return nil, fmt.Errorf("replay: not run: lock the source: %w", err)
		case out.Decision == idempotency.DecisionInProgress:
			return nil, &LockedError{Source: source, Run: out.Record.Group, Until: out.Record.LeaseUntil}
		case !out.Decision.Granted():
			return nil, fmt.Errorf("replay: not run: lock the source: %w", out.Err(claim.Key))
		}
		l := &sourceLock{c.Store, out.Ref()}
		if out.Record.Group == c.ID {
			return l, nil
		}
		// The record names a run that was killed. Replace it.
		if err := l.end(ctx, idempotency.FailedWith(idempotency.Failure{Proof: idempotency.ProofForAll})); err != nil {
			return nil, err
		}
	}
}

// keep renews the lock until ctx ends. If this fails, it calls stop.
func (l *sourceLock) keep(ctx context.Context, stop context.CancelCauseFunc) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(lockLease / 3):
		}
		call, cancel := context.WithTimeout(ctx, lockLease/3)
		err := l.store.Extend(call, l.ref, lockLease)
		if cancel(); err != nil && ctx.Err() == nil {
			stop(fmt.Errorf("replay: keep the lock of the source: %w", err))
			return
		}
	}
}

// end ends the lock. Nil also means that another run took the lock over.
func (l *sourceLock) end(ctx context.Context, how idempotency.Ending) error {
	if err := l.store.Finish(ctx, l.ref, how); err != nil && !errors.Is(err, idempotency.ErrStaleClaim) {
		return fmt.Errorf("replay: release the lock of the source: %w", err)
	}
	return nil
}
