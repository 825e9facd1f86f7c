package telemetry

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/producertest"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// Payload values, dedupe keys and attribute values never appear in error texts, spans and
// metrics. Readers of logs and telemetry may have no right to read the event.
func TestNothingOfAnEventIsInTextsAndTelemetry(t *testing.T) {
	type patient struct {
		Name   string  `json:"name"`
		Number float64 `json:"number"`
		Raw    any     `json:"raw"`
	}
	const secret = "Q7X"
	event := patient{Name: "Jane " + secret}
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		var o *observed
		attributes := map[string]string{"sensor": secret}
		key := "patient|" + secret
		c := sqsfifo.Config[patient]{
			QueueURL: q.URL(), Source: producertest.Source,
			Identify: func(patient) (sqsfifo.Identity, error) {
				return sqsfifo.Identity{DedupeKey: key, Group: "ward", Time: producertest.Sample.Acquired}, nil
			},
			Attributes: func(patient) map[string]string { return attributes },
		}
		shared := producertest.Config()
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

		// Two faults are necessary: after the first refusal, the producer repeats the
		// request without trace context.
		q.Inject(sqstest.FailEntries("InvalidMessageContents", smithy.FaultClient, nil), 2)
		send(event) // NotStoredError
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
		send(event) // the stored body, with other attributes
		attributes = map[string]string{"patient_uuid": "0" + secret}
		key += "|3"
		send(event) // an attribute that breaks rule SF001
		attributes = nil
		other.Raw = func() { _ = secret }
		send(other) // a func has no JSON form
		other.Raw = []string{secret + "\xff"}
		send(other) // invalid UTF-8
		other.Raw = []int64{1<<53 + 1}
		send(other) // an integer that a float64 cannot hold
		other.Raw = map[string]int64{secret + "@example.org": 1<<53 + 1}
		send(other) // the same integer in a map: the error's position contains the map key, which has the secret
		key += "\x00"
		send(event) // a dedupe key with a control character
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

// quotingService is a client and a store. The texts of its errors quote the event.
type quotingService struct {
	sqsfifo.Client
	idempotency.Store
}

func (quotingService) SendMessage(_ context.Context, in *sqs.SendMessageInput, _ ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	return nil, fmt.Errorf("proxy: %s...: %w", (*in.MessageBody)[:60], syscall.ECONNRESET)
}

func (quotingService) ClaimBatch(_ context.Context, claims []idempotency.Claim) ([]idempotency.Outcome, error) {
	return nil, fmt.Errorf("duplicate entry '%s' for column key", claims[0].Key.Value)
}

func quotingSink(r sqsfifo.ProvenanceRecord) error { return errors.New("no row for " + r.DedupeKey) }

// An error text of a client, store or sink may quote an event. Such a quotation appears
// in texts of this module only with Telemetry.ShowErrorTexts.
func TestNoTextQuotesAnEvent(t *testing.T) {
	for _, show := range []bool{false, true} {
		for name, change := range map[string]func(*sqsfifo.Config[producertest.Scene], quotingService){
			"the client": func(*sqsfifo.Config[producertest.Scene], quotingService) {},
			"the store":  func(c *sqsfifo.Config[producertest.Scene], bad quotingService) { c.Store.Store = bad },
		} {
			t.Run(fmt.Sprintf("%s, %v", name, show), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					q := producertest.NewQueue(t, sqstest.Config{})
					var log logBuffer
					bad := quotingService{Client: q, Store: new(idempotency.Memory)}
					p := producertest.On(t, bad, q, func(c *sqsfifo.Config[producertest.Scene]) {
						c.Telemetry.Logger, c.Telemetry.Provenance, c.Telemetry.ShowErrorTexts = log.logger(), quotingSink, show
						change(c, bad)
					})
					_, err := p.Send(t.Context(), producertest.Sample)
					require.Error(t, err)
					closed := p.Close(t.Context())
					require.Error(t, closed)
					texts := err.Error() + closed.Error() + strings.Join(log.lines(), "")
					assert.Equal(t, show, strings.Contains(texts, producertest.Sample.ID), texts)
					if name == "the client" {
						require.ErrorIs(t, err, syscall.ECONNRESET)
						assert.Contains(t, texts, "connection reset by peer")
					}
				})
			})
		}
	}
}
