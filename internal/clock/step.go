package clock

import (
	"sync/atomic"
	"time"
)

// StepTolerance is the longest backward step of a store's clock that stores and the
// outbox ignore. Even after such a step, a resend reaches SQS in time: the time limit for
// resends includes a reserve of the same length (window.Slack).
const StepTolerance = 5 * time.Second

// SetBack is the reason recorded for an operation that was in progress when the store's
// clock was set back (idempotency.Failure.Reason).
const SetBack = "the clock of the store was set back: nobody knows whether a resend is safe"

// Largest is the largest of the numbers given to Raise, such as times in microseconds. The
// zero value is 0. Largest is safe for concurrent use.
type Largest struct{ n atomic.Int64 }

// Load returns the largest number so far.
func (l *Largest) Load() int64 { return l.n.Load() }

// Store replaces the largest number by n, even if n is smaller. For example, after a clock
// was set back, n is the current time.
func (l *Largest) Store(n int64) { l.n.Store(n) }

// Raise keeps n if n is larger than the largest number so far.
func (l *Largest) Raise(n int64) {
	for old := l.n.Load(); n > old && !l.n.CompareAndSwap(old, n); old = l.n.Load() {
	}
}
