// Package producertest checks the promises of a producer with a store. Package storetest
// checks a store by its own interface; here the store is sqsfifo.Config.Store, and the
// producer sends to the fake queue of package sqstest. The package is separate so that
// tests of a store alone do not link the producer.
//
//	func TestProducer(t *testing.T) {
//		producertest.Run(t, func(t *testing.T) producertest.Storage {
//			...
//		})
//	}
//
// The checks stop and restart producers, some of them during a request. Some producers
// restart with another encoder, and some run during an outage of the storage. The checks
// advance the clocks of the queue and the storage; no check waits for five minutes.
package producertest

import (
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/storetest"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// Storage holds the records of the producers' stores. Open and Advance are required.
type Storage struct {
	storetest.Storage

	// Outage makes the storage unreachable for all its stores, including the open ones,
	// until end is called. If Outage is nil, the outage check is skipped.
	Outage func() (end func(), err error)
}

// Run checks producers with a store, one subtest per promise. The function `fresh` returns
// new, empty storage for a subtest.
func Run(t *testing.T, fresh func(t *testing.T) Storage) {
	for _, p := range promises {
		t.Run(p.name, func(t *testing.T) {
			s := fresh(t)
			if p.outage && s.Outage == nil {
				t.Skip("the storage has no Outage")
			}
			if err := p.verify(s); err != nil {
				t.Errorf("%v\n\trule: %s", err, p.rule)
			}
		})
	}
}

// Check is like Run but needs no test: it returns the failures. Each begins with the name
// of the failed check.
func Check(fresh func() Storage) []error {
	var failed []error
	for _, p := range promises {
		s := fresh()
		if p.outage && s.Outage == nil {
			continue
		}
		if err := p.verify(s); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", p.name, err))
		}
	}
	return failed
}

// promise is a guarantee that a producer with a store gives, and the check of this
// guarantee.
type promise struct {
	name, rule string
	outage     bool // the check needs Storage.Outage
	check      func(w *world) error
}

// verify runs p.check with the storage s and a new fake queue.
func (p promise) verify(s Storage) error {
	queue, err := sqstest.NewQueue(sqstest.Config{})
	if err != nil {
		return err
	}
	w := &world{Storage: s, queue: queue}
	// A volatile storage loses its records when its last store is closed, so keep a store
	// open.
	if s.Volatile {
		kept, err := s.Open()
		if err != nil {
			return err
		}
		defer closeStore(kept)
	}
	defer w.end()
	return p.check(w)
}

const stored = "what a process has claimed goes out as it was, once, whatever the encoder of the next process makes of it"

// promises are checked in this order. Run prints the second text of a promise after its
// failure.
var promises = []promise{
	{"restart", "what was sent is a duplicate after a restart and after five minutes, with the MessageID and SequenceNumber of the original, and makes no request", false, checkRestart},
	{"lost request", stored, false, checkStoredBytes(beforeRequest)},
	{"lost answer", stored, false, checkStoredBytes(afterRequest)},
	{"held", "what a process may have sent is not sent again when SQS does not recognise it any more", false, checkHeld},
	{"rivals", "of two producers that send the same events one stores each, and the other has its IDs", false, checkRivals},
	{"outage", "while the store is out of reach nothing is sent, unless FailOpen is set, and after it everything", true, checkOutage},
}

// world holds the state that survives a process.
type world struct {
	Storage
	queue     *sqstest.Queue
	processes []*process
}

func (w *world) pass(d time.Duration) {
	w.queue.Advance(d)
	w.Advance(d)
}

func (w *world) end() {
	for _, p := range w.processes {
		p.crash()
		_ = p.stop()
	}
}

func closeStore(s idempotency.Store) error {
	if c, ok := s.(io.Closer); ok {
		return c.Close()
	}
	return nil
}
