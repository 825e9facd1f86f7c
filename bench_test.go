package sqsfifo_test

import (
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// BenchmarkBuild measures Build. For comparison, it encodes the envelope of the same
// event with encoding/json and hashes the result with SHA-256.
func BenchmarkBuild(b *testing.B) {
	q := newQueue(b, sqstest.Config{})
	p := on(b, q, q)
	b.Run("sqsfifo", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := p.Build(scene); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encoding-json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			key, err := sqsfifo.JoinKey("landsat", scene.ID)
			if err != nil {
				b.Fatal(err)
			}
			body, err := json.Marshal(sqsfifo.Envelope[Scene]{
				DedupeKey: key, EventID: sqsfifo.DeriveEventID(source, key, scene.Acquired),
				EventSource: source, EventTime: scene.Acquired, Payload: scene,
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
	q := newQueue(b, sqstest.Config{})
	p := on(b, q, q)
	b.Run("sqsfifo", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := p.Send(b.Context(), scene); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("queue-alone", func(b *testing.B) {
		msg, err := p.Build(scene)
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
	q := newQueue(b, sqstest.Config{})
	p := on(b, instantClient{q}, q)
	const n = 1000
	all := scenes(n, n)
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

// instantClient stores nothing and reports success.
type instantClient struct{ *sqstest.Queue }

func (instantClient) SendMessageBatch(_ context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	out := &sqs.SendMessageBatchOutput{Successful: make([]types.SendMessageBatchResultEntry, len(in.Entries))}
	for i, e := range in.Entries {
		out.Successful[i] = types.SendMessageBatchResultEntry{Id: e.Id, MessageId: e.Id, SequenceNumber: e.Id, MD5OfMessageBody: md5Of(e.MessageBody)}
	}
	return out, nil
}

func md5Of(body *string) *string {
	sum := md5.Sum([]byte(*body))
	return aws.String(hex.EncodeToString(sum[:]))
}
