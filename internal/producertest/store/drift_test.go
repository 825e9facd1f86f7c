package store

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/producertest"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// rawEvent is an event with an already encoded payload.
type rawEvent struct {
	key, group string
	at         time.Time
	json.RawMessage
}

func rawConfig(q *sqstest.Queue, s idempotency.Store) sqsfifo.Config[rawEvent] {
	return sqsfifo.Config[rawEvent]{
		QueueURL: q.URL(), Source: producertest.Source, Store: sqsfifo.StoreConfig{Store: s},
		Identify: func(e rawEvent) (sqsfifo.Identity, error) {
			return sqsfifo.Identity{DedupeKey: e.key, Group: e.group, Time: e.at}, nil
		},
	}
}

// claimAndCrash claims an event and never finishes it, like a crashed process. The test
// chooses the body, group and fingerprint in the store.
func claimAndCrash(t *testing.T, store idempotency.Store, q *sqstest.Queue, body, group string, is idempotency.Fingerprint) {
	t.Helper()
	_, err := store.Claim(t.Context(), idempotency.Claim{
		Key:   idempotency.Key{Scope: idempotency.JoinScope("", q.ARN(), producertest.Source), Operation: "sqs.send", Value: "key"},
		Token: idempotency.NewToken(), Fingerprint: is, ExactHash: idempotency.ExactHashOf([]byte(body), group), Group: group, Body: []byte(body),
		Terms: idempotency.Terms{Lease: 30 * time.Second, TTL: time.Hour, ResendFor: 265 * time.Second},
	})
	require.NoError(t, err)
}

// An event of a crashed process is sent with its stored bytes, whatever the encoder, the
// clock and the group function return now, so that SQS recognises the message.
func TestStoredBytesGoOut(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	const now = `{"b":[1,"x"],"n":1000,"z":{"a":1}}` // the canonical payload
	for _, tc := range []struct {
		name, payload string // as sent
		spec          string
	}{
		{"equal payload, other time", now, ""},
		{"exponent", `{"n":1e3,"b":[1,"x"],"z":{"a":1}}`, ""},
		{"any order and blanks", `{ "z": {"a": 1.0}, "n": 1000.0, "b": [1, "\u0078"] }`, ""},
		{"a member twice", `{"n":5,"n":1000,"b":[1,"x"],"z":{"a":1}}`, ""},
		{"another computation of the fingerprint", `{"n":1e3,"b":[1,"x"],"z":{"a":1}}`, "old/1"},
	} {
		for _, arrived := range []bool{false, true} {
			for _, how := range []string{"Send", "SendBatch", "SendAsync", "TrySend"} {
				synctest.Test(t, func(t *testing.T) {
					q, store := producertest.NewQueue(t, sqstest.Config{}), new(idempotency.Memory)
					body := `{"event_time":"1999-01-01T00:00:00Z","event_source":"` + producertest.Source + `","dedupe_key":"key","payload":` + tc.payload +
						`,"event_id":"01762f22-13fa-7e4c-a89b-094438f5fca0"}`
					is := idempotency.FingerprintOf("sqsfifo.event/1", []byte(producertest.Source), []byte("key"), []byte(now))
					if tc.spec != "" {
						is = idempotency.FingerprintOf(tc.spec, []byte("something else"))
					}
					claimAndCrash(t, store, q, body, "old-group", is)
					if arrived {
						_, err := q.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: aws.String(q.URL()), MessageBody: &body, MessageGroupId: aws.String("old-group")})
						require.NoError(t, err)
					}
					p, err := sqsfifo.NewProducer(q, rawConfig(q, store))
					require.NoError(t, err)
					event := rawEvent{"key", "new-group", at, json.RawMessage(`{"z":{"a":1},"n":1e3,"b":[1,"x"]}`)}
					var r sqsfifo.Receipt
					done := make(chan struct{})
					callback := func(got sqsfifo.Receipt, e error) { r, err = got, e; close(done) }
					switch how {
					case "Send":
						r, err = p.Send(t.Context(), event)
					case "SendBatch":
						results := p.SendBatch(t.Context(), []rawEvent{event, {"other", "g", at, json.RawMessage(`{}`)}})
						r, err = results[0].Receipt, results[0].Err
					case "SendAsync":
						p.SendAsync(t.Context(), event, callback)
						<-done
					case "TrySend":
						require.NoError(t, p.TrySend(t.Context(), event, callback))
						<-done
					}
					require.NoError(t, err, tc.name)
					var sent []sqstest.Message
					for _, m := range q.Messages() {
						if strings.Contains(m.Body, `"key"`) {
							sent = append(sent, m)
						}
					}
					require.Len(t, sent, 1, "%s by %s", tc.name, how)
					require.Equal(t, body, sent[0].Body)
					require.Equal(t, "old-group", sent[0].GroupID)
					require.Equal(t, sqsfifo.BodyHash(body), r.BodyHash)
					require.Equal(t, "old-group", r.Group)
					require.Equal(t, "01762f22-13fa-7e4c-a89b-094438f5fca0", r.EventID.String())
					require.Equal(t, sent[0].MessageID, r.MessageID)
					require.Len(t, r.Findings, 1, "drift is reported")
					require.Equal(t, "SF061", r.Findings[0].Rule)
					require.EqualValues(t, 1, p.Stats().Store.Drifts)
					closed(t, p)
				})
			}
		}
	}
}

