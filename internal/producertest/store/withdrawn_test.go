package store

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/producertest"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// An event's context ends while the producer waits for the store's claim. The event was not
// sent, and its error says so. The claim is granted later and must leave no trace: the
// group is not paused, and a later submission is the first send of the event.
func TestWithdrawnWhileTheStoreClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		s := &testStore{Store: new(idempotency.Memory)}
		var records []sqsfifo.ProvenanceRecord
		p := producertest.On(t, q, q, withStore(s), func(c *sqsfifo.Config[producertest.Scene]) {
			c.Telemetry.Provenance = func(r sqsfifo.ProvenanceRecord) error { records = append(records, r); return nil }
		})
		s.fail(nil, func(call string) error {
			if call == "claim" {
				time.Sleep(2 * time.Second)
			}
			return nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := p.Send(ctx, producertest.Sample)
		var refused *sqsfifo.NotStoredError
		require.ErrorAs(t, err, &refused)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Zero(t, refused.Attempts)
		s.fail(nil, nil)
		time.Sleep(2 * time.Second)
		assert.Empty(t, q.Messages())
		assert.Empty(t, p.Paused())
		assert.Zero(t, p.Stats().RememberedKeys)
		assert.Equal(t, idempotency.StatusAbsent, record(t, s).Status)

		time.Sleep(time.Hour)
		r, err := p.Send(t.Context(), producertest.Sample)
		require.NoError(t, err)
		assert.False(t, r.Duplicate)
		assert.Equal(t, 1, r.Attempts)
		closed(t, p)
		require.Len(t, records, 2)
		assert.False(t, records[1].ReplayTriggered)
		assert.Len(t, q.Messages(), 1)
	})
}
