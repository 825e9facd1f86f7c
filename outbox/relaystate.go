package outbox

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/clock"
)

// shared is the part of a relay's state that outlives a leadership.
type shared struct {
	outbox *Outbox
	config RelayConfig
	token  string
	meters meters
	clock  *clock.Clock

	wake  chan struct{} // holds a signal to look for messages
	stop  chan struct{} // closed by Close
	abort chan struct{} // closed when the context of Close ends

	// confirmed lists the rows that the next commit deletes: SQS has confirmed their
	// messages, or they are late and the policy is LateAssumeSent. The list survives the
	// end of a leadership, because a confirmation holds for every leader. The goroutine
	// of Run owns confirmed.
	confirmed []completion

	mu    sync.Mutex
	stats RelayStats
	stops map[string]Stopped
}

func (s *shared) stopping() bool {
	select {
	case <-s.stop:
		return true
	default:
		return false
	}
}

// pause waits for d. It returns an error if Run must end.
func (s *shared) pause(ctx context.Context, d time.Duration) error {
	if s.stopping() {
		return errStopped
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-s.stop:
		return errStopped
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

var errStopped = errors.New("outbox: the relay was closed")

// recordFailure logs and counts a database error.
func (s *shared) recordFailure(what string, err error) {
	s.config.Logger.Error("outbox: the database failed", "holder", s.config.Holder, "at", what, "error", err)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.DatabaseErrors++
	s.stats.LastDatabaseError = err
}

func (s *shared) snapshot() RelayStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.stats
	for _, stopped := range s.stops {
		out.Stopped = append(out.Stopped, stopped)
	}
	slices.SortFunc(out.Stopped, func(a, b Stopped) int { return strings.Compare(a.Group, b.Group) })
	return out
}

// recordLeading records that this relay leads with the given fence, or no longer leads.
func (s *shared) recordLeading(yes bool, fence int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Leading = yes
	if yes {
		s.stats.Fence = fence
		s.stats.Terms++
	} else {
		s.stats.InFlight = 0
		clear(s.stops) // another relay decides about the stopped groups now
	}
}

func (s *shared) spent(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Commits++
	s.stats.Database += d
}

func (s *shared) count(done []completion, inFlight int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.InFlight = inFlight
	for _, c := range done {
		if c.Outcome == OutcomeDuplicate {
			s.stats.Duplicates++
		} else {
			s.stats.Sent++
		}
	}
}

// gauges returns the values of the gauges. If this relay does not lead, leading is false.
func (s *shared) gauges(ctx context.Context) (g gauges, leading bool, err error) {
	own := s.snapshot()
	if !own.Leading {
		return g, false, nil
	}
	g.stopped = len(own.Stopped)
	g.Stats, err = s.outbox.Stats(ctx)
	return g, true, err
}
