package clock

import (
	"sync/atomic"
	"time"
)

// StepTolerance is the longest backward step of a store's clock that stores and the
// outbox ignore. The step can delay a resend by up to five seconds. This does no harm,
// because the time limit for resends is five seconds shorter than necessary
// (window.Slack).
const StepTolerance = 5 * time.Second

// SetBack is the reason recorded for an operation that was in progress when the store's
// clock was set back (idempotency.Failure.Reason).
const SetBack = "the clock of the store was set back: nobody knows whether a resend is safe"

// Largest keeps the largest of the numbers given to Raise, such as times in microseconds.
// The zero value has the number 0. Largest is safe for concurrent use.
type Largest struct{ n atomic.Int64 }

// Load returns the number.
func (l *Largest) Load() int64 { return l.n.Load() }

// Swap sets the number to n, even if n is smaller, and returns the earlier number.
func (l *Largest) Swap(n int64) int64 { return l.n.Swap(n) }

// Raise sets the number to n if n is larger.
func (l *Largest) Raise(n int64) {
	for old := l.n.Load(); n > old && !l.n.CompareAndSwap(old, n); old = l.n.Load() {
	}
}
