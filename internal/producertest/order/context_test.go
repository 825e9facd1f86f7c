package order

import (
	"context"
	"errors"
	"fmt"
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

// When the context of an event ends, the event gets its outcome immediately: "not stored"
// while it waits, or "in doubt" while it is in a request. The producer still remembers
// the answer to the request, and so recognises a resend as a duplicate.
func TestContextOfAnEvent(t *testing.T) {
	scheduling(t, sqsfifo.Delivery{}, func(t *testing.T, p *sqsfifo.Producer[producertest.Scene], c *slowClient) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		defer cancel()
		var flying, waiting error
		var at time.Duration
		p.SendAsync(ctx, producertest.Event("a", 0), func(_ sqsfifo.Receipt, err error) { flying, at = err, time.Since(c.start) })
		p.SendAsync(ctx, producertest.Event("a", 1), func(_ sqsfifo.Receipt, err error) { waiting = err })
		p.SendAsync(t.Context(), producertest.Event("a", 2), producertest.Stored(t))
		require.NoError(t, p.Flush(t.Context()))

		var doubt *sqsfifo.InDoubtError
		require.ErrorAs(t, flying, &doubt)
		assert.Equal(t, 5*time.Millisecond, at)
		assert.Equal(t, 1, doubt.Attempts)
		assert.Equal(t, c.start.Add(4*time.Minute+35*time.Second), doubt.ResendBefore)
		var refused *sqsfifo.NotStoredError
		require.ErrorAs(t, waiting, &refused)
		assert.Zero(t, refused.Attempts)
		assert.Len(t, c.Messages(), 2, "the group went on when the answer was there")
		assert.Empty(t, p.Paused(), "the answer says that it is stored")

		r, err := p.Send(t.Context(), producertest.Event("a", 0))
		require.NoError(t, err)
		assert.True(t, r.Duplicate, "the answer was remembered")
	})
}

// SendMessage of a lateClient first waits for a signal on the channel, and only then
// reads the message of the request.
type lateClient struct {
	*sqstest.Queue
	look chan struct{}
}

func (c lateClient) SendMessage(ctx context.Context, in *sqs.SendMessageInput, o ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	<-c.look
	return c.Queue.SendMessage(ctx, in, o...)
}

// After SendMessage has returned, the caller may change the message, even while a request
// with the message is in flight.
func TestMessageIsTheCallersAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		c := lateClient{q, make(chan struct{})}
		var records []sqsfifo.ProvenanceRecord
		p := producertest.On(t, c, q, func(c *sqsfifo.Config[producertest.Scene]) {
			c.Telemetry.Provenance = func(r sqsfifo.ProvenanceRecord) error { records = append(records, r); return nil }
			c.Attributes = func(producertest.Scene) map[string]string { return map[string]string{"sensor": "OLI"} }
			identify := c.Identify
			c.Identify = func(s producertest.Scene) (sqsfifo.Identity, error) {
				id, err := identify(s)
				id.Dataset = &sqsfifo.Dataset{ID: s.ID, Version: "1.0.0", SourceURI: "s3://usgs-landsat/" + s.ID}
				return id, err
			}
		})
		msg, err := p.Build(producertest.Event("a", 0))
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = p.SendMessage(ctx, msg)
		var doubt *sqsfifo.InDoubtError
		require.ErrorAs(t, err, &doubt)

		body := msg.Body
		*msg.Dataset = sqsfifo.Dataset{}
		clear(msg.Attributes)
		*msg = sqsfifo.Message{Body: "the next one", Group: "b"}
		close(c.look)
		require.NoError(t, p.Close(t.Context()))
		require.Len(t, q.Messages(), 1)
		m := q.Messages()[0]
		assert.Equal(t, body, m.Body)
		assert.Equal(t, "a", m.GroupID)
		assert.Len(t, m.Attributes, 1)
		assert.Equal(t, "a0", records[0].DatasetID)
	})
}

