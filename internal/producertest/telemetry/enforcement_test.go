package telemetry

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/producertest"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// With Warn the producer sends events that break a rule, counts them and reports the
// findings. It still refuses an event that SQS would refuse, and an event whose Identify
// fails.
func TestWarn(t *testing.T) {
	producertest.WithBothClients(t, sqstest.Config{}, func(t *testing.T, q *sqstest.Queue, client sqsfifo.Client) {
		var o *observed
		attributes := map[string]string{}
		group := "north"
		p := producertest.On(t, client, q, func(c *sqsfifo.Config[producertest.Scene]) {
			o = observe(c)
			c.Enforcement = sqsfifo.EnforcementWarn
			c.Attributes = func(producertest.Scene) map[string]string { return attributes }
			c.Identify = func(s producertest.Scene) (sqsfifo.Identity, error) {
				if s.Cloud == 99 {
					return sqsfifo.Identity{}, errors.New("no identity")
				}
				id, err := producertest.Identify(s)
				id.Group = group
				return id, err
			}
		})
		rules := func(s producertest.Scene) (rules []string) {
			r, err := p.Send(t.Context(), s)
			require.NoError(t, err)
			for _, f := range r.Findings {
				rules = append(rules, f.Rule)
			}
			return rules
		}
		all := producertest.Scenes(5, 1)
		assert.Empty(t, rules(all[0]))

		attributes = map[string]string{"unique_key": "nowhere in the body"}
		assert.Equal(t, []string{"SF001"}, rules(all[1]))
		_, err := p.Build(all[1])
		require.NoError(t, err)
		attributes = map[string]string{"route": "south"}
		assert.Equal(t, []string{"SF001"}, rules(all[0]), "the body went out without that attribute")
		attributes = nil

		other := all[2]
		assert.Empty(t, rules(other))
		other.Cloud = 5
		assert.Equal(t, []string{"SF061"}, rules(other), "a key with another payload")
		assert.Empty(t, rules(other), "which is the one that is remembered then")
		group = "south"
		assert.Equal(t, []string{"SF063"}, rules(all[2]), "a body in another group")
		assert.Len(t, q.Messages(), 4)
		assert.Len(t, q.Suppressed(), 3)

		var violation *sqsfifo.ViolationError
		attributes = map[string]string{"empty": "", "unique_key": "nowhere in the body"}
		_, err = p.Send(t.Context(), all[3])
		require.ErrorAs(t, err, &violation, "SQS takes no empty attribute")
		assert.Len(t, violation.Findings, 2, "all that is wrong is told")
		_, err = p.Build(all[3])
		require.ErrorAs(t, err, &violation)
		_, err = p.Send(t.Context(), producertest.Scene{Cloud: 99})
		var unidentified *sqsfifo.IdentifyError
		require.ErrorAs(t, err, &unidentified, "there is nothing to send")

		values, _ := o.metrics(t)
		assert.Equal(t, int64(3), values["sqs_fifo.dedupe.collisions_detected {collision}"])
		assert.Equal(t, int64(2), values["sqs_fifo.producer.violations {violation} SF001 warn"])
		assert.Equal(t, int64(1), values["sqs_fifo.producer.violations {violation} SF001 reject"])
		assert.Equal(t, int64(1), values["sqs_fifo.producer.violations {violation} SF061 warn"])
		assert.Equal(t, int64(1), values["sqs_fifo.producer.violations {violation} SF063 warn"])
		assert.Equal(t, int64(1), values["sqs_fifo.producer.violations {violation} SF053 reject"])
		for _, s := range o.byName(t, "create events.fifo")[1:2] {
			require.Len(t, s.Events(), 1)
			assert.Equal(t, "sqs_fifo.violation", s.Events()[0].Name)
		}
	})
}
