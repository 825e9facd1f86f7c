package store

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/producertest"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// The time limits of the store and of the delivery must fit into the deduplication
// interval and the TTL.
func TestStoreConfig(t *testing.T) {
	q := producertest.NewQueue(t, sqstest.Config{})
	for _, tc := range []struct {
		name   string
		change func(*sqsfifo.Config[producertest.Scene])
		field  string // field at fault, "" without a fault
	}{
		{"usual", func(*sqsfifo.Config[producertest.Scene]) {}, ""},
		{"no store", func(c *sqsfifo.Config[producertest.Scene]) { c.Store = sqsfifo.StoreConfig{TTL: time.Hour} }, "Store.Store"},
		{"nil store", func(c *sqsfifo.Config[producertest.Scene]) { c.Store.Store = (*idempotency.Memory)(nil) }, "Store.Store"},
		{"longest retries", func(c *sqsfifo.Config[producertest.Scene]) { c.Delivery.RetryFor = 265 * time.Second }, ""},
		{"longer retries", func(c *sqsfifo.Config[producertest.Scene]) { c.Delivery.RetryFor = 265*time.Second + 1 }, "Delivery.RetryFor"},
		{"a slower store", func(c *sqsfifo.Config[producertest.Scene]) { c.Store.Timeout = 30 * time.Second }, ""},
		{"and longer retries", func(c *sqsfifo.Config[producertest.Scene]) {
			c.Store.Timeout, c.Delivery.RetryFor = 30*time.Second, 240*time.Second+1
		}, "Delivery.RetryFor"},
		{"too slow", func(c *sqsfifo.Config[producertest.Scene]) { c.Store.Timeout = time.Minute + 1 }, "Store.Timeout"},
		{"negative", func(c *sqsfifo.Config[producertest.Scene]) { c.Store.Timeout = -1 }, "Store.Timeout"},
		{"shortest TTL", func(c *sqsfifo.Config[producertest.Scene]) { c.Store.TTL = 290 * time.Second }, ""},
		{"shorter TTL", func(c *sqsfifo.Config[producertest.Scene]) { c.Store.TTL = 290*time.Second - 1 }, "Store.TTL"},
		{"negative TTL", func(c *sqsfifo.Config[producertest.Scene]) { c.Store.TTL = -1 }, "Store.TTL"},
		{"forever", func(c *sqsfifo.Config[producertest.Scene]) { c.Store.TTL = idempotency.Forever }, ""},
		{"unknown", func(c *sqsfifo.Config[producertest.Scene]) { c.Store.Unresolved = 2 }, "Store.Unresolved"},
		{"long client", func(c *sqsfifo.Config[producertest.Scene]) { c.Store.Client = strings.Repeat("c", 201) }, "Store.Client"},
		{"long queue", func(c *sqsfifo.Config[producertest.Scene]) { c.Store.Queue = strings.Repeat("c", 201) }, "Store.Queue"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := producertest.Config()
			c.QueueURL, c.Store.Store = q.URL(), new(idempotency.Memory)
			tc.change(&c)
			_, err := sqsfifo.NewProducer(q, c)
			if tc.field == "" {
				require.NoError(t, err)
				return
			}
			var fault *sqsfifo.InvalidError
			require.ErrorAs(t, err, &fault)
			assert.Equal(t, "Config."+tc.field, fault.Field, "%v", err)
		})
	}

	queue, err := sqsfifo.NewQueue(q, sqsfifo.QueueConfig{URL: q.URL()})
	require.NoError(t, err)
	c := producertest.Config()
	c.QueueURL, c.Store.Store = "", new(idempotency.Memory)
	_, err = sqsfifo.NewProducerOn(queue, c)
	var fault *sqsfifo.InvalidError
	require.ErrorAs(t, err, &fault)
	require.Equal(t, "Config.Store", fault.Field)
}

