package sqsfifo_test

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
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// Two producers on one Queue send a group's events in call order. If the second producer
// sends another payload with a dedupe key of the first, the result is a ConflictError.
func TestProducersShareAQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := newQueue(t, sqstest.Config{})
		queue, err := sqsfifo.NewQueue(&slowClient{Queue: fake, latency: time.Second, start: time.Now()}, sqsfifo.QueueConfig{URL: fake.URL()})
		require.NoError(t, err)
		first, err := sqsfifo.NewProducerOn(queue, sqsfifo.Config[Scene]{Source: source, Identify: identify})
		require.NoError(t, err)
		second, err := sqsfifo.NewProducerOn(queue, sqsfifo.Config[*Scene]{
			Source: source, Identify: func(s *Scene) (sqsfifo.Identity, error) { return identify(*s) },
		})
		require.NoError(t, err)
		assert.Same(t, queue, second.Queue())
		for n := range 3 {
			one, two := event("a", 2*n), event("a", 2*n+1)
			first.SendAsync(t.Context(), one, fail(t))
			second.SendAsync(t.Context(), &two, fail(t))
		}
		require.NoError(t, first.Flush(t.Context()))
		require.Len(t, fake.Messages(), 6)
		for n, m := range fake.Messages() {
			e, err := sqsfifo.DecodeEnvelope[Scene](m.Body)
			require.NoError(t, err)
			assert.Equal(t, event("a", n).ID, e.Payload.ID)
		}
		reused := event("a", 0)
		reused.Cloud = 99
		_, err = second.Send(t.Context(), &reused)
		var conflict *sqsfifo.ConflictError
		require.ErrorAs(t, err, &conflict)
		require.NoError(t, first.Close(t.Context()))
		_, err = second.Send(t.Context(), &scene)
		require.ErrorIs(t, err, sqsfifo.ErrClosed)
	})
}

func TestNewProducerOnRefusesWhatBelongsToTheQueue(t *testing.T) {
	fake := newQueue(t, sqstest.Config{})
	queue, err := sqsfifo.NewQueue(fake, sqsfifo.QueueConfig{URL: fake.URL()})
	require.NoError(t, err)
	_, err = sqsfifo.NewProducerOn(queue, sqsfifo.Config[Scene]{
		QueueURL: fake.URL(), Deduplication: sqsfifo.ExplicitBodyHash, Delivery: sqsfifo.Delivery{InFlight: 1},
		Telemetry: sqsfifo.Telemetry{Provenance: func(sqsfifo.ProvenanceRecord) error { return nil }},
	})
	for _, field := range []string{"QueueURL", "Deduplication", "Delivery", "Telemetry", "Source", "Identify"} {
		require.ErrorContains(t, err, "Config."+field+":")
	}
	_, err = sqsfifo.NewProducerOn(nil, sqsfifo.Config[Scene]{Source: source, Identify: identify})
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
		q := newQueue(t, sqstest.Config{})
		const groups = 1000
		q.Inject(sqstest.Throttle(), 1_000_000)
		p := on(t, q, q, func(c *sqsfifo.Config[Scene]) { c.Delivery.InFlight = 64 })
		var notStored atomic.Int64 // callbacks of different groups may run concurrently
		for _, s := range scenes(groups, groups) {
			p.SendAsync(t.Context(), s, func(_ sqsfifo.Receipt, err error) {
				if sqsfifo.FateOf(err) == sqsfifo.NotStored {
					notStored.Add(1)
				}
			})
		}
		time.Sleep(6 * time.Minute)
		assert.EqualValues(t, groups, notStored.Load())
		assert.Empty(t, p.Paused())
		q.ClearFaults()
		require.NoError(t, p.SendBatch(t.Context(), scenes(groups, groups)).Err())
		assert.Len(t, q.Messages(), groups)
	})
}

// An event in doubt pauses its group, and Paused lists the event, until the doubt ends.
func TestPauseEndsWithTheDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, sqstest.Config{})
		var o *observed
		p := on(t, q, q, func(c *sqsfifo.Config[Scene]) { o = observe(c) })
		gauge := func() int64 {
			values, _ := o.metrics(t)
			return values["sqs_fifo.producer.group.paused {group}"]
		}
		doubt := inDoubt(t, p, q, sqstest.LoseAnswer())
		q.ClearFaults()
		assert.Equal(t, int64(1), gauge())
		pause := p.Paused()[scene.PathRow]
		assert.Equal(t, doubt.EventID, pause.EventID)
		assert.Equal(t, doubt.DedupeKey, pause.DedupeKey)
		assert.Equal(t, sqsfifo.InDoubt, pause.Fate)

		next := scene
		next.ID += "-next"
		time.Sleep(time.Until(pause.Until) - 1)
		_, err := p.Send(t.Context(), next)
		require.ErrorIs(t, err, sqsfifo.ErrGroupPaused)
		time.Sleep(time.Nanosecond)
		_, err = p.Send(t.Context(), next)
		require.NoError(t, err)
		assert.Empty(t, p.Paused())
		assert.Zero(t, gauge())
		require.NoError(t, p.Close(t.Context()))
	})
}

