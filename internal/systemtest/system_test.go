package systemtest_test

import (
	"testing"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/systemtest"
)

func memory(_ *testing.T, now func() time.Time) systemtest.Storage {
	m := &idempotency.Memory{Now: now}
	return systemtest.Storage{Open: func() (idempotency.Store, error) { return m, nil }}
}

// TestSystem simulates one random system for each seed, with a store in memory, and checks
// the library's promises. Between two runs of the same seed, only the order of goroutines
// and the jitter of retries may differ.
func TestSystem(t *testing.T) { systemtest.Run(t, 300, 60, memory) }

// The checks detect each kind of sabotage: a producer or a consumer without a store, a
// store that grants claims it should refuse, and a network that delivers a request after
// SQS has forgotten the event.
func TestSabotageIsFound(t *testing.T) {
	for _, sabotage := range []string{"no store", "no store at the consumer", "generous store", "late network"} {
		t.Run(sabotage, func(t *testing.T) { systemtest.Find(t, sabotage, 200, memory) })
	}
}