// The producer keeps no map or slice that Identify and Attributes return, so the caller may
// change them.
func TestMessageIsItsOwn(t *testing.T) {
	q := producertest.NewQueue(t, sqstest.Config{})
	dataset := &sqsfifo.Dataset{ID: "landsat", Version: "v1.0.0", SourceURI: "s3://usgs-landsat/?p=1", QueryParameters: []string{"p"}}
	attributes := map[string]string{"sensor": "OLI"}
	p := producertest.On(t, q, q, func(c *sqsfifo.Config[producertest.Scene]) {
		c.Attributes = func(producertest.Scene) map[string]string { return attributes }
		identify := c.Identify
		c.Identify = func(s producertest.Scene) (sqsfifo.Identity, error) {
			id, err := identify(s)
			id.Dataset = dataset
			return id, err
		}
	})
	msg, err := p.Build(producertest.Sample)
	require.NoError(t, err)
	attributes["sensor"], dataset.ID, dataset.QueryParameters[0] = "TIRS", "other", "q"
	assert.Equal(t, map[string]string{"sensor": "OLI"}, msg.Attributes)
	assert.Equal(t, &sqsfifo.Dataset{ID: "landsat", Version: "v1.0.0", SourceURI: "s3://usgs-landsat/?p=1", QueryParameters: []string{"p"}}, msg.Dataset)
}

// A closed producer still retries its last event. When the context of this event ends,
// the producer stops.
func TestCloseEndsWithTheLastContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		var records []sqsfifo.ProvenanceRecord
		p := producertest.On(t, q, q, func(c *sqsfifo.Config[producertest.Scene]) {
			c.Telemetry.Provenance = func(r sqsfifo.ProvenanceRecord) error { records = append(records, r); return nil }
		})
		_, err := p.Send(t.Context(), producertest.Sample)
		require.NoError(t, err)
		q.Inject(sqstest.Throttle(), 1000)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		var outcome error
		p.SendAsync(ctx, producertest.Sample, func(_ sqsfifo.Receipt, err error) { outcome = err })
		start := time.Now()
		require.NoError(t, p.Close(t.Context()))
		assert.Equal(t, 10*time.Second, time.Since(start))
		require.NoError(t, outcome, "it is stored, as the producer knows from the first")
		require.Len(t, records, 2)
		assert.True(t, records[1].ReplayTriggered)
		assert.Equal(t, sqsfifo.ProvenanceDuplicate, records[1].Outcome)
		assert.Empty(t, p.Paused())
		assert.Empty(t, producertest.Leftovers(p))
	})
}

// Close is called in the middle of a SendBatch, with a context that has ended. Events
// submitted before Close fail because of this context, and later events fail with
// ErrClosed.
func TestSendBatchMeetsClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		var p *sqsfifo.Producer[producertest.Scene]
		built := 0
		c := &slowClient{Queue: q, latency: time.Second, start: time.Now()}
		p = producertest.On(t, c, q, func(c *sqsfifo.Config[producertest.Scene]) {
			identify := c.Identify
			c.Identify = func(s producertest.Scene) (sqsfifo.Identity, error) {
				if built++; built == 151 { // two batches of 64 events have been submitted by then
					ended, cancel := context.WithCancel(t.Context())
					cancel()
					require.Error(t, p.Close(ended))
				}
				return identify(s)
			}
		})
		for i, r := range p.SendBatch(t.Context(), producertest.Scenes(250, 250)) {
			require.Error(t, r.Err)
			assert.Equal(t, i >= 128, errors.Is(r.Err, sqsfifo.ErrClosed), "event %d: %v", i, r.Err)
		}
		require.NoError(t, p.Close(t.Context()))
		assert.Empty(t, producertest.Leftovers(p))
	})
}

// The producer drops an event when its context ends, even while an earlier event of the
// group is in flight.
func TestWithdrawnEventsAreNotHeld(t *testing.T) {
	scheduling(t, sqsfifo.Delivery{}, func(t *testing.T, p *sqsfifo.Producer[producertest.Scene], c *slowClient) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		defer cancel()
		var (
			mu       sync.Mutex
			outcomes []string
		)
		send := func(ctx context.Context, n int) {
			p.SendAsync(ctx, producertest.Event("a", n), func(_ sqsfifo.Receipt, err error) {
				mu.Lock()
				defer mu.Unlock()
				outcomes = append(outcomes, fmt.Sprint(n, " ", err == nil))
			})
		}
		send(t.Context(), 0) // in flight for the next 20 ms
		send(ctx, 1)
		send(t.Context(), 2)
		send(ctx, 3)
		send(ctx, 4)
		assert.Equal(t, 5, p.Stats().Events)
		time.Sleep(6 * time.Millisecond)
		assert.Equal(t, 2, p.Stats().Events)
		send(t.Context(), 5)
		require.NoError(t, p.Close(t.Context()))
		assert.ElementsMatch(t, []string{"1 false", "3 false", "4 false"}, outcomes[:3])
		assert.Equal(t, []string{"0 true", "2 true", "5 true"}, outcomes[3:])
		assert.Len(t, c.Messages(), 3)
		assert.Empty(t, producertest.Leftovers(p))
	})
}

