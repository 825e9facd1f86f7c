package sqsfifo_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// Neither a value of the payload nor the dedupe key nor the value of an attribute is ever in
// the text of an error, in a span or in a metric: all of them go to places that
// the event must not go to.
func TestNothingOfAnEventIsInTextsAndTelemetry(t *testing.T) {
	type patient struct {
		Name   string  `json:"name"`
		Number float64 `json:"number"`
		Raw    any     `json:"raw"`
	}
	const secret = "Q7X"
	event := patient{Name: "Jane " + secret}
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, sqstest.Config{})
		var o *observed
		attributes := map[string]string{"sensor": secret}
		key := "patient|" + secret
		c := sqsfifo.Config[patient]{
			QueueURL: q.URL(), Source: source,
			Identify: func(patient) (sqsfifo.Identity, error) {
				return sqsfifo.Identity{DedupeKey: key, Group: "ward", Time: scene.Acquired}, nil
			},
			Attributes: func(patient) map[string]string { return attributes },
		}
		shared := config()
		o = observe(&shared)
		c.Telemetry = shared.Telemetry
		p, err := sqsfifo.NewProducer(q, c)
		require.NoError(t, err)
		var texts []string
		send := func(e patient) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := p.Send(ctx, e)
			require.Error(t, err)
			texts = append(texts, err.Error())
		}

		q.Inject(sqstest.FailEntries("InvalidMessageContents", smithy.FaultClient, nil), 2) // once more without trace context
		send(event)                                                                         // NotStoredError
		key += "|2"
		q.Inject(sqstest.LoseAnswer(), 1000)
		send(event) // InDoubtError
		q.ClearFaults()
		_, err = p.Send(t.Context(), event)
		require.NoError(t, err)
		other := event
		other.Number = 2
		send(other) // ConflictError
		attributes = map[string]string{"sensor": secret + "2"}
		send(event) // one body with two sets of attributes
		attributes = map[string]string{"patient_uuid": "0" + secret}
		key += "|3"
		send(event) // SF001
		attributes = nil
		other.Raw = func() { _ = secret }
		send(other) // no JSON
		other.Raw = []string{secret + "\xff"}
		send(other) // invalid UTF-8
		other.Raw = []int64{1<<53 + 1}
		send(other) // a number that changes
		other.Raw = map[string]int64{secret + "@example.org": 1<<53 + 1}
		send(other) // the same under a name that is data
		key += "\x00"
		send(event) // no key
		require.NoError(t, p.Close(t.Context()))

		_, err = sqsfifo.DecodeEnvelope[patient](`{"payload":"` + secret + `"} {`)
		require.Error(t, err)
		texts = append(texts, err.Error())
		for _, text := range texts {
			assert.NotContains(t, text, secret)
		}
		_, metrics := o.metrics(t)
		assert.NotContains(t, strings.Join(metrics, " "), secret)
		for _, s := range o.spans.Ended() {
			assert.NotContains(t, s.Name()+s.Status().Description, secret)
			for _, kv := range s.Attributes() {
				assert.NotContains(t, kv.Value.String(), secret)
			}
			for _, e := range s.Events() {
				for _, kv := range e.Attributes {
					assert.NotContains(t, kv.Value.String(), secret)
				}
			}
		}
	})
}
