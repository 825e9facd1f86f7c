//go:build unix

package replaytest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/replay"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// Event is the payload of the tests.
type Event struct {
	ID    string `json:"id"`
	Group string `json:"group"`
}

func newProducer(t testing.TB, client sqsfifo.Client, queueURL string, change ...func(*sqsfifo.Config[Event])) *sqsfifo.Producer[Event] {
	t.Helper()
	c := sqsfifo.Config[Event]{
		QueueURL: queueURL,
		Source:   "kfm.test.replay",
		Identify: func(e Event) (sqsfifo.Identity, error) {
			return sqsfifo.Identity{DedupeKey: e.ID, Group: e.Group, Time: time.Unix(1764806400, 0)}, nil
		},
	}
	for _, f := range change {
		f(&c)
	}
	p, err := sqsfifo.NewProducer(client, c)
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.Close(context.Background()) })
	return p
}

// many returns lines with n pending events for each group. The first events of all groups
// come first, then the second events of all groups, and so on.
func many(t testing.TB, groups, n int) []replay.MessageLine {
	t.Helper()
	builder := newProducer(t, new(sqstest.Queue), "https://sqs.us-east-1.amazonaws.com/000000000000/events.fifo")
	var out []replay.MessageLine
	for i := range n {
		for g := range groups {
			m, err := builder.Build(Event{ID: fmt.Sprintf("g%03d-%04d", g, i), Group: fmt.Sprintf("g%03d", g)})
			require.NoError(t, err)
			out = append(out, replay.MessageLine{Message: *m, BodyHash: sqsfifo.BodyHash(m.Body), Status: replay.StatusPending})
		}
	}
	return out
}

func encode(t testing.TB, lines []replay.MessageLine) []byte {
	t.Helper()
	var text bytes.Buffer
	for _, l := range lines {
		require.NoError(t, json.NewEncoder(&text).Encode(l))
	}
	return text.Bytes()
}

// planned returns the dedupe keys of the plan by group.
func planned(p *replay.Plan) map[string][]string {
	out := map[string][]string{}
	for _, it := range p.Items {
		out[it.Group] = append(out[it.Group], it.DedupeKey)
	}
	return out
}

// sent returns the IDs of the queue's events by group.
func sent(t testing.TB, q *sqstest.Queue) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for _, m := range q.Messages() {
		e, err := sqsfifo.DecodeEnvelope[Event](m.Body)
		require.NoError(t, err)
		out[m.GroupID] = append(out[m.GroupID], e.Payload.ID)
	}
	return out
}
