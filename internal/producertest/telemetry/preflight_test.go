package telemetry

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/producertest"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

func TestNewProducerNamesEveryFault(t *testing.T) {
	_, err := sqsfifo.NewProducer(nil, sqsfifo.Config[producertest.Scene]{QueueURL: "https://h/queue", Source: "landsat", Deduplication: 7, Delivery: sqsfifo.Delivery{RetryFor: -time.Minute}})
	require.Error(t, err)
	for _, field := range []string{"client", "QueueURL", "Source", "Identify", "Deduplication", "RetryFor"} {
		assert.ErrorContains(t, err, field)
	}
	var c *sqsfifo.InvalidError
	require.ErrorAs(t, err, &c)
}

func TestQueueURL(t *testing.T) {
	for url, want := range map[string]string{
		"":                                    "empty",
		"https://h/queue":                     "does not end in .fifo",
		"scenes.fifo":                         "GetQueueUrl",
		"arn:aws:sqs:us-east-1:1:scenes.fifo": "GetQueueUrl",
		"ftp://h/scenes.fifo":                 "GetQueueUrl",
		"https://me:secret@h/scenes.fifo":     "user information",
		"https://me:secret@h/%zz.fifo":        "not a URL",
		"https://h/1/scenes.fifo":             "",
		"http://localhost:9324/1/scenes.fifo": "",
	} {
		c := producertest.Config()
		c.QueueURL = url
		_, err := sqsfifo.NewProducer(producertest.NewQueue(t, sqstest.Config{}), c)
		if want == "" {
			require.NoError(t, err)
			continue
		}
		var fault *sqsfifo.InvalidError
		require.ErrorAs(t, err, &fault)
		assert.Equal(t, "Config.QueueURL", fault.Field)
		assert.Contains(t, fault.Rule, want)
		assert.NotContains(t, err.Error(), "secret")
	}
}

func TestPreflight(t *testing.T) {
	producertest.WithBothClients(t, sqstest.Config{MaximumMessageSize: 2048}, func(t *testing.T, q *sqstest.Queue, client sqsfifo.Client) {
		report, err := producertest.On(t, client, q).Preflight(t.Context())
		require.NoError(t, err)
		require.Len(t, report.Notes, 1)
		assert.Contains(t, report.Notes[0], "2048")
		report.Notes = nil
		assert.Equal(t, sqsfifo.QueueReport{
			ARN:  q.ARN(),
			FIFO: true, ContentBasedDeduplication: true, DeduplicationScope: "queue", FifoThroughputLimit: "perQueue", MaximumMessageSize: 2048,
			Encryption: sqsfifo.EncryptionSQS,
		}, report)
	})
}

func TestPreflightNotes(t *testing.T) {
	fine := map[string]string{"FifoQueue": "true", "ContentBasedDeduplication": "true"}
	for _, tc := range []struct {
		name, attribute, value string
		note                   string
		want                   func(*sqsfifo.QueueReport)
	}{
		{"nothing but what is needed", "", "", "", func(*sqsfifo.QueueReport) {}},
		{"scope", "DeduplicationScope", "messageGroup", "another message group", func(r *sqsfifo.QueueReport) { r.DeduplicationScope = "messageGroup" }},
		{"throughput", "FifoThroughputLimit", "perMessageGroupId", "", func(r *sqsfifo.QueueReport) { r.FifoThroughputLimit = "perMessageGroupId" }},
		{"size", "MaximumMessageSize", "1024", "1024 bytes", func(r *sqsfifo.QueueReport) { r.MaximumMessageSize = 1024 }},
		{"full size", "MaximumMessageSize", "1048576", "", func(*sqsfifo.QueueReport) {}},
		{"more than SQS has", "MaximumMessageSize", "2097152", "", func(*sqsfifo.QueueReport) {}},
		{"no number", "MaximumMessageSize", "many", "", func(*sqsfifo.QueueReport) {}},
		{"delay", "DelaySeconds", "90", "1m30s", func(r *sqsfifo.QueueReport) { r.Delay = 90 * time.Second }},
		{"no delay", "DelaySeconds", "0", "", func(*sqsfifo.QueueReport) {}},
		{"a key of SQS", "SqsManagedSseEnabled", "true", "", func(r *sqsfifo.QueueReport) { r.Encryption = sqsfifo.EncryptionSQS }},
		{"a key of KMS", "KmsMasterKeyId", "alias/events", "kms:GenerateDataKey", func(r *sqsfifo.QueueReport) { r.Encryption = sqsfifo.EncryptionKMS }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			q := producertest.NewQueue(t, sqstest.Config{})
			attributes := maps.Clone(fine)
			attributes[tc.attribute] = tc.value
			got, err := producertest.On(t, &attributesClient{Client: q, out: attributes}, q).Preflight(t.Context())
			require.NoError(t, err)
			if tc.note == "" {
				assert.Empty(t, got.Notes)
			} else if assert.Len(t, got.Notes, 1) {
				assert.Contains(t, got.Notes[0], tc.note)
			}
			got.Notes = nil
			want := sqsfifo.QueueReport{
				FIFO: true, ContentBasedDeduplication: true, DeduplicationScope: "queue", FifoThroughputLimit: "perQueue",
				MaximumMessageSize: 1 << 20, Encryption: sqsfifo.EncryptionNone,
			}
			tc.want(&want)
			assert.Equal(t, want, got)
		})
	}
}

