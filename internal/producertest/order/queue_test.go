package order

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/producertest"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// Two producers on one Queue send a group's events in call order. If the second producer
// sends another payload with a dedupe key of the first, the result is a ConflictError.
func TestProducersShareAQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := producertest.NewQueue(t, sqstest.Config{})
		queue, err := sqsfifo.NewQueue(&slowClient{Queue: fake, latency: time.Second, start: time.Now()}, sqsfifo.QueueConfig{URL: fake.URL()})
		require.NoError(t, err)
		first, err := sqsfifo.NewProducerOn(queue, sqsfifo.Config[producertest.Scene]{Source: producertest.Source, Identify: producertest.Identify})
		require.NoError(t, err)
		second, err := sqsfifo.NewProducerOn(queue, sqsfifo.Config[*producertest.Scene]{
			Source: producertest.Source, Identify: func(s *producertest.Scene) (sqsfifo.Identity, error) { return producertest.Identify(*s) },
		})
		require.NoError(t, err)
		assert.Same(t, queue, second.Queue())
		for n := range 3 {
			one, two := producertest.Event("a", 2*n), producertest.Event("a", 2*n+1)
			first.SendAsync(t.Context(), one, producertest.Stored(t))
			second.SendAsync(t.Context(), &two, producertest.Stored(t))
		}
		require.NoError(t, first.Flush(t.Context()))
		require.Len(t, fake.Messages(), 6)
		for n, m := range fake.Messages() {
			e, err := sqsfifo.DecodeEnvelope[producertest.Scene](m.Body)
			require.NoError(t, err)
			assert.Equal(t, producertest.Event("a", n).ID, e.Payload.ID)
		}
		reused := producertest.Event("a", 0)
		reused.Cloud = 99
		_, err = second.Send(t.Context(), &reused)
		var conflict *sqsfifo.ConflictError
		require.ErrorAs(t, err, &conflict)
		require.NoError(t, first.Close(t.Context()))
		_, err = second.Send(t.Context(), &producertest.Sample)
		require.ErrorIs(t, err, sqsfifo.ErrClosed)
	})
}

func TestNewProducerOnRefusesWhatBelongsToTheQueue(t *testing.T) {
	fake := producertest.NewQueue(t, sqstest.Config{})
	queue, err := sqsfifo.NewQueue(fake, sqsfifo.QueueConfig{URL: fake.URL()})
	require.NoError(t, err)
	_, err = sqsfifo.NewProducerOn(queue, sqsfifo.Config[producertest.Scene]{
		QueueURL: fake.URL(), Deduplication: sqsfifo.DeduplicationExplicit, Delivery: sqsfifo.Delivery{InFlight: 1},
		Telemetry: sqsfifo.Telemetry{Provenance: func(sqsfifo.ProvenanceRecord) error { return nil }},
	})
	for _, field := range []string{"QueueURL", "Deduplication", "Delivery", "Telemetry", "Source", "Identify"} {
		require.ErrorContains(t, err, "Config."+field+":")
	}
	_, err = sqsfifo.NewProducerOn(nil, sqsfifo.Config[producertest.Scene]{Source: producertest.Source, Identify: producertest.Identify})
	require.ErrorContains(t, err, "nil queue")
	_, err = sqsfifo.NewQueue(nil, sqsfifo.QueueConfig{URL: "https://h/q", Delivery: sqsfifo.Delivery{Memory: sqsfifo.Memory{MaxKeys: -1}}})
	for _, says := range []string{"nil client", "QueueURL", "Memory.MaxKeys"} {
		require.ErrorContains(t, err, says)
	}
}

// After an outage longer than the deduplication interval, every group continues without a
// call of Resume: attempts that never left this machine do not pause a group.
func TestGroupsGoOnAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		const groups = 1000
		q.Inject(sqstest.Throttle(), 1_000_000)
		p := producertest.On(t, q, q, func(c *sqsfifo.Config[producertest.Scene]) { c.Delivery.InFlight = 64 })
		var notStored atomic.Int64 // callbacks of different groups may run concurrently
		for _, s := range producertest.Scenes(groups, groups) {
			p.SendAsync(t.Context(), s, func(_ sqsfifo.Receipt, err error) {
				if sqsfifo.FateOf(err) == sqsfifo.FateNotStored {
					notStored.Add(1)
				}
			})
		}
		time.Sleep(6 * time.Minute)
		assert.EqualValues(t, groups, notStored.Load())
		assert.Empty(t, p.Paused())
		q.ClearFaults()
		require.NoError(t, p.SendBatch(t.Context(), producertest.Scenes(groups, groups)).Err())
		assert.Len(t, q.Messages(), groups)
	})
}

