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

// TestSystem runs random systems on virtual time. Two runs of one seed do nearly the
// same: goroutines and the jitter of retries differ.
func TestSystem(t *testing.T) { systemtest.Run(t, 300, 60, memory) }

// Each promise can be broken, and the simulation notices: without the store, without the
// guard, with a store that grants what is in doubt, and with a network that delivers a
// request after SQS has forgotten the event.
func TestSabotageIsFound(t *testing.T) {
	for _, sabotage := range []string{"no store", "no guard", "generous store", "late network"} {
		t.Run(sabotage, func(t *testing.T) { systemtest.Find(t, sabotage, 200, memory) })
	}
}
