//go:build unix

package replaytest

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/producertest"
	"github.com/kansas-frontier-matrix/sqsfifo/replay"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

func newProducer(t testing.TB, client sqsfifo.Client, queueURL string) *sqsfifo.Producer[producertest.Scene] {
	t.Helper()
	c := producertest.Config()
	c.QueueURL, c.Delivery.InFlight = queueURL, 16
	p, err := sqsfifo.NewProducer(client, c)
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.Close(context.Background()) })
	return p
}

// many returns lines with n pending events for each group. The first events of all groups
// come first, then the second events of all groups, and so on.
func many(t testing.TB, groups, n int) []replay.MessageLine {
	t.Helper()
	builder := newProducer(t, new(sqstest.Queue), producertest.Config().QueueURL)
	var out []replay.MessageLine
	for _, scene := range producertest.Scenes(groups*n, groups) {
		m, err := builder.Build(scene)
		require.NoError(t, err)
		out = append(out, replay.MessageLine{Message: *m, BodyHash: sqsfifo.BodyHash(m.Body), Status: replay.StatusPending})
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

// sent returns the dedupe keys of the queue's events by group.
func sent(t testing.TB, q *sqstest.Queue) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for _, m := range q.Messages() {
		e, err := sqsfifo.DecodeEnvelope[producertest.Scene](m.Body)
		require.NoError(t, err)
		out[m.GroupID] = append(out[m.GroupID], e.DedupeKey)
	}
	return out
}
