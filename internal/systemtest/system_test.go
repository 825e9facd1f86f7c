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

// TestSystem runs random systems in virtual time. Two runs of one seed are nearly
// equal: goroutines and the jitter of retries differ.
func TestSystem(t *testing.T) { systemtest.Run(t, 300, 60, memory) }

// The simulation detects each kind of sabotage: no store at the producer or the
// consumer, a store that grants operations in doubt, and a network that delivers a
// request after SQS has forgotten the event.
func TestSabotageIsFound(t *testing.T) {
	for _, sabotage := range []string{"no store", "no store at the consumer", "generous store", "late network"} {
		t.Run(sabotage, func(t *testing.T) { systemtest.Find(t, sabotage, 200, memory) })
	}
}
