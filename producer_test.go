package sqsfifo_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/canonicaljson"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

func newQueue(t testing.TB, c sqstest.Config) *sqstest.Queue {
	t.Helper()
	q, err := sqstest.NewQueue(c)
	require.NoError(t, err)
	return q
}

// The function `on` returns a new producer of scenes for an existing queue, like a producer
// in another process.
func on(t testing.TB, client sqsfifo.Client, q *sqstest.Queue, change ...func(*sqsfifo.Config[Scene])) *sqsfifo.Producer[Scene] {
	t.Helper()
	c := config()
	c.QueueURL = q.URL()
	for _, f := range change {
		f(&c)
	}
	p, err := sqsfifo.NewProducer(client, c)
	require.NoError(t, err)
	return p
}

// scenes returns n scenes, distributed over the given number of groups.
func scenes(n, groups int) []Scene {
	out := make([]Scene, n)
	for i := range out {
		out[i] = Scene{ID: fmt.Sprintf("scene-%04d", i), PathRow: fmt.Sprintf("%03d", i%groups), Acquired: scene.Acquired.Add(time.Duration(i) * time.Hour)}
	}
	return out
}

// withBothClients runs f twice, each time in a bubble of virtual time: with the queue itself
// as the client, and with a real *sqs.Client that talks HTTP to the queue.
func withBothClients(t *testing.T, c sqstest.Config, f func(t *testing.T, q *sqstest.Queue, client sqsfifo.Client)) {
	t.Helper()
	t.Run("in process", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			q := newQueue(t, c)
			f(t, q, q)
		})
	})
	t.Run("sqs.Client", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			q := newQueue(t, c)
			f(t, q, q.Client())
		})
	})
}

