package sqsfifo

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// outageLog logs the beginning, the course and the end of an outage.
type outageLog interface {
	callsFail(service string, neverAnswered bool, err error, failures int64, since time.Time)
	recovered(service string, failures int64, lasted time.Duration)
}

// health tracks whether a service (SQS or the store) answers, and logs outages. It is safe
// for concurrent use.
type health struct {
	name string // the service's name in log records and errors, for example "SQS"
	log  outageLog

	// state is isNew until the service answers for the first time, then isWell or
	// isFailing.
	state atomic.Int32

	mu       sync.Mutex
	since    time.Time // time of the first failure of the current outage
	failures int64     // number of failed calls in the current outage
	logged   bool      // the current outage was logged
	unlogged int64     // failed calls since the last log record
	next     time.Time // earliest time of the next log record about a failure
	gap      time.Duration
	cause    error // error of the last failed request for the queue's attributes; its text is safe to show
}

// The values of health.state, the state of the service.
const (
	isNew     int32 = iota // no answer yet
	isWell                 // the service answered the last call
	isFailing              // the service has answered before, but not the last call
)

// The time between two log records of one outage grows. An outage of ten minutes has
// three records, an outage of a day fewer than thirty.
const (
	firstGap = time.Minute
	maxGap   = time.Hour
)

// noteAnswer records an answer of the service.
func (h *health) noteAnswer() {
	if h.state.Load() == isWell {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.state.Store(isWell)
	if h.logged {
		now := time.Now()
		h.log.recovered(h.name, h.failures, now.Sub(h.since))
		h.next = now.Add(firstGap)
	}
	h.failures, h.logged = 0, false
}

// noteFailure records a failed call of the service. The cause may be the service, the
// network or the configuration.
func (h *health) noteFailure(err error) {
	now := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.failures == 0 {
		h.since = now
	}
	h.state.CompareAndSwap(isWell, isFailing)
	h.failures++
	h.unlogged++
	if now.Before(h.next) {
		return
	}
	h.log.callsFail(h.name, h.state.Load() == isNew, err, h.unlogged, h.since)
	if h.unlogged = 0; h.logged {
		h.gap = min(10*h.gap, maxGap)
	} else {
		h.gap = firstGap
	}
	h.logged, h.next = true, now.Add(h.gap)
}

func (h *health) note(err error) {
	if err == nil {
		h.noteAnswer()
	} else {
		h.noteFailure(err)
	}
}

// isUnproven reports whether the service has never answered.
func (h *health) isUnproven() bool { return h.state.Load() == isNew }

// keepCause keeps err, the error of a failed GetQueueAttributes request, for the method
// `neverAnswered`. The text of err is safe to show, because the request carries no event.
func (h *health) keepCause(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cause = err
}

// neverAnswered adds to err the hint that the service has never answered. The text of err
// may be hidden (see Telemetry.ShowErrorTexts), so neverAnswered also adds the error from
// keepCause, if there is one.
func (h *health) neverAnswered(err error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	const text = "%s has not answered this producer yet; check the configuration, or raise Delivery.StartFor: %w"
	if h.cause == nil {
		return fmt.Errorf(text, h.name, err)
	}
	return fmt.Errorf(text+"; %w", h.name, err, h.cause)
}
