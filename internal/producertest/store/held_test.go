package store

import (
	"encoding/json"
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

// With the order Runs, two events of a group are in one request. The first must wait for
// the lease of another process, so the second is held. The store has recorded the second
// with other bytes: the difference is counted and reported.
func TestDriftOfAHeldEventIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, store := producertest.NewQueue(t, sqstest.Config{}), new(idempotency.Memory)
		is := func(key string) idempotency.Fingerprint {
			return idempotency.FingerprintOf("sqsfifo.event/1", []byte(producertest.Source), []byte(key), []byte(`{}`))
		}
		recorded := `{"dedupe_key":"key","event_id":"01762f22-13fa-7e4c-a89b-094438f5fca0","event_source":"` + producertest.Source + `","event_time":"1999-01-01T00:00:00Z","payload":{}}`
		claimAndCrash(t, store, q, recorded, "g", is("key"))
		time.Sleep(30 * time.Second) // the lease is over
		c := rawConfig(q, store)
		c.Delivery.Order = sqsfifo.OrderRuns
		p, err := sqsfifo.NewProducer(q, c)
		require.NoError(t, err)
		events := make([]rawEvent, 2)
		for i, key := range []string{"first", "key"} {
			events[i] = rawEvent{key, "g", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), json.RawMessage(`{}`)}
		}
		first, err := p.Build(events[0])
		require.NoError(t, err)
		_, err = store.Claim(t.Context(), idempotency.Claim{
			Key:   idempotency.Key{Scope: idempotency.JoinScope("", q.ARN(), producertest.Source), Operation: "sqs.send", Value: "first"},
			Token: idempotency.NewToken(), Fingerprint: is("first"), ExactHash: idempotency.ExactHashOf([]byte(first.Body), "g"), Group: "g", Body: []byte(first.Body),
			Terms: idempotency.Terms{Lease: 30 * time.Second, TTL: time.Hour, ResendFor: 265 * time.Second},
		})
		require.NoError(t, err)

		var receipts []sqsfifo.Receipt
		for _, e := range events {
			require.NoError(t, p.TrySend(t.Context(), e, func(r sqsfifo.Receipt, err error) {
				assert.NoError(t, err)
				receipts = append(receipts, r)
			}))
		}
		closed(t, p)
		require.Len(t, receipts, 2)
		assert.Len(t, receipts[1].Findings, 1)
		assert.Equal(t, sqsfifo.BodyHash(recorded), receipts[1].BodyHash)
		assert.EqualValues(t, 1, p.Stats().Store.Drifts)
	})
}