func ExampleProducer_Send() {
	queue, err := sqstest.NewQueue(sqstest.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	producer, err := sqsfifo.NewProducer(queue, sqsfifo.Config[Scene]{
		QueueURL: queue.URL(),
		Source:   "kfm.remote-sensing.landsat-refresh",
		Identify: func(s Scene) (sqsfifo.Identity, error) {
			key, err := sqsfifo.JoinKey("landsat", s.ID)
			return sqsfifo.Identity{DedupeKey: key, Group: s.PathRow, Time: s.Acquired}, err
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		receipt, err := producer.Send(context.Background(), scene)
		fmt.Println(receipt.Duplicate, err)
	}
	fmt.Println(len(queue.Messages()), "message")
	// Output:
	// false <nil>
	// true <nil>
	// 1 message
}

func TestSendStoresTheBuiltMessage(t *testing.T) {
	withBothClients(t, sqstest.Config{}, func(t *testing.T, q *sqstest.Queue, client sqsfifo.Client) {
		p := on(t, client, q, func(c *sqsfifo.Config[Scene]) {
			c.Attributes = func(s Scene) map[string]string { return map[string]string{"sensor": "OLI_TIRS"} }
		})
		built, err := p.Build(scene)
		require.NoError(t, err)
		r, err := p.Send(t.Context(), scene)
		require.NoError(t, err)

		require.Len(t, q.Messages(), 1)
		m := q.Messages()[0]
		assert.Equal(t, built.Body, m.Body)
		assert.Equal(t, "OLI_TIRS", *m.Attributes["sensor"].StringValue)
		assert.Equal(t, sqsfifo.Receipt{
			EventID: built.EventID, DedupeKey: built.DedupeKey, Group: "047027", BodyHash: sqsfifo.BodyHash(built.Body),
			MessageID: m.MessageID, SequenceNumber: m.SequenceNumber, Attempts: 1,
		}, r)
		assert.Equal(t, r.BodyHash, m.DeduplicationID)
	})
}

func TestSendBatch(t *testing.T) {
	withBothClients(t, sqstest.Config{}, func(t *testing.T, q *sqstest.Queue, client sqsfifo.Client) {
		p := on(t, client, q)
		all := scenes(40, 13)
		bad := all[14]
		bad.ID = ""
		batch := append(append([]Scene{}, all[:14]...), bad)
		batch = append(batch, all[15:]...)
		batch = append(batch, all[0]) // the same event again in one call

		results := p.SendBatch(t.Context(), batch)
		require.Len(t, results, 41)
		for i, r := range results {
			switch {
			case i == 14:
				var v *sqsfifo.IdentifyError
				assert.ErrorAs(t, r.Err, &v)
			case i == 40:
				require.NoError(t, r.Err)
				assert.True(t, r.Receipt.Duplicate)
				assert.Equal(t, results[0].Receipt.MessageID, r.Receipt.MessageID)
			default:
				require.NoError(t, r.Err, "event %d", i)
				assert.Equal(t, "landsat|"+batch[i].ID, r.Receipt.DedupeKey, "results are in the order of the events")
			}
		}
		assert.ErrorContains(t, results.Err(), "event 14: ")
		assertOrder(t, q)
		assert.NoError(t, p.SendBatch(t.Context(), nil).Err())
	})
}

// assertOrder checks that each group's messages are in the queue in the order of their
// scene IDs, which contain increasing numbers.
func assertOrder(t *testing.T, q *sqstest.Queue) {
	t.Helper()
	last := map[string]string{}
	for _, m := range q.Messages() {
		e, err := sqsfifo.DecodeEnvelope[Scene](m.Body)
		require.NoError(t, err)
		assert.Less(t, last[m.GroupID], e.Payload.ID, "group %s", m.GroupID)
		last[m.GroupID] = e.Payload.ID
	}
}

// After a refused event, SendBatch does not send later events of the group, because they
// would overtake the refused event.
func TestSendBatchPausesTheGroupOfAnEventThatIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, sqstest.Config{})
		p := on(t, q, q, func(c *sqsfifo.Config[Scene]) {
			c.Attributes = func(s Scene) map[string]string {
				if s.Cloud > 100 {
					return map[string]string{"unique_key": "elsewhere"}
				}
				return nil
			}
		})
		all := scenes(6, 2)
		all[2].Cloud = 101
		results := p.SendBatch(t.Context(), all)
		for i, paused := range []bool{false, false, true, false, true, false} {
			if i == 2 {
				var v *sqsfifo.ViolationError
				require.ErrorAs(t, results[i].Err, &v)
				continue
			}
			assert.Equal(t, paused, errors.Is(results[i].Err, sqsfifo.ErrGroupPaused), "event %d: %v", i, results[i].Err)
		}
		assert.Len(t, q.Messages(), 4)
	})
}

func TestBatchRequestsStayWithinTheLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, sqstest.Config{})
		counting := &countingClient{Client: q}
		all := scenes(25, 25)
		require.NoError(t, on(t, counting, q).SendBatch(t.Context(), all).Err())
		assert.Equal(t, []int{10, 10, 5}, counting.entries)

		type Blob struct {
			Text string `json:"text"`
			N    int    `json:"n"`
		}
		for _, inAttributes := range []bool{false, true} {
			counting.entries = nil
			c := sqsfifo.Config[Blob]{
				QueueURL: q.URL(), Source: source,
				Identify: func(b Blob) (sqsfifo.Identity, error) {
					return sqsfifo.Identity{DedupeKey: fmt.Sprint("blob ", b.N), Group: fmt.Sprint(b.N), Time: scene.Acquired}, nil
				},
			}
			n := 5
			if inAttributes {
				n = 3
				c.Attributes = func(Blob) map[string]string { return map[string]string{"legend": strings.Repeat("y", 300_000)} }
			}
			p, err := sqsfifo.NewProducer(counting, c)
			require.NoError(t, err)
			var blobs []Blob
			for i := range n {
				blobs = append(blobs, Blob{strings.Repeat("x", 400_000), n*10 + i})
			}
			require.NoError(t, p.SendBatch(t.Context(), blobs).Err())
			if inAttributes {
				assert.Equal(t, []int{1, 1, 1}, counting.entries, "attributes count, too")
			} else {
				assert.Equal(t, []int{2, 2, 1}, counting.entries, "a request holds at most 1 MiB")
			}
		}
	})
}

