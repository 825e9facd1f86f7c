package consumer

import (
	"fmt"
	"time"
)

const (
	// startupRetry is how long a new consumer tolerates denied access or a missing queue,
	// because a new pod's credentials may be late. After a successful receive it tolerates
	// them for deniedRetry, because a policy may be replaced.
	startupRetry = 15 * time.Second
	deniedRetry  = time.Minute
)

// noteFailedReceive counts a failed receive. It reports whether SQS has refused receives for so
// long that Run must end.
func (e *engine) noteFailedReceive(err error, denied bool) bool {
	now := e.clock.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stats.FailedReceives++
	f := &e.failing
	f.err = err
	if f.since == 0 {
		f.since = now
	}
	switch {
	case !denied:
		f.denied = 0
	case f.denied == 0:
		f.denied = now
	}
	tolerance := startupRetry
	if e.answered {
		tolerance = deniedRetry
	}
	return denied && now.Sub(f.denied) >= tolerance
}

// health returns an error if the last receive has failed.
func (e *engine) health() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.failure != nil:
		return e.failure
	case e.failing.err != nil:
		return fmt.Errorf("consumer: receives have failed for %v: %w", e.clock.Now().Sub(e.failing.since).Round(time.Second), e.failing.err)
	}
	return nil
}
