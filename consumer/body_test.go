package consumer_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/consumer"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// envelope returns the body that a producer makes of a job.
func envelope(t testing.TB, organization string, j job) string {
	t.Helper()
	p, err := sqsfifo.NewProducer(nopClient{}, sqsfifo.Config[job]{
		QueueURL: "https://sqs.us-east-1.test/000000000000/jobs.fifo", Source: organization + ".tests.jobs", Organization: organization,
		Identify: func(j job) (sqsfifo.Identity, error) {
			return sqsfifo.Identity{DedupeKey: j.String(), Group: j.Group, Time: time.Unix(int64(j.N), 0)}, nil
		},
	})
	require.NoError(t, err)
	m, err := p.Build(j)
	require.NoError(t, err)
	return m.Body
}

type nopClient struct{ sqsfifo.Client }

func notification(t testing.TB, message string) string {
	t.Helper()
	text, err := json.Marshal(map[string]string{
		"Type": "Notification", "MessageId": "m", "TopicArn": "arn:aws:sns:us-east-1:000000000000:topic.fifo", "Message": message, "Timestamp": "2026-11-22T00:00:00.000Z",
	})
	require.NoError(t, err)
	return string(text)
}

// Each form of body decodes to the same payload and dedupe key, with and without an SNS
// notification around the body.
func TestBodies(t *testing.T) {
	want := job{"a", 7}
	plain, err := json.Marshal(want)
	require.NoError(t, err)
	for _, tc := range []struct {
		name   string
		decode func(string) (sqsfifo.Envelope[job], error)
		body   string
	}{
		{"our envelope", sqsfifo.DecodeEnvelope[job], envelope(t, "kfm", want)},
		{"another organization's", sqsfifo.Decoder[job]{Organization: "acme"}.Decode, envelope(t, "acme", want)},
		{"without an envelope", consumer.JSON(job.String), string(plain)},
	} {
		for _, body := range []string{tc.body, notification(t, tc.body)} {
			e, err := consumer.SNS(tc.decode)(body)
			require.NoError(t, err, tc.name)
			assert.Equal(t, want, e.Payload, tc.name)
			assert.Equal(t, "a7", e.DedupeKey, tc.name)
		}
		_, err := consumer.SNS(tc.decode)("{")
		assert.Error(t, err, tc.name)
	}
}

// The error for the body of an SNS notification names both remedies, whatever the decoder is,
// and gives no advice for producers.
func TestNotificationAdvice(t *testing.T) {
	body := notification(t, envelope(t, "kfm", job{"a", 1}))
	_, err := sqsfifo.DecodeEnvelope[job](body)
	_, other := sqsfifo.Decoder[job]{Organization: "acme"}.Decode(body)
	for _, err := range []error{err, other} {
		var broken *sqsfifo.EnvelopeError
		require.ErrorAs(t, err, &broken)
		assert.NotEmpty(t, broken.Findings)
		require.ErrorContains(t, err, "consumer.SNS")
		require.ErrorContains(t, err, "raw message delivery")
		assert.NotContains(t, err.Error(), "CanonicalizeStrict")
	}
	bubble(t, 0, func(w *world) {
		_, err := w.queue.SendMessage(w.Context(), &sqs.SendMessageInput{QueueUrl: aws.String(w.queue.URL()), MessageBody: &body, MessageGroupId: aws.String("a")})
		require.NoError(w, err)
		c := w.config(nil)
		c.Decode = consumer.JSON(func(j job) string { return j.Group })
		w.run(c, time.Minute)
		require.Len(w, left(w.parking), 1)
		assert.Contains(w, *left(w.parking)[0].Attributes[consumer.AttributeReason].StringValue, "consumer.SNS")
	})
}

// An event arrives as an envelope and again inside an SNS notification. The second
// message is a duplicate: only the payload determines the fingerprint.
func TestNotificationIsDuplicate(t *testing.T) {
	bubble(t, 0, func(w *world) {
		c := w.config(nil)
		c.Decode = consumer.SNS(sqsfifo.DecodeEnvelope[job])
		c.Store = &idempotency.Memory{}
		body := envelope(t, "kfm", job{"a", 1})
		for _, body := range []string{body, notification(t, body)} {
			_, err := w.queue.SendMessage(w.Context(), &sqs.SendMessageInput{QueueUrl: aws.String(w.queue.URL()), MessageBody: &body, MessageGroupId: aws.String("a")})
			require.NoError(w, err)
		}
		running := w.run(c, time.Minute)
		assert.Equal(w, []string{"a1"}, w.calls)
		assert.EqualValues(w, 1, running.Stats().Duplicates)
		assert.Empty(w, left(w.parking))
	})
}

// JSON without a key function uses the MessageId as the identity, so an event that is
// sent twice is handled twice.
func TestJSONWithoutKey(t *testing.T) {
	bubble(t, 0, func(w *world) {
		c := w.config(nil)
		c.Decode, c.Store = consumer.JSON[job](nil), &idempotency.Memory{}
		w.send("a", 1)
		w.run(c, time.Minute)
		time.Sleep(6 * time.Minute)
		w.send("a", 1)
		w.run(c, time.Minute)
		assert.Equal(w, []string{"a1", "a1"}, w.done)
	})
	_, err := consumer.JSON(func(job) string { return "" })(`{}`)
	assert.ErrorContains(t, err, "the key is empty")
}