// If Identify panics and the caller recovers, the results of the call are lost, but the
// room of its events in the buffer is free again.
func TestPanicOfIdentifyCostsNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		p := producertest.On(t, q, q, func(c *sqsfifo.Config[producertest.Scene]) {
			identify := c.Identify
			c.Identify = func(s producertest.Scene) (sqsfifo.Identity, error) {
				if s.ID == "" {
					panic("no ID")
				}
				return identify(s)
			}
		})
		events := producertest.Scenes(250, 7)
		events[240].ID = ""
		assert.Panics(t, func() { p.SendBatch(t.Context(), events) })
		assert.Panics(t, func() { _, _ = p.Send(t.Context(), producertest.Scene{}) })
		require.NoError(t, p.Close(t.Context()))
		assert.Len(t, q.Messages(), 192, "what was submitted before goes on")
		assert.Empty(t, producertest.Leftovers(p))
	})
}

// The producer stops watching an event's context when the event has its outcome. Otherwise
// a context that lives as long as the program would collect one watch for each event.
func TestContextIsNotWatchedForLongerThanTheEvent(t *testing.T) {
	scheduling(t, sqsfifo.Delivery{}, func(t *testing.T, p *sqsfifo.Producer[producertest.Scene], _ *slowClient) {
		_, err := p.Preflight(t.Context())
		require.NoError(t, err)
		ctx := &watchedContext{Context: t.Context()}
		p.SendAsync(ctx, producertest.Event("a", 0), producertest.Stored(t))
		require.NoError(t, p.Flush(t.Context()))
		ctx.slow = time.Second
		p.SendAsync(ctx, producertest.Event("a", 1), producertest.Stored(t))
		require.NoError(t, p.Close(t.Context()))
		assert.Equal(t, 2, ctx.began)
		assert.Equal(t, 2, ctx.ended)
	})
}

// watchedContext counts the calls of its AfterFunc, and of the stop functions that
// AfterFunc returns. Its Done is slow.
type watchedContext struct {
	context.Context
	slow         time.Duration
	began, ended int
}

func (c *watchedContext) Done() <-chan struct{} {
	time.Sleep(c.slow)
	return c.Context.Done()
}

// Value hides the inner context: package context would otherwise find it through Value,
// watch it directly, and never call AfterFunc.
func (c *watchedContext) Value(any) any { return nil }

func (c *watchedContext) AfterFunc(func()) (stop func() bool) {
	c.began++
	return func() bool { c.ended++; return true }
}

// An event's outcome does not change when its context ends between decision and callback.
func TestContextThatEndsBeforeTheOutcomeIsTold(t *testing.T) {
	scheduling(t, sqsfifo.Delivery{OnGroupFailure: sqsfifo.GroupFailurePause}, func(t *testing.T, p *sqsfifo.Producer[producertest.Scene], c *slowClient) {
		c.Inject(sqstest.FailEntries("InvalidMessageContents", smithy.FaultClient, nil), 1)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var outcomes []error
		p.SendAsync(t.Context(), producertest.Event("a", 0), func(sqsfifo.Receipt, error) {})
		p.SendAsync(t.Context(), producertest.Event("a", 1), func(sqsfifo.Receipt, error) {
			cancel()
			time.Sleep(time.Millisecond)
		})
		p.SendAsync(ctx, producertest.Event("a", 2), func(_ sqsfifo.Receipt, err error) { outcomes = append(outcomes, err) })
		require.NoError(t, p.Close(t.Context()))
		require.Len(t, outcomes, 1)
		require.ErrorIs(t, outcomes[0], sqsfifo.ErrGroupPaused)
		assert.Empty(t, producertest.Leftovers(p))
	})
}
