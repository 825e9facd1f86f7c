package doubt

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/producertest"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// awsConfig returns a configuration for a server on this machine. In production,
// config.LoadDefaultConfig returns the configuration.
func awsConfig(endpoint string) aws.Config {
	return aws.Config{
		Region:       "us-east-1",
		BaseEndpoint: aws.String(endpoint),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "secret"}, nil
		}),
	}
}

// With more than ten concurrent requests, the SDK's default client keeps opening
// connections. NewClient's client opens about as many connections as there are concurrent
// requests.
func TestNewClientKeepsItsConnections(t *testing.T) {
	const inFlight, rounds = 32, 8
	opened := func(client func(aws.Config) *sqs.Client) int {
		q := producertest.NewQueue(t, sqstest.Config{})
		fake, together := sqstest.NewServer(q), newBarrier(inFlight)
		var opened atomic.Int64
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			together.wait()
			fake.ServeHTTP(w, r)
		}))
		server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
			if s == http.StateNew {
				opened.Add(1)
			}
		}
		server.Start()
		defer server.Close()
		c := client(awsConfig(server.URL))
		for range rounds {
			var wg sync.WaitGroup
			for range inFlight {
				wg.Go(func() {
					_, err := c.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: aws.String(q.URL())})
					assert.NoError(t, err)
				})
			}
			wg.Wait()
		}
		return int(opened.Load())
	}
	// A request may open a connection just before another request returns one, so allow a
	// quarter more.
	assert.Less(t, opened(func(c aws.Config) *sqs.Client { return sqsfifo.NewClient(c) }), inFlight*5/4)
	assert.Greater(t, opened(func(c aws.Config) *sqs.Client { return sqs.NewFromConfig(c) }), 2*inFlight, "the test would see it")
}

func TestNewClientLeavesAnotherHTTPClientAlone(t *testing.T) {
	cfg := awsConfig("http://127.0.0.1:1")
	mine := &http.Client{}
	cfg.HTTPClient = mine
	assert.Same(t, mine, sqsfifo.NewClient(cfg).Options().HTTPClient)
	last := sqsfifo.NewClient(cfg, func(o *sqs.Options) { o.Region = "eu-west-1" })
	assert.Equal(t, "eu-west-1", last.Options().Region)

	cfg.HTTPClient = awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) { t.ResponseHeaderTimeout, t.WriteBufferSize = time.Second, 1<<20 })
	var got *http.Transport
	sqsfifo.NewClient(cfg, func(o *sqs.Options) { got = o.HTTPClient.(*awshttp.BuildableClient).GetTransport() })
	assert.Equal(t, time.Second, got.ResponseHeaderTimeout, "the caller's settings stay")
	assert.Equal(t, 1<<20, got.WriteBufferSize, "a larger buffer stays")
}

// barrier blocks n callers until all n have arrived.
type barrier struct {
	mu      sync.Mutex
	n, here int
	open    chan struct{}
}

func newBarrier(n int) *barrier { return &barrier{n: n, open: make(chan struct{})} }

func (b *barrier) wait() {
	b.mu.Lock()
	open := b.open
	if b.here++; b.here == b.n {
		b.here, b.open = 0, make(chan struct{})
		close(open)
	}
	b.mu.Unlock()
	<-open
}

// alteringClient answers as if SQS had stored a different message.
type alteringClient struct {
	*sqstest.Queue
	body, attributes bool
}

func (c alteringClient) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, o ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	out, err := c.Queue.SendMessageBatch(ctx, in, o...)
	if err == nil && c.body {
		out.Successful[1].MD5OfMessageBody = aws.String("00000000000000000000000000000000")
	}
	if err == nil && c.attributes {
		out.Successful[1].MD5OfMessageAttributes = aws.String("00000000000000000000000000000000")
	}
	return out, err
}

func TestDigestsAreCheckedForEachMessage(t *testing.T) {
	for _, tc := range []struct {
		field         string
		deduplication sqsfifo.Deduplication
		dropped       bool // SQS drops a resend as a duplicate of the stored message
	}{
		{"MessageBody", sqsfifo.DeduplicationContentBased, false},
		{"MessageBody", sqsfifo.DeduplicationExplicit, true},
		{"MessageAttributes", sqsfifo.DeduplicationContentBased, true},
		{"MessageAttributes", sqsfifo.DeduplicationExplicit, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			q := producertest.NewQueue(t, sqstest.Config{})
			var records []sqsfifo.ProvenanceRecord
			p := producertest.On(t, alteringClient{q, tc.field == "MessageBody", tc.field == "MessageAttributes"}, q, func(c *sqsfifo.Config[producertest.Scene]) {
				c.Attributes = func(producertest.Scene) map[string]string { return map[string]string{"sensor": "OLI"} }
				c.Deduplication = tc.deduplication
				c.Telemetry.Provenance = func(r sqsfifo.ProvenanceRecord) error { records = append(records, r); return nil }
			})
			events := producertest.Scenes(3, 3)
			results := p.SendBatch(t.Context(), events)
			require.NoError(t, results[0].Err)
			require.NoError(t, results[2].Err)
			var altered *sqsfifo.AlteredError
			require.ErrorAs(t, results[1].Err, &altered)
			assert.Equal(t, tc.field, altered.Field)
			assert.Equal(t, 1, altered.Attempts, "another attempt would hide it")
			var doubt *sqsfifo.InDoubtError
			assert.NotErrorAs(t, results[1].Err, &doubt, "who resends before may be told of success")
			assert.Equal(t, tc.dropped, !altered.ResendAfter.IsZero())

			if tc.dropped {
				sent := len(q.Messages()) + len(q.Suppressed())
				_, err := p.Send(t.Context(), events[1])
				var again *sqsfifo.AlteredError
				require.ErrorAs(t, err, &again)
				assert.Zero(t, again.Attempts)
				assert.WithinDuration(t, altered.ResendAfter, again.ResendAfter, 0)
				assert.Equal(t, sent, len(q.Messages())+len(q.Suppressed()), "nothing was sent")
				time.Sleep(time.Until(altered.ResendAfter))
			}
			_, err := p.Send(t.Context(), events[1])
			require.NoError(t, err)
			assert.Empty(t, p.Paused())

			require.NoError(t, p.Close(t.Context()))
			// The outcomes of different groups are reported in any order.
			key, err := sqsfifo.JoinKey("landsat", events[1].ID)
			require.NoError(t, err)
			first := slices.IndexFunc(records, func(r sqsfifo.ProvenanceRecord) bool { return r.DedupeKey == key })
			assert.Equal(t, sqsfifo.ProvenanceAltered, records[first].Outcome)
		})
	}
}

