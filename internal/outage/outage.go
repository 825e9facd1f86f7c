// Package outage tracks whether a service answers, and reports each outage to a log.
package outage

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Log receives the beginning, the course and the end of an outage.
type Log interface {
	// CallsFail reports failed calls of a service since the last report, and the time of
	// the outage's first failure. The parameter `neverAnswered` is true if the service has
	// not answered yet.
	CallsFail(service string, neverAnswered bool, err error, failures int64, since time.Time)

	// Recovered reports the end of an outage, with its failed calls and its length.
	Recovered(service string, failures int64, lasted time.Duration)
}

// Service tracks one service, for example SQS or a store. It is safe for concurrent use.
type Service struct {
	name string
	log  Log

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
	cause    error // see KeepCause
}

// The values of Service.state.
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

// New returns a Service that has not answered yet. The name occurs in log records and
// errors, for example "SQS".
func New(name string, log Log) *Service { return &Service{name: name, log: log} }

// Record records the result of a call: an answer if err is nil, and a failure otherwise.
// The cause of a failure may be the service, the network or the configuration.
func (s *Service) Record(err error) {
	if err == nil {
		s.recordAnswer()
	} else {
		s.recordFailure(err)
	}
}

func (s *Service) recordAnswer() {
	if s.state.Load() == isWell {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Store(isWell)
	if s.logged {
		now := time.Now()
		s.log.Recovered(s.name, s.failures, now.Sub(s.since))
		s.next = now.Add(firstGap)
	}
	s.failures, s.logged = 0, false
}

func (s *Service) recordFailure(err error) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failures == 0 {
		s.since = now
	}
	s.state.CompareAndSwap(isWell, isFailing)
	s.failures++
	s.unlogged++
	if now.Before(s.next) {
		return
	}
	s.log.CallsFail(s.name, s.state.Load() == isNew, err, s.unlogged, s.since)
	if s.unlogged = 0; s.logged {
		s.gap = min(10*s.gap, maxGap)
	} else {
		s.gap = firstGap
	}
	s.logged, s.next = true, now.Add(s.gap)
}

// NeverAnswered reports whether the service has never answered.
func (s *Service) NeverAnswered() bool { return s.state.Load() == isNew }

// KeepCause keeps an error for the method Explain. The text of err must be safe to show: the
// failed request carried no event.
func (s *Service) KeepCause(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cause = err
}

// Explain adds to err the hint that the service has never answered. The text of err may be
// hidden, so Explain also adds the error of KeepCause, if there is one.
func (s *Service) Explain(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	const text = "%s has not answered this producer yet; check the configuration, or raise Delivery.StartFor: %w"
	if s.cause == nil {
		return fmt.Errorf(text, s.name, err)
	}
	return fmt.Errorf(text+"; %w", s.name, err, s.cause)
}