// An event with the key and payload of a stored event is a duplicate, even with another
// time, group or spelling of the payload (1e3 for 1000). Another payload is a conflict.
func TestDriftOfAStoredEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, store := producertest.NewQueue(t, sqstest.Config{}), new(idempotency.Memory)
		at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		p, err := sqsfifo.NewProducer(q, rawConfig(q, store))
		require.NoError(t, err)
		first, err := p.Send(t.Context(), rawEvent{"key", "g", at, json.RawMessage(`{"n":1000}`)})
		require.NoError(t, err)
		for _, wait := range []time.Duration{0, time.Second, 10 * time.Minute} {
			time.Sleep(wait)
			r, err := p.Send(t.Context(), rawEvent{"key", "h", at.Add(time.Hour), json.RawMessage(`{"n":1e3}`)})
			require.NoError(t, err)
			require.Len(t, r.Findings, 1)
			want := first
			want.Duplicate, want.Attempts, want.Findings = true, 0, r.Findings
			require.Equal(t, want, r)
			_, err = p.Send(t.Context(), rawEvent{"key", "g", at, json.RawMessage(`{"n":1001}`)})
			var conflict *sqsfifo.ConflictError
			require.ErrorAs(t, err, &conflict)
			require.Equal(t, sqsfifo.ReuseConflict, conflict.Reuse)
		}
		require.Len(t, q.Messages(), 1)
		closed(t, p)
	})
}

// A stored event is submitted again with TrySend, with another time and group. TrySend
// does not ask the store, but the producer does before the first attempt, and the event
// ends as a duplicate.
func TestDriftOfTrySend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, store := producertest.NewQueue(t, sqstest.Config{}), new(idempotency.Memory)
		at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		p, err := sqsfifo.NewProducer(q, rawConfig(q, store))
		require.NoError(t, err)
		first, err := p.Send(t.Context(), rawEvent{"key", "g", at, json.RawMessage(`{"n":1000}`)})
		require.NoError(t, err)
		done := make(chan sqsfifo.Result, 1)
		time.Sleep(time.Second)
		require.NoError(t, p.TrySend(t.Context(), rawEvent{"key", "h", at.Add(time.Hour), json.RawMessage(`{"n":1e3}`)},
			func(r sqsfifo.Receipt, err error) { done <- sqsfifo.Result{Receipt: r, Err: err} }))
		r := <-done
		require.NoError(t, r.Err)
		require.True(t, r.Receipt.Duplicate)
		require.Equal(t, first.MessageID, r.Receipt.MessageID)
		closed(t, p)
	})
}

// A record's seal is the hash of its body and group. The producer does not send a body
// that contradicts the seal.
func TestAStoreThatChangesBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, store := producertest.NewQueue(t, sqstest.Config{}), new(idempotency.Memory)
		at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		body := `{"dedupe_key":"key"}`
		is := idempotency.FingerprintOf("sqsfifo.event/1", []byte(producertest.Source), []byte("key"), []byte(`{"n":1}`))
		_, err := store.Claim(t.Context(), idempotency.Claim{
			Key:   idempotency.Key{Scope: idempotency.JoinScope("", q.ARN(), producertest.Source), Operation: "sqs.send", Value: "key"},
			Token: idempotency.NewToken(), Fingerprint: is, ExactHash: idempotency.ExactHashOf([]byte("other bytes"), "g"), Group: "g", Body: []byte(body),
			Terms: idempotency.Terms{Lease: time.Second, TTL: time.Hour, ResendFor: time.Minute},
		})
		require.NoError(t, err)
		c := rawConfig(q, store)
		c.Delivery.RetryFor = 10 * time.Second
		p, err := sqsfifo.NewProducer(q, c)
		require.NoError(t, err)
		_, err = p.Send(t.Context(), rawEvent{"key", "g", at, json.RawMessage(`{"n":1}`)})
		require.Equal(t, sqsfifo.FateInDoubt, sqsfifo.FateOf(err))
		require.ErrorContains(t, err, "other bytes")
		require.Empty(t, q.Messages())
		closed(t, p)
	})
}

// The store does not keep attributes, but the producer remembers them for five minutes.
// During these five minutes, a resend with other attributes is refused.
func TestOtherAttributesOfAStoredEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, store := producertest.NewQueue(t, sqstest.Config{}), new(idempotency.Memory)
		route := "north"
		change := func(c *sqsfifo.Config[producertest.Scene]) {
			c.Attributes = func(producertest.Scene) map[string]string { return map[string]string{"route": route} }
		}
		p := producertest.On(t, q, q, withStore(store), change)
		_, err := p.Send(t.Context(), producertest.Sample)
		require.NoError(t, err)
		for _, wait := range []time.Duration{0, time.Minute} { // while the result is being recorded, and afterwards
			time.Sleep(wait)
			route = "south"
			_, err = p.Send(t.Context(), producertest.Sample)
			var violation *sqsfifo.ViolationError
			require.ErrorAs(t, err, &violation)
			require.Equal(t, "SF001", violation.Findings[0].Rule)
			route = "north"
			r, err := p.Send(t.Context(), producertest.Sample)
			require.NoError(t, err)
			require.True(t, r.Duplicate)
		}
		closed(t, p)
	})
}
