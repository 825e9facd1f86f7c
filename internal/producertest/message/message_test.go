package message

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/canonicaljson"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/producertest"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// One process builds a message and stores it, as an outbox does. Another process sends the
// stored message.
func TestMessageSurvivesStorage(t *testing.T) {
	producertest.WithBothClients(t, sqstest.Config{}, func(t *testing.T, q *sqstest.Queue, client sqsfifo.Client) {
		built, err := producertest.On(t, client, q, func(c *sqsfifo.Config[producertest.Scene]) {
			c.Attributes = func(producertest.Scene) map[string]string { return map[string]string{"sensor": "OLI"} }
		}).Build(producertest.Sample)
		require.NoError(t, err)
		stored, err := json.Marshal(built)
		require.NoError(t, err)

		var msg sqsfifo.Message
		require.NoError(t, json.Unmarshal(stored, &msg))
		assert.Equal(t, *built, msg)
		r, err := producertest.On(t, client, q).SendMessage(t.Context(), &msg)
		require.NoError(t, err)
		assert.Equal(t, built.Body, q.Messages()[0].Body)
		assert.False(t, r.Duplicate)
	})
}

func TestSendMessageRefusesWhatWasChanged(t *testing.T) {
	q := producertest.NewQueue(t, sqstest.Config{})
	p := producertest.On(t, q, q)
	for name, change := range map[string]func(*sqsfifo.Message){
		"body":      func(m *sqsfifo.Message) { m.Body += " " },
		"key":       func(m *sqsfifo.Message) { m.DedupeKey = "other" },
		"event id":  func(m *sqsfifo.Message) { m.EventID[15]++ },
		"group":     func(m *sqsfifo.Message) { m.Group = "" },
		"attribute": func(m *sqsfifo.Message) { m.Attributes = map[string]string{"event_id": "other"} },
	} {
		msg, err := p.Build(producertest.Sample)
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
		QueueURL: producertest.Config().QueueURL, Source: producertest.Source,
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