// An event certainly not stored does not pause its group, even if its context ended. An
// event in doubt pauses the group until ResumeAll.
func TestOnlyDoubtPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		p := producertest.On(t, q, q)
		q.Inject(sqstest.Throttle(), 1000)
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := p.Send(short, producertest.Sample)
		assert.Equal(t, sqsfifo.FateNotStored, sqsfifo.FateOf(err))
		assert.Empty(t, p.Paused())
		q.ClearFaults()

		p = producertest.On(t, q, q) // a new producer, because the first one sends slowly after the throttles
		producertest.InDoubt(t, p, q, sqstest.LoseAnswer())
		assert.Len(t, p.Paused(), 1)
		assert.Equal(t, 1, p.Stats().PausedGroups)
		assert.Equal(t, 1, p.ResumeAll())
		assert.Zero(t, p.ResumeAll())
		assert.Empty(t, p.Paused())
	})
}

// If the memory has MaxKeys keys, an event with a new key is refused until the five
// minutes of another key are over. Events with remembered keys are still recognised as
// duplicates.
func TestMaxKeysRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		p := producertest.On(t, q, q, func(c *sqsfifo.Config[producertest.Scene]) { c.Delivery.Memory.MaxKeys = 10 })
		all := producertest.Scenes(11, 11)
		require.NoError(t, p.SendBatch(t.Context(), all[:10]).Err())
		assert.Equal(t, 10, p.Stats().RememberedKeys)
		_, err := p.Send(t.Context(), all[10])
		require.ErrorIs(t, err, sqsfifo.ErrMemoryFull)
		assert.Equal(t, sqsfifo.FateNotStored, sqsfifo.FateOf(err))
		for _, r := range p.SendBatch(t.Context(), all[:10]) {
			require.NoError(t, r.Err)
			assert.True(t, r.Receipt.Duplicate)
		}
		time.Sleep(5*time.Minute + 5*time.Second)
		_, err = p.Send(t.Context(), all[10])
		require.NoError(t, err)
	})
}

// After ten idle minutes the memory is empty.
func TestIdleProducerForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		p := producertest.On(t, q, q)
		require.NoError(t, p.SendBatch(t.Context(), producertest.Scenes(5000, 5000)).Err())
		assert.Equal(t, 5000, p.Stats().RememberedKeys)
		time.Sleep(10 * time.Minute)
		assert.Zero(t, p.Stats().RememberedKeys)
		require.NoError(t, p.Close(t.Context()))
	})
}

// bulky is a small event with a large message.
type bulky struct{ N int }

func (b bulky) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, `{"n":%d,"text":"%s"}`, b.N, strings.Repeat("x", 5000)), nil
}

// SendBatch frees each message after its outcome: 100,000 messages of 5 kB each pass
// through a buffer of 1 MiB.
func TestSendBatchLetsGoOfMessages(t *testing.T) {
	events := 100_000
	if testing.Short() {
		events = 10_000
	}
	q := producertest.NewQueue(t, sqstest.Config{})
	var most atomic.Uint64
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	p, err := sqsfifo.NewProducer(producertest.InstantClient{Queue: q}, sqsfifo.Config[bulky]{
		QueueURL: q.URL(), Source: producertest.Source, Delivery: sqsfifo.Delivery{BufferBytes: 1 << 20},
		Identify: func(b bulky) (sqsfifo.Identity, error) {
			if (b.N+1)%(events/5) == 0 {
				most.Store(max(most.Load(), heap()))
			}
			return sqsfifo.Identity{DedupeKey: strconv.Itoa(b.N), Group: strconv.Itoa(b.N % 100), Time: producertest.Sample.Acquired}, nil
		},
	})
	require.NoError(t, err)
	all := make([]bulky, events)
	for i := range all {
		all[i].N = i
	}
	before := heap()
	require.NoError(t, p.SendBatch(t.Context(), all).Err())
	t.Logf("heap before %d MiB, at most %d MiB meanwhile", before>>20, most.Load()>>20)
	assert.Less(t, most.Load(), before+uint64(events)*1000, "the messages are five times as large")
}