// With the deduplication scope messageGroup, SQS delivers an event again if its group
// changes. The producer therefore refuses a known key in another group.
func TestKeyThatMovesBetweenGroupsIsRefused(t *testing.T) {
	for _, scope := range []string{"queue", "messageGroup"} {
		producertest.WithBothClients(t, sqstest.Config{DeduplicationScope: sqstest.DeduplicationScope(scope)}, func(t *testing.T, q *sqstest.Queue, client sqsfifo.Client) {
			group := "north"
			p := producertest.On(t, client, q, func(c *sqsfifo.Config[producertest.Scene]) {
				c.Identify = func(s producertest.Scene) (sqsfifo.Identity, error) {
					id, err := producertest.Identify(s)
					id.Group = group
					return id, err
				}
			})
			_, err := p.Send(t.Context(), producertest.Sample)
			require.NoError(t, err)
			group = "south"
			_, err = p.Send(t.Context(), producertest.Sample)
			var conflict *sqsfifo.ConflictError
			require.ErrorAs(t, err, &conflict)
			assert.Equal(t, sqsfifo.ReuseDrift, conflict.Reuse)
			assert.True(t, conflict.SameBody)
			assert.Equal(t, "south", conflict.Group)
			assert.Len(t, q.Messages(), 1)
		})
	}
}

func TestQueueWithoutContentBasedDeduplication(t *testing.T) {
	producertest.WithBothClients(t, sqstest.Config{DisableContentBasedDeduplication: true}, func(t *testing.T, q *sqstest.Queue, client sqsfifo.Client) {
		_, err := producertest.On(t, client, q).Send(t.Context(), producertest.Sample)
		var wrong *sqsfifo.QueueError
		require.ErrorAs(t, err, &wrong)
		assert.Contains(t, err.Error(), "DeduplicationExplicit")
		assert.Empty(t, q.Messages())

		p := producertest.On(t, client, q, func(c *sqsfifo.Config[producertest.Scene]) { c.Deduplication = sqsfifo.DeduplicationExplicit })
		r, err := p.Send(t.Context(), producertest.Sample)
		require.NoError(t, err)
		assert.Equal(t, r.BodyHash, q.Messages()[0].DeduplicationID)
	})
}

// A producer with DeduplicationExplicit sends the same deduplication ID that SQS computes for
// content-based deduplication. SQS therefore recognises the event as a duplicate.
func TestExplicitBodyHashMeetsContentBased(t *testing.T) {
	producertest.WithBothClients(t, sqstest.Config{}, func(t *testing.T, q *sqstest.Queue, client sqsfifo.Client) {
		first, err := producertest.On(t, client, q).Send(t.Context(), producertest.Sample)
		require.NoError(t, err)
		explicit := producertest.On(t, client, q, func(c *sqsfifo.Config[producertest.Scene]) { c.Deduplication = sqsfifo.DeduplicationExplicit })
		again, err := explicit.Send(t.Context(), producertest.Sample)
		require.NoError(t, err)
		assert.Equal(t, first.MessageID, again.MessageID)
		assert.Len(t, q.Messages(), 1)
	})
}

// attributesClient answers GetQueueAttributes itself.
type attributesClient struct {
	sqsfifo.Client
	out   map[string]string
	err   error
	takes time.Duration
	calls int
}

func (c *attributesClient) GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	c.calls++
	time.Sleep(c.takes)
	return &sqs.GetQueueAttributesOutput{Attributes: c.out}, c.err
}

func TestFirstSendChecksTheQueue(t *testing.T) {
	q := producertest.NewQueue(t, sqstest.Config{})
	standard := &attributesClient{Client: q, out: map[string]string{}}
	_, err := producertest.On(t, standard, q).Send(t.Context(), producertest.Sample)
	var wrong *sqsfifo.QueueError
	require.ErrorAs(t, err, &wrong)
	assert.Len(t, wrong.Problems, 2, "all problems at once: %v", err)

	var o *observed
	var records []sqsfifo.ProvenanceRecord
	p := producertest.On(t, standard, q, func(c *sqsfifo.Config[producertest.Scene]) {
		o = observe(c)
		c.Telemetry.Provenance = func(r sqsfifo.ProvenanceRecord) error { records = append(records, r); return nil }
	})
	require.ErrorAs(t, p.SendBatch(t.Context(), producertest.Scenes(3, 2)).Err(), &wrong)
	p.SendAsync(t.Context(), producertest.Sample, func(_ sqsfifo.Receipt, err error) { require.ErrorAs(t, err, &wrong) })
	require.NoError(t, p.Close(t.Context()))
	require.Len(t, o.spans.Ended(), 4, "an event that is turned away has its span and its record, too")
	require.Len(t, records, 4)
	for i, r := range records {
		assert.Equal(t, "queue", attributesOf(o.spans.Ended()[i])["error.type"])
		assert.Equal(t, sqsfifo.ProvenanceNotStored, r.Outcome)
		assert.Equal(t, "queue", r.ErrorType)
		assert.NotEmpty(t, r.EventID)
	}

	denied := &attributesClient{Client: q, err: &smithy.GenericAPIError{Code: "AccessDeniedException"}}
	p = producertest.On(t, denied, q)
	for i := range 3 {
		_, err = p.Send(t.Context(), producertest.Scenes(3, 1)[i])
		require.NoError(t, err, "may send, may not read attributes")
	}
	assert.Equal(t, 1, denied.calls)
}