// An event certainly not stored does not pause its group, even if its context ended. An
// event in doubt pauses the group until ResumeAll.
func TestOnlyDoubtPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, sqstest.Config{})
		p := on(t, q, q)
		q.Inject(sqstest.Throttle(), 1000)
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := p.Send(short, scene)
		assert.Equal(t, sqsfifo.NotStored, sqsfifo.FateOf(err))
		assert.Empty(t, p.Paused())
		q.ClearFaults()

		p = on(t, q, q) // a new producer, because the first one sends slowly after the throttles
		inDoubt(t, p, q, sqstest.LoseAnswer())
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
		q := newQueue(t, sqstest.Config{})
		p := on(t, q, q, func(c *sqsfifo.Config[Scene]) { c.Delivery.Memory.MaxKeys = 10 })
		all := scenes(11, 11)
		require.NoError(t, p.SendBatch(t.Context(), all[:10]).Err())
		assert.Equal(t, 10, p.Stats().RememberedKeys)
		_, err := p.Send(t.Context(), all[10])
		require.ErrorIs(t, err, sqsfifo.ErrMemoryFull)
		assert.Equal(t, sqsfifo.NotStored, sqsfifo.FateOf(err))
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
		q := newQueue(t, sqstest.Config{})
		p := on(t, q, q)
		require.NoError(t, p.SendBatch(t.Context(), scenes(5000, 5000)).Err())
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
	if testing.Short() {
		t.Skip("sends 500 MB")
	}
	q := newQueue(t, sqstest.Config{})
	var most atomic.Uint64
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	p, err := sqsfifo.NewProducer(instantClient{q}, sqsfifo.Config[bulky]{
		QueueURL: q.URL(), Source: source, Delivery: sqsfifo.Delivery{BufferBytes: 1 << 20},
		Identify: func(b bulky) (sqsfifo.Identity, error) {
			if b.N%20_000 == 19_999 {
				most.Store(max(most.Load(), heap()))
			}
			return sqsfifo.Identity{DedupeKey: strconv.Itoa(b.N), Group: strconv.Itoa(b.N % 100), Time: scene.Acquired}, nil
		},
	})
	require.NoError(t, err)
	all := make([]bulky, 100_000)
	for i := range all {
		all[i].N = i
	}
	before := heap()
	require.NoError(t, p.SendBatch(t.Context(), all).Err())
	t.Logf("heap before %d MiB, at most %d MiB meanwhile", before>>20, most.Load()>>20)
	assert.Less(t, most.Load(), before+100<<20, "the messages are 500 MB")
}

// SendAsync and TrySend are called with a nil callback. Flush and Close report each failed
// event exactly once.
func TestFailuresWithoutACallbackAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, sqstest.Config{})
		p := on(t, q, q)
		q.Inject(senderFault, 1000)
		for _, s := range scenes(101, 7) {
			p.SendAsync(t.Context(), s, nil)
		}
		var unreported *sqsfifo.UnreportedError
		require.ErrorAs(t, p.Flush(t.Context()), &unreported)
		assert.Equal(t, 101, unreported.Failed)
		assert.Equal(t, sqsfifo.NotStored, sqsfifo.FateOf(unreported.First))
		assert.Equal(t, sqsfifo.UnknownFate, sqsfifo.FateOf(unreported))
		require.NoError(t, p.Flush(t.Context()), "reported once")
		require.NoError(t, p.TrySend(t.Context(), scene, nil))
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
		q := newQueue(t, sqstest.Config{})
		p := on(t, blackHole{q}, q, func(c *sqsfifo.Config[Scene]) { c.Delivery.InFlight = 2 })
		start := time.Now()
		var mu sync.Mutex
		fates := map[sqsfifo.Fate]int{}
		for _, s := range scenes(40, 40) {
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
		assert.Equal(t, 40, fates[sqsfifo.NotStored]+fates[sqsfifo.InDoubt])
		assert.Positive(t, fates[sqsfifo.InDoubt])
		assert.Positive(t, fates[sqsfifo.NotStored])
		assert.Equal(t, time.Second, time.Since(start), "the requests end, too")
		assert.Empty(t, sqsfifo.Leftovers(p))
	})
}

// A callback that never returns delays only the reports of its own group, and delays Close by
// one second.
func TestCloseWithABlockedCallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, sqstest.Config{})
		p := on(t, q, q)
		release := make(chan struct{})
		defer close(release)
		p.SendAsync(t.Context(), event("a", 0), func(sqsfifo.Receipt, error) { <-release })
		p.SendAsync(t.Context(), event("a", 1), fail(t))
		reported := 0
		for n := range 9 {
			p.SendAsync(t.Context(), event("b", n), func(sqsfifo.Receipt, error) { reported++ })
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
	_, err := sqsfifo.NewProducer(none, config())
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
				q := newQueue(t, sqstest.Config{})
				p := on(t, oddClient{q, send}, q)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				_, err := p.Send(ctx, scene)
				assert.Equal(t, sqsfifo.InDoubt, sqsfifo.FateOf(err), "%v", err)
				closing, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				require.NoError(t, p.Close(closing))
			})
		})
	}
}

// The producer asks an unusable queue for its attributes at most every ten seconds, not
// on each send. After the queue's repair, the producer works.
func TestWrongQueueIsAskedAtIntervals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, sqstest.Config{})
		c := &attributesClient{Client: q, out: map[string]string{"FifoQueue": "true"}}
		p := on(t, c, q)
		for n := range 100 {
			_, err := p.Send(t.Context(), Scene{ID: fmt.Sprint(n), PathRow: "1", Acquired: scene.Acquired})
			var wrong *sqsfifo.QueueError
			require.ErrorAs(t, err, &wrong)
			assert.Equal(t, sqsfifo.NotStored, sqsfifo.FateOf(err))
		}
		assert.Equal(t, 1, c.calls)
		c.out["ContentBasedDeduplication"] = "true"
		time.Sleep(10 * time.Second)
		_, err := p.Send(t.Context(), scene)
		require.NoError(t, err)
		assert.Equal(t, 2, c.calls)
	})
}