// SendAsync and TrySend are called with a nil callback. Flush and Close report each failed
// event exactly once.
func TestFailuresWithoutACallbackAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		p := producertest.On(t, q, q)
		q.Inject(senderFault, 1000)
		for _, s := range producertest.Scenes(101, 7) {
			p.SendAsync(t.Context(), s, nil)
		}
		var unreported *sqsfifo.UnreportedError
		require.ErrorAs(t, p.Flush(t.Context()), &unreported)
		assert.Equal(t, 101, unreported.Failed)
		assert.Equal(t, sqsfifo.FateNotStored, sqsfifo.FateOf(unreported.First))
		assert.Equal(t, sqsfifo.FateUnknown, sqsfifo.FateOf(unreported))
		require.NoError(t, p.Flush(t.Context()), "reported once")
		require.NoError(t, p.TrySend(t.Context(), producertest.Sample, nil))
		require.ErrorAs(t, p.Close(t.Context()), &unreported)
		assert.Equal(t, 1, unreported.Failed)
		require.NoError(t, p.Close(t.Context()))
	})
}

// blackHole never answers.
type blackHole struct{ *sqstest.Queue }

func (blackHole) SendMessage(ctx context.Context, _ *sqs.SendMessageInput, _ ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (blackHole) SendMessageBatch(ctx context.Context, _ *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// When the context of Close ends, Close withdraws the remaining events. Each event has
// its outcome before Close returns, and the outcome shows whether a request contained the
// event.
func TestCloseGivesEachEventItsOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		p := producertest.On(t, blackHole{q}, q, func(c *sqsfifo.Config[producertest.Scene]) { c.Delivery.InFlight = 2 })
		start := time.Now()
		var mu sync.Mutex
		fates := map[sqsfifo.Fate]int{}
		for _, s := range producertest.Scenes(40, 40) {
			p.SendAsync(t.Context(), s, func(_ sqsfifo.Receipt, err error) {
				assert.ErrorIs(t, err, context.DeadlineExceeded)
				mu.Lock()
				defer mu.Unlock()
				fates[sqsfifo.FateOf(err)]++
			})
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, p.Close(ctx), context.DeadlineExceeded)
		assert.Equal(t, 40, fates[sqsfifo.FateNotStored]+fates[sqsfifo.FateInDoubt])
		assert.Positive(t, fates[sqsfifo.FateInDoubt])
		assert.Positive(t, fates[sqsfifo.FateNotStored])
		assert.Equal(t, time.Second, time.Since(start), "the requests end, too")
		assert.Empty(t, producertest.Leftovers(p))
	})
}

// A callback that never returns delays only the reports of its own group, and delays Close by
// one second.
func TestCloseWithABlockedCallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		p := producertest.On(t, q, q)
		release := make(chan struct{})
		defer close(release)
		p.SendAsync(t.Context(), producertest.Event("a", 0), func(sqsfifo.Receipt, error) { <-release })
		p.SendAsync(t.Context(), producertest.Event("a", 1), producertest.Stored(t))
		reported := 0
		for n := range 9 {
			p.SendAsync(t.Context(), producertest.Event("b", n), func(sqsfifo.Receipt, error) { reported++ })
		}
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := p.Close(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "2 outcomes not reported")
		assert.Equal(t, 2*time.Second, time.Since(start))
		assert.Equal(t, 9, reported)
	})
}

// oddClient returns impossible answers.
type oddClient struct {
	*sqstest.Queue
	send func() (*sqs.SendMessageOutput, error)
}

func (c oddClient) SendMessage(context.Context, *sqs.SendMessageInput, ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	return c.send()
}

// A misbehaving client causes an error, and does not end the process.
func TestOddClients(t *testing.T) {
	var none *sqs.Client
	_, err := sqsfifo.NewProducer(none, producertest.Config())
	require.ErrorContains(t, err, "nil client")
	for name, send := range map[string]func() (*sqs.SendMessageOutput, error){
		"nothing":          func() (*sqs.SendMessageOutput, error) { return nil, nil }, //nolint:nilnil // the purpose of this case
		"a panic":          func() (*sqs.SendMessageOutput, error) { panic("index out of range") },
		"an empty answer":  func() (*sqs.SendMessageOutput, error) { return &sqs.SendMessageOutput{}, nil },
		"an ID and no MD5": func() (*sqs.SendMessageOutput, error) { return &sqs.SendMessageOutput{MessageId: aws.String("1")}, nil },
		"Goexit":           func() (*sqs.SendMessageOutput, error) { runtime.Goexit(); return nil, errors.New("never") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := producertest.NewQueue(t, sqstest.Config{})
				p := producertest.On(t, oddClient{q, send}, q)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				_, err := p.Send(ctx, producertest.Sample)
				assert.Equal(t, sqsfifo.FateInDoubt, sqsfifo.FateOf(err), "%v", err)
				closing, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				require.NoError(t, p.Close(closing))
			})
		})
	}
}