// The first sends wait for the answer to the request for the queue's attributes.
func TestSendsWaitForTheQueuesAttributes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		standard := &attributesClient{Client: q, out: map[string]string{}, takes: time.Second}
		p := producertest.On(t, standard, q)
		var all sync.WaitGroup
		for _, s := range producertest.Scenes(3, 3) {
			all.Go(func() {
				_, err := p.Send(t.Context(), s)
				var wrong *sqsfifo.QueueError
				assert.ErrorAs(t, err, &wrong)
			})
		}
		all.Wait()
		assert.Empty(t, q.Messages())
	})
}

// If the request for the queue's attributes fails, sends are not slowed down. The producer
// repeats the request at most every ten seconds, and no send waits for a repeated request.
func TestQueueThatTellsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		down := &attributesClient{Client: q, err: errors.New("connection refused")}
		p := producertest.On(t, down, q)
		all := producertest.Scenes(6, 6)
		for i := range 2 {
			_, err := p.Send(t.Context(), all[i])
			require.NoError(t, err)
		}
		assert.Equal(t, 1, down.calls)
		time.Sleep(10*time.Second - 1)
		_, err := p.Send(t.Context(), all[2])
		require.NoError(t, err)
		assert.Equal(t, 1, down.calls)

		time.Sleep(time.Nanosecond)
		down.takes = 15 * time.Second
		var slow sync.WaitGroup
		slow.Go(func() {
			_, err := p.Send(t.Context(), all[3])
			assert.NoError(t, err)
		})
		synctest.Wait()
		start := time.Now()
		_, err = p.Send(t.Context(), all[4])
		require.NoError(t, err)
		assert.Equal(t, start, time.Now())
		slow.Wait()
		assert.Equal(t, 2, down.calls)

		ended, cancel := context.WithCancel(t.Context())
		cancel()
		time.Sleep(10 * time.Second)
		_, err = p.Send(ended, all[5])
		require.Error(t, err)
		down.takes = 0
		_, err = p.Send(t.Context(), all[5])
		require.NoError(t, err)
		assert.Equal(t, 4, down.calls, "that a caller gave up says nothing of the queue")
	})
}

func TestQueueLimitHoldsForEachMessage(t *testing.T) {
	q := producertest.NewQueue(t, sqstest.Config{MaximumMessageSize: 1024})
	p := producertest.On(t, q, q)
	big := producertest.Sample
	// The body contains the ID twice, so it exceeds the queue's limit of 1,024 bytes, but
	// not the limit of SQS.
	big.ID = strings.Repeat("x", 500)
	_, err := p.Build(big)
	require.NoError(t, err, "Build knows the limit of SQS only, unless the queue was asked")
	_, err = p.Send(t.Context(), big)
	var v *sqsfifo.ViolationError
	require.ErrorAs(t, err, &v)
	assert.Equal(t, "SF050", v.Findings[0].Rule)
}

// The producer asks an unusable queue for its attributes at most every ten seconds, not
// on each send. After the queue's repair, the producer works.
func TestWrongQueueIsAskedAtIntervals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		c := &attributesClient{Client: q, out: map[string]string{"FifoQueue": "true"}}
		p := producertest.On(t, c, q)
		for n := range 100 {
			_, err := p.Send(t.Context(), producertest.Scene{ID: fmt.Sprint(n), PathRow: "1", Acquired: producertest.Sample.Acquired})
			var wrong *sqsfifo.QueueError
			require.ErrorAs(t, err, &wrong)
			assert.Equal(t, sqsfifo.FateNotStored, sqsfifo.FateOf(err))
		}
		assert.Equal(t, 1, c.calls)
		c.out["ContentBasedDeduplication"] = "true"
		time.Sleep(10 * time.Second)
		_, err := p.Send(t.Context(), producertest.Sample)
		require.NoError(t, err)
		assert.Equal(t, 2, c.calls)
	})
}

// TrySend never blocks. If the attributes of the queue are unknown, TrySend returns, and only
// the request with the event waits for the attributes.
func TestTrySendDoesNotWaitForTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		c := &attributesClient{Client: q, err: errors.New("no answer"), takes: 15 * time.Second}
		p := producertest.On(t, c, q)
		start := time.Now()
		require.NoError(t, p.TrySend(t.Context(), producertest.Sample, producertest.Stored(t)))
		assert.Zero(t, time.Since(start))
		require.NoError(t, p.Close(t.Context()))
		assert.Equal(t, 15*time.Second, time.Since(start))
		assert.Len(t, q.Messages(), 1)
	})
}
