package systemtest

import (
	"testing"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

func memory(_ *testing.T, now func() time.Time) worldStorage {
	m := &idempotency.Memory{Now: now}
	return worldStorage{Open: func() (idempotency.Store, error) { return m, nil }}
}

// TestSystem simulates one random system for each seed, with a store in memory, and checks
// the library's promises. Between two runs of the same seed, only the order of goroutines
// and the jitter of retries may differ.
func TestSystem(t *testing.T) { runSeeds(t, 300, 60, memory) }

// The checks detect each kind of sabotage: a producer or a consumer without a store, a
// store that grants claims it should refuse, and a network that delivers a request after
// SQS has forgotten the event.
func TestSabotageIsFound(t *testing.T) {
	for _, sabotage := range []string{"no store", "no store at the consumer", "generous store", "late network"} {
		t.Run(sabotage, func(t *testing.T) { mustFind(t, sabotage, 200, memory) })
	}
}
