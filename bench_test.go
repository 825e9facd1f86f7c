package sqsfifo_test

import (
	"crypto/sha256"
	"encoding/json"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/producertest"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// BenchmarkBuild measures Build. For comparison, it encodes the envelope of the same
// event with encoding/json and hashes the result with SHA-256.
func BenchmarkBuild(b *testing.B) {
	q := producertest.NewQueue(b, sqstest.Config{})
	p := producertest.On(b, q, q)
	b.Run("sqsfifo", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := p.Build(producertest.Sample); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encoding-json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			key, err := sqsfifo.JoinKey("landsat", producertest.Sample.ID)
			if err != nil {
				b.Fatal(err)
			}
			body, err := json.Marshal(sqsfifo.Envelope[producertest.Scene]{
				DedupeKey: key, EventID: sqsfifo.DeriveEventID(producertest.Source, key, producertest.Sample.Acquired),
				EventSource: producertest.Source, EventTime: producertest.Sample.Acquired, Payload: producertest.Sample,
			})
			if err != nil {
				b.Fatal(err)
			}
			sha256.Sum256(body)
		}
	})
}

// BenchmarkSend sends the same event repeatedly to the fake queue in this process: once
// through a producer (sqsfifo), and once directly (queue-alone). The difference is the
// producer's time.
func BenchmarkSend(b *testing.B) {
	q := producertest.NewQueue(b, sqstest.Config{})
	p := producertest.On(b, q, q)
	b.Run("sqsfifo", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := p.Send(b.Context(), producertest.Sample); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("queue-alone", func(b *testing.B) {
		msg, err := p.Build(producertest.Sample)
		require.NoError(b, err)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := q.SendMessage(b.Context(), &sqs.SendMessageInput{QueueUrl: aws.String(q.URL()), MessageBody: &msg.Body, MessageGroupId: &msg.Group}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkSendBatch sends full batches through a client that answers immediately. It
// measures the producer's time per event.
func BenchmarkSendBatch(b *testing.B) {
	q := producertest.NewQueue(b, sqstest.Config{})
	p := producertest.On(b, producertest.InstantClient{Queue: q}, q)
	const n = 1000
	all := producertest.Scenes(n, n)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		for j := range all {
			all[j].ID = strconv.Itoa(i*n + j)
		}
		if err := p.SendBatch(b.Context(), all).Err(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/event")
}
