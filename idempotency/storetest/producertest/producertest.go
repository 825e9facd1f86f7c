// Package producertest checks that a producer keeps its promises with a store. Package
// storetest checks a store by its own interface; here the store is the one of
// sqsfifo.Config.Store, and the producer sends through the fake queue of package sqstest.
// It is a package of its own so that nobody who tests a store alone links the producer.
//
//	func TestProducer(t *testing.T) {
//		producertest.Run(t, func(t *testing.T) producertest.Storage {
//			...
//		})
//	}
//
// Producers are stopped and begin again, also in the middle of a request, with another
// encoder, and while the storage is out of reach. The time of the queue and of the storage
// is set forward; no check waits for five minutes.
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

// Storage is where the stores of the producers keep their records. Open and Advance are
// required.
type Storage struct {
	storetest.Storage

	// Outage puts the storage out of reach of all its stores, those that are open
	// included, until end is called. If it is nil, the check that needs it is skipped.
	Outage func() (end func(), err error)
}

// Run checks producers over the storage in one subtest for each promise. It calls fresh
// for new, empty storage in each.
func Run(t *testing.T, fresh func(t *testing.T) Storage) {
	for _, p := range promises {
		t.Run(p.name, func(t *testing.T) {
			s := fresh(t)
			if p.outage && s.Outage == nil {
				t.Skip("the storage has no Outage")
			}
			if err := p.hold(s); err != nil {
				t.Errorf("%v\n\trule: %s", err, p.rule)
			}
		})
	}
}

// Check is Run for use outside of a test: it returns what failed, each beginning with the
// name of the promise.
func Check(fresh func() Storage) []error {
	var failed []error
	for _, p := range promises {
		s := fresh()
		if p.outage && s.Outage == nil {
			continue
		}
		if err := p.hold(s); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", p.name, err))
		}
	}
	return failed
}

// promise is one of a producer with a store.
type promise struct {
	name, rule string
	outage     bool // is needed
	check      func(w *world) error
}

// hold runs the check over the storage.
func (p promise) hold(s Storage) error {
	queue, err := sqstest.NewQueue(sqstest.Config{})
	if err != nil {
		return err
	}
	w := &world{Storage: s, queue: queue}
	if s.Volatile { // while one store is open, nothing is forgotten
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

// promises are in the order in which they are checked.
var promises = []promise{
	{"restart", "what was sent is a duplicate after a restart and after five minutes, with the MessageID and SequenceNumber of the original, and makes no request", false, checkRestart},
	{"lost request", stored, false, checkStoredBytes(beforeRequest)},
	{"lost answer", stored, false, checkStoredBytes(afterRequest)},
	{"held", "what a process may have sent is not sent again when SQS does not recognise it any more", false, checkHeld},
	{"rivals", "of two producers that send the same events one stores each, and the other has its IDs", false, checkRivals},
	{"outage", "while the store is out of reach nothing is sent, unless FailOpen is set, and after it everything", true, checkOutage},
}

// world is what outlives the processes.
type world struct {
	Storage
	queue     *sqstest.Queue
	processes []*process
}

// pass lets time pass for the queue and the storage.
func (w *world) pass(d time.Duration) {
	w.queue.Advance(d)
	w.Advance(d)
}

// end ends the processes that are still there.
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