// mutedClient removes the MD5 digests from the answers to batches, like some SQS emulators.
type mutedClient struct{ *sqstest.Queue }

func (c mutedClient) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, o ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	out, err := c.Queue.SendMessageBatch(ctx, in, o...)
	for i := range out.Successful {
		out.Successful[i].MD5OfMessageBody, out.Successful[i].MD5OfMessageAttributes = nil, nil
	}
	return out, err
}

// A batch's answer without digests does not prove that SQS stored the events. The
// producer then sends each event alone.
func TestAnswersWithoutDigests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		p := producertest.On(t, mutedClient{q}, q, func(c *sqsfifo.Config[producertest.Scene]) {
			c.Attributes = func(producertest.Scene) map[string]string { return map[string]string{"sensor": "OLI"} }
		})
		require.NoError(t, p.SendBatch(t.Context(), producertest.Scenes(3, 3)).Err())
		// This answer has a digest of attributes, although the message has none.
		p = producertest.On(t, alteringClient{q, false, true}, q)
		require.NoError(t, p.SendBatch(t.Context(), producertest.Scenes(6, 3)[3:]).Err())
	})
}

// An event is stored. The answer to a resend has a wrong digest, so the resend ends with an
// AlteredError. With a right digest, the next resend is a duplicate.
func TestDigestOfAResend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		c := &changingClient{Client: q}
		p := producertest.On(t, c, q, func(c *sqsfifo.Config[producertest.Scene]) { c.Deduplication = sqsfifo.DeduplicationExplicit })
		first, err := p.Send(t.Context(), producertest.Sample)
		require.NoError(t, err)
		c.digest = aws.String("00000000000000000000000000000000")
		_, err = p.Send(t.Context(), producertest.Sample)
		var altered *sqsfifo.AlteredError
		require.ErrorAs(t, err, &altered)
		c.digest = nil
		again, err := p.Send(t.Context(), producertest.Sample)
		require.NoError(t, err)
		assert.True(t, again.Duplicate)
		assert.Equal(t, first.MessageID, again.MessageID)
	})
}

// changingClient changes the digest of the body in the answers to single messages.
type changingClient struct {
	sqsfifo.Client
	digest *string
}

func (c *changingClient) SendMessage(ctx context.Context, in *sqs.SendMessageInput, o ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	out, err := c.Client.SendMessage(ctx, in, o...)
	if err == nil && c.digest != nil {
		out.MD5OfMessageBody = c.digest
	}
	return out, err
}

// NewClient's client writes a small request in one step and keeps the connection. The SDK's
// client writes twice, and loses the connection if the server answers before the second
// write.
func TestNewClientWritesARequestAtOnce(t *testing.T) {
	for name, test := range map[string]struct {
		body     string
		requests int
		atOnce   bool
	}{
		"ten usual events": {strings.Repeat("x", 600), 50, true},
		"large events":     {strings.Repeat("x", 90_000), 5, false},
	} {
		t.Run(name, func(t *testing.T) {
			q := producertest.NewQueue(t, sqstest.Config{})
			server := httptest.NewServer(sqstest.NewServer(q))
			defer server.Close()
			var writes, dials atomic.Int64
			counted := func(o *sqs.Options) {
				o.HTTPClient = o.HTTPClient.(*awshttp.BuildableClient).WithTransportOptions(func(tr *http.Transport) {
					tr.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
						c, err := new(net.Dialer).DialContext(ctx, network, address)
						dials.Add(1)
						return countedConn{c, &writes}, err
					}
				})
			}
			client := sqsfifo.NewClient(awsConfig(server.URL), counted)
			for i := range test.requests {
				in := &sqs.SendMessageBatchInput{QueueUrl: aws.String(q.URL())}
				for j := range 10 {
					in.Entries = append(in.Entries, types.SendMessageBatchRequestEntry{
						Id: aws.String(strconv.Itoa(j)), MessageGroupId: aws.String("g"), MessageBody: aws.String(fmt.Sprint(test.body, i, j)),
					})
				}
				out, err := client.SendMessageBatch(t.Context(), in)
				require.NoError(t, err)
				require.Len(t, out.Successful, 10)
			}
			// The transport gives up a connection if its goroutine for writes does not run for
			// 50 ms after the answer. A busy machine may do that once.
			assert.LessOrEqual(t, dials.Load(), int64(2), "an answer does not cost the connection")
			if test.atOnce {
				assert.EqualValues(t, test.requests, writes.Load())
			}
			assert.Len(t, q.Messages(), test.requests*10)
		})
	}
}

type countedConn struct {
	net.Conn
	writes *atomic.Int64
}

func (c countedConn) Write(b []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(b)
}
