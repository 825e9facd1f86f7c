package order

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/producertest"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

func TestSendStoresTheBuiltMessage(t *testing.T) {
	producertest.WithBothClients(t, sqstest.Config{}, func(t *testing.T, q *sqstest.Queue, client sqsfifo.Client) {
		p := producertest.On(t, client, q, func(c *sqsfifo.Config[producertest.Scene]) {
			c.Attributes = func(s producertest.Scene) map[string]string { return map[string]string{"sensor": "OLI_TIRS"} }
		})
		built, err := p.Build(producertest.Sample)
		require.NoError(t, err)
		r, err := p.Send(t.Context(), producertest.Sample)
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
	producertest.WithBothClients(t, sqstest.Config{}, func(t *testing.T, q *sqstest.Queue, client sqsfifo.Client) {
		p := producertest.On(t, client, q)
		all := producertest.Scenes(40, 13)
		bad := all[14]
		bad.ID = ""
		batch := append(append([]producertest.Scene{}, all[:14]...), bad)
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
		producertest.AssertOrder(t, q)
		assert.NoError(t, p.SendBatch(t.Context(), nil).Err())
	})
}

// After a refused event, SendBatch does not send later events of the group, because they
// would overtake the refused event.
func TestSendBatchPausesTheGroupOfAnEventThatIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		p := producertest.On(t, q, q, func(c *sqsfifo.Config[producertest.Scene]) {
			c.Attributes = func(s producertest.Scene) map[string]string {
				if s.Cloud > 100 {
					return map[string]string{"unique_key": "elsewhere"}
				}
				return nil
			}
		})
		all := producertest.Scenes(6, 2)
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
		q := producertest.NewQueue(t, sqstest.Config{})
		counting := &countingClient{Client: q}
		all := producertest.Scenes(25, 25)
		require.NoError(t, producertest.On(t, counting, q).SendBatch(t.Context(), all).Err())
		assert.Equal(t, []int{10, 10, 5}, counting.entries)

		type Blob struct {
			Text string `json:"text"`
			N    int    `json:"n"`
		}
		for _, inAttributes := range []bool{false, true} {
			counting.entries = nil
			c := sqsfifo.Config[Blob]{
				QueueURL: q.URL(), Source: producertest.Source,
				Identify: func(b Blob) (sqsfifo.Identity, error) {
					return sqsfifo.Identity{DedupeKey: fmt.Sprint("blob ", b.N), Group: fmt.Sprint(b.N), Time: producertest.Sample.Acquired}, nil
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