// countingClient records the number of entries of each request.
type countingClient struct {
	sqsfifo.Client
	mu      sync.Mutex
	entries []int
}

func (c *countingClient) SendMessage(ctx context.Context, in *sqs.SendMessageInput, o ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	c.note(1)
	return c.Client.SendMessage(ctx, in, o...)
}

func (c *countingClient) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, o ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	c.note(len(in.Entries))
	return c.Client.SendMessageBatch(ctx, in, o...)
}

func (c *countingClient) note(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries = append(c.entries, n)
}

// One process builds a message and stores it, as an outbox does. Another process sends the
// stored message.
func TestMessageSurvivesStorage(t *testing.T) {
	withBothClients(t, sqstest.Config{}, func(t *testing.T, q *sqstest.Queue, client sqsfifo.Client) {
		built, err := on(t, client, q, func(c *sqsfifo.Config[Scene]) {
			c.Attributes = func(Scene) map[string]string { return map[string]string{"sensor": "OLI"} }
		}).Build(scene)
		require.NoError(t, err)
		stored, err := json.Marshal(built)
		require.NoError(t, err)

		var msg sqsfifo.Message
		require.NoError(t, json.Unmarshal(stored, &msg))
		assert.Equal(t, *built, msg)
		r, err := on(t, client, q).SendMessage(t.Context(), &msg)
		require.NoError(t, err)
		assert.Equal(t, built.Body, q.Messages()[0].Body)
		assert.False(t, r.Duplicate)
	})
}

func TestSendMessageRefusesWhatWasChanged(t *testing.T) {
	q := newQueue(t, sqstest.Config{})
	p := on(t, q, q)
	for name, change := range map[string]func(*sqsfifo.Message){
		"body":      func(m *sqsfifo.Message) { m.Body += " " },
		"key":       func(m *sqsfifo.Message) { m.DedupeKey = "other" },
		"event id":  func(m *sqsfifo.Message) { m.EventID[15]++ },
		"group":     func(m *sqsfifo.Message) { m.Group = "" },
		"attribute": func(m *sqsfifo.Message) { m.Attributes = map[string]string{"event_id": "other"} },
	} {
		msg, err := p.Build(scene)
		require.NoError(t, err)
		change(msg)
		_, err = p.SendMessage(t.Context(), msg)
		var v *sqsfifo.ViolationError
		assert.ErrorAs(t, err, &v, name)
	}
	var v *sqsfifo.ViolationError
	_, err := p.SendMessage(t.Context(), nil)
	require.ErrorAs(t, err, &v)
	assert.Empty(t, q.Messages())
}

// The envelope adds a level to the payload, so a payload has at most 9,999 levels.
func TestDepthOfPayload(t *testing.T) {
	p := newProducer(t, sqsfifo.Config[json.RawMessage]{
		QueueURL: config().QueueURL, Source: source,
		Identify: func(json.RawMessage) (sqsfifo.Identity, error) {
			return sqsfifo.Identity{DedupeKey: "deep", Group: "g", Time: time.Unix(1, 0)}, nil
		},
	})
	nested := func(levels int) json.RawMessage {
		return json.RawMessage(`{"a":` + strings.Repeat("[", levels-1) + strings.Repeat("]", levels-1) + "}")
	}
	msg, err := p.Build(nested(canonicaljson.MaxDepth - 1))
	require.NoError(t, err)
	_, err = sqsfifo.DecodeEnvelope[json.RawMessage](msg.Body)
	require.NoError(t, err)
	_, err = p.Build(nested(canonicaljson.MaxDepth))
	var violation *sqsfifo.ViolationError
	require.ErrorAs(t, err, &violation)
	assert.Equal(t, "SF030", violation.Findings[0].Rule)
}
