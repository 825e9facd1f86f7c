// Package producertest has what the packages below share: an event type with its
// configuration, queues, and clients with faults. These packages test producers through the
// public names of package sqsfifo, one package for each promise:
//
//   - message: events become messages, with keys and IDs that only the event determines
//   - order: the order of message groups, requests, buffers, pauses, contexts and Close
//   - doubt: retries, duplicates, and events in doubt
//   - store: producers with a store
//   - model: random programs in virtual time, without and with a store
//   - telemetry: the information for an operator, from Preflight to the records of provenance
package producertest

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/wire"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// NewQueue returns a new fake queue.
func NewQueue(t testing.TB, c sqstest.Config) *sqstest.Queue {
	t.Helper()
	q, err := sqstest.NewQueue(c)
	require.NoError(t, err)
	return q
}

// On returns a new producer of scenes for an existing queue, like a producer
// in another process.
func On(t testing.TB, client sqsfifo.Client, q *sqstest.Queue, change ...func(*sqsfifo.Config[Scene])) *sqsfifo.Producer[Scene] {
	t.Helper()
	c := Config()
	c.QueueURL = q.URL()
	for _, f := range change {
		f(&c)
	}
	p, err := sqsfifo.NewProducer(client, c)
	require.NoError(t, err)
	return p
}

// WithBothClients runs f twice, each time in a bubble of virtual time: with the queue itself
// as the client, and with a client like those of sqsfifo.NewClient that talks HTTP to the
// queue.
func WithBothClients(t *testing.T, c sqstest.Config, f func(t *testing.T, q *sqstest.Queue, client sqsfifo.Client)) {
	t.Helper()
	t.Run("in process", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			q := NewQueue(t, c)
			f(t, q, q)
		})
	})
	t.Run("sqs.Client", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			q := NewQueue(t, c)
			f(t, q, q.Client(wire.Use))
		})
	})
}

// Leftovers describes what a closed producer still has in memory. It returns "" if there is
// nothing.
func Leftovers[T any](p *sqsfifo.Producer[T]) string {
	s := p.Stats()
	if s.Events+s.Bytes+s.Requests == 0 {
		return ""
	}
	return fmt.Sprintf("%d events, %d bytes, %d requests", s.Events, s.Bytes, s.Requests)
}

// AssertOrder checks that each group's messages are in the queue in the order of their
// scene IDs, which contain increasing numbers.
func AssertOrder(t *testing.T, q *sqstest.Queue) {
	t.Helper()
	last := map[string]string{}
	for _, m := range q.Messages() {
		e, err := sqsfifo.DecodeEnvelope[Scene](m.Body)
		require.NoError(t, err)
		assert.Less(t, last[m.GroupID], e.Payload.ID, "group %s", m.GroupID)
		last[m.GroupID] = e.Payload.ID
	}
}

// Stored returns a callback that fails the test if its event is not stored.
func Stored(t *testing.T) func(sqsfifo.Receipt, error) {
	return func(_ sqsfifo.Receipt, err error) { assert.NoError(t, err) }
}

// InDoubt injects the faults into the queue, sends the event Sample, and returns
// the resulting InDoubtError. The context of the send ends after one second. The last
// fault repeats until then.
func InDoubt(t *testing.T, p *sqsfifo.Producer[Scene], q *sqstest.Queue, faults ...sqstest.Fault) *sqsfifo.InDoubtError {
	t.Helper()
	q.ClearFaults()
	for i, f := range faults {
		n := 1
		if i == len(faults)-1 {
			n = 100_000
		}
		q.Inject(f, n)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := p.Send(ctx, Sample)
	var doubt *sqsfifo.InDoubtError
	require.ErrorAs(t, err, &doubt)
	return doubt
}