// The store treats events with different clients, sources or queues as different events.
// Queues with the same Config.Store.Queue count as one queue.
func TestScopeOfEvents(t *testing.T) {
	q, r := producertest.NewQueue(t, sqstest.Config{}), producertest.NewQueue(t, sqstest.Config{Name: "other.fifo"})
	store := new(idempotency.Memory)
	send := func(q *sqstest.Queue, change ...func(*sqsfifo.Config[producertest.Scene])) bool {
		p := producertest.On(t, q, q, append([]func(*sqsfifo.Config[producertest.Scene]){withStore(store)}, change...)...)
		receipt, err := p.Send(t.Context(), producertest.Sample)
		require.NoError(t, err)
		closed(t, p)
		return receipt.Duplicate
	}
	client := func(c *sqsfifo.Config[producertest.Scene]) { c.Store.Client = "another" }
	from := func(c *sqsfifo.Config[producertest.Scene]) { c.Source = "kfm.remote-sensing.another" }
	named := func(c *sqsfifo.Config[producertest.Scene]) { c.Store.Queue = "scenes" }
	for _, again := range []bool{false, true} {
		assert.Equal(t, again, send(q))
		assert.Equal(t, again, send(q, client))
		assert.Equal(t, again, send(q, from))
		assert.Equal(t, again, send(r))
	}
	assert.False(t, send(q, named))
	assert.True(t, send(r, named))
	require.Len(t, q.Messages(), 2, "those of another client have the bytes that SQS knows")
}

// The store limits the length of a key's scope (client, queue and source) and of the
// event's own key. The producer replaces a longer scope or key by its hash.
func TestScopeThatIsTooLong(t *testing.T) {
	q := producertest.NewQueue(t, sqstest.Config{})
	store := new(idempotency.Memory)
	long := func(c *sqsfifo.Config[producertest.Scene]) {
		c.Store.Client, c.Store.Queue = strings.Repeat(":", 200), strings.Repeat("%", 200)
	}
	p := producertest.On(t, q, q, withStore(store), long)
	_, err := p.Send(t.Context(), producertest.Sample)
	require.NoError(t, err)
	closed(t, p)
	require.Regexp(t, "^sha256:[0-9a-f]{64}$", record(t, store).Key.Scope)
}

// The record contains the exact bytes and the dataset of the event.
func TestWhatTheStoreHas(t *testing.T) {
	q := producertest.NewQueue(t, sqstest.Config{})
	store := new(idempotency.Memory)
	p := producertest.On(t, q, q, withStore(store), func(c *sqsfifo.Config[producertest.Scene]) {
		c.Identify = func(s producertest.Scene) (sqsfifo.Identity, error) {
			return sqsfifo.Identity{Group: s.PathRow, Time: s.Acquired, Dataset: &sqsfifo.Dataset{
				ID: "landsat-c2l2", Version: "v2.0.1", SourceURI: "s3://usgs-landsat/scene.json", ArtifactChecksum: "sha256:88", CARELabel: "CARE",
			}}, nil
		}
	})
	receipt, err := p.Send(t.Context(), producertest.Sample)
	require.NoError(t, err)
	closed(t, p)
	m, r := q.Messages()[0], record(t, store)
	assert.Equal(t, m.Body, string(r.Body))
	assert.Equal(t, m.GroupID, r.Group)
	assert.Equal(t, idempotency.ExactHashOf([]byte(m.Body), m.GroupID), r.ExactHash)
	assert.Equal(t, idempotency.Key{Scope: idempotency.JoinScope("", q.ARN(), producertest.Source), Operation: "sqs.send", Value: receipt.DedupeKey}, r.Key)
	assert.Equal(t, idempotency.Dataset{
		ID: "landsat-c2l2", Version: "v2.0.1", SourceURI: "s3://usgs-landsat/scene.json", ArtifactChecksum: "sha256:88", CARELabel: "CARE",
	}, r.Dataset)
	assert.Equal(t, idempotency.Result{MessageID: m.MessageID, SequenceNumber: m.SequenceNumber}, r.Result)
	assert.Equal(t, 7*24*time.Hour, r.Expires.Sub(r.Created))
	assert.Equal(t, 265*time.Second, r.ResendUntil.Sub(r.Created))
}
