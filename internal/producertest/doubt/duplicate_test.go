package doubt

import (
	"context"
	"net/http"
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

func TestReplayIsADuplicateUntilTheIntervalEnds(t *testing.T) {
	producertest.WithBothClients(t, sqstest.Config{}, func(t *testing.T, q *sqstest.Queue, client sqsfifo.Client) {
		p := producertest.On(t, client, q)
		first, err := p.Send(t.Context(), producertest.Sample)
		require.NoError(t, err)
		assert.False(t, first.Duplicate)

		time.Sleep(4*time.Minute + 35*time.Second)
		again, err := p.Send(t.Context(), producertest.Sample)
		require.NoError(t, err)
		assert.True(t, again.Duplicate)
		assert.Equal(t, first.MessageID, again.MessageID)
		assert.Equal(t, first.SequenceNumber, again.SequenceNumber)
		assert.Len(t, q.Messages(), 1)

		// A request might now reach SQS too late and be stored as a second message.
		for _, wait := range []time.Duration{time.Nanosecond, 30*time.Second - 2*time.Nanosecond} {
			time.Sleep(wait)
			again, err = p.Send(t.Context(), producertest.Sample)
			require.NoError(t, err)
			assert.True(t, again.Duplicate)
			assert.Zero(t, again.Attempts)
			assert.Empty(t, again.MessageID, "it is known without a request")
			assert.Len(t, q.Suppressed(), 1)
		}

		time.Sleep(time.Nanosecond)
		later, err := p.Send(t.Context(), producertest.Sample)
		require.NoError(t, err)
		assert.False(t, later.Duplicate, "SQS has forgotten the first")
		assert.NotEqual(t, first.MessageID, later.MessageID)
		assert.Len(t, q.Messages(), 2)

		time.Sleep(3 * time.Minute)
		other := producertest.Sample
		other.Cloud = 99
		_, err = p.Send(t.Context(), other)
		var conflict *sqsfifo.ConflictError
		require.ErrorAs(t, err, &conflict, "the second acceptance has an interval of its own")
		again, err = p.Send(t.Context(), producertest.Sample)
		require.NoError(t, err)
		assert.True(t, again.Duplicate)
		assert.Equal(t, later.MessageID, again.MessageID)
	})
}

// unnumberedClient answers with meaningless sequence numbers, like some emulators.
type unnumberedClient struct{ *sqstest.Queue }

func (c unnumberedClient) SendMessage(ctx context.Context, in *sqs.SendMessageInput, o ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	out, err := c.Queue.SendMessage(ctx, in, o...)
	if err == nil {
		out.SequenceNumber = aws.String("7")
	}
	return out, err
}

func TestDuplicateIsKnownByItsMessageID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		p := producertest.On(t, unnumberedClient{q}, q)
		for i, s := range []producertest.Scene{producertest.Scenes(2, 1)[0], producertest.Scenes(2, 1)[1], producertest.Scenes(2, 1)[0]} {
			r, err := p.Send(t.Context(), s)
			require.NoError(t, err)
			assert.Equal(t, i == 2, r.Duplicate)
		}
	})
}

// SQS gives each new message a higher sequence number than all earlier messages of its
// group, and answers a copy with the number of the original. Process B sends a copy of
// process A's event. B recognises the copy only if its number is lower than the number
// of an earlier message of B in the group.
func TestDuplicateOfAnotherProcess(t *testing.T) {
	producertest.WithBothClients(t, sqstest.Config{}, func(t *testing.T, q *sqstest.Queue, client sqsfifo.Client) {
		all := producertest.Scenes(3, 1)
		theirs, err := producertest.On(t, client, q).Send(t.Context(), all[0])
		require.NoError(t, err)

		ours := producertest.On(t, client, q)
		unseen, err := ours.Send(t.Context(), all[0])
		require.NoError(t, err)
		assert.Equal(t, theirs.MessageID, unseen.MessageID)
		assert.False(t, unseen.Duplicate, "nothing that this process knows tells it from a new message")

		restarted := producertest.On(t, client, q)
		time.Sleep(time.Second)
		_, err = restarted.Send(t.Context(), all[1])
		require.NoError(t, err)
		seen, err := restarted.Send(t.Context(), all[0])
		require.NoError(t, err)
		assert.True(t, seen.Duplicate)
		assert.Equal(t, theirs.MessageID, seen.MessageID)

		fresh, err := restarted.Send(t.Context(), all[2])
		require.NoError(t, err)
		assert.False(t, fresh.Duplicate)
	})
}

func TestKeyReuseIsRefused(t *testing.T) {
	producertest.WithBothClients(t, sqstest.Config{}, func(t *testing.T, q *sqstest.Queue, client sqsfifo.Client) {
		p := producertest.On(t, client, q)
		_, err := p.Send(t.Context(), producertest.Sample)
		require.NoError(t, err)

		other := producertest.Sample
		other.Cloud = 99
		_, err = p.Send(t.Context(), other)
		var conflict *sqsfifo.ConflictError
		require.ErrorAs(t, err, &conflict)
		assert.Equal(t, sqsfifo.ReuseConflict, conflict.Reuse)
		assert.Contains(t, err.Error(), "another payload")
		assert.Len(t, q.Messages(), 1, "the second was never sent")
		assert.Empty(t, q.Suppressed())

		time.Sleep(5*time.Minute + 5*time.Second)
		_, err = p.Send(t.Context(), other)
		require.NoError(t, err, "the interval is over")
	})
}

// A second use of a key with the same payload and another time or group is a Drift. A
// second use with a different payload is a Conflict.
func TestDriftIsToldFromConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		var id sqsfifo.Identity
		p := producertest.On(t, q, q, func(c *sqsfifo.Config[producertest.Scene]) {
			c.Identify = func(producertest.Scene) (sqsfifo.Identity, error) { return id, nil }
		})
		first, err := producertest.Identify(producertest.Sample)
		require.NoError(t, err)
		id = first
		_, err = p.Send(t.Context(), producertest.Sample)
		require.NoError(t, err)

		for name, change := range map[string]func(){
			"message group": func() { id.Group = "other" },
			"event_time":    func() { id.Time = id.Time.Add(time.Millisecond) },
		} {
			id = first
			change()
			_, err = p.Send(t.Context(), producertest.Sample)
			var conflict *sqsfifo.ConflictError
			require.ErrorAs(t, err, &conflict, name)
			assert.Equal(t, sqsfifo.ReuseDrift, conflict.Reuse, name)
			assert.Contains(t, err.Error(), name)
			assert.Equal(t, "drift", conflict.ErrorType())
		}
		assert.Len(t, q.Messages(), 1)
	})
}

// One body with two sets of attributes is a collision: SQS would drop the second message.
func TestSameBodyWithOtherAttributesIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		route := map[string]string{"traceparent": "00-1", "route": "north"}
		p := producertest.On(t, q, q, func(c *sqsfifo.Config[producertest.Scene]) {
			c.Attributes = func(producertest.Scene) map[string]string { return route }
		})
		_, err := p.Send(t.Context(), producertest.Sample)
		require.NoError(t, err)

		route = map[string]string{"traceparent": "00-2", "route": "north"}
		r, err := p.Send(t.Context(), producertest.Sample)
		require.NoError(t, err, "trace context is no identity")
		assert.True(t, r.Duplicate)

		route = map[string]string{"route": "south"}
		_, err = p.Send(t.Context(), producertest.Sample)
		var v *sqsfifo.ViolationError
		require.ErrorAs(t, err, &v)
		assert.Equal(t, "SF001", v.Findings[0].Rule)
		assert.Contains(t, err.Error(), "route")
	})
}

func TestDistinctEventsNeverCollapse(t *testing.T) {
	producertest.WithBothClients(t, sqstest.Config{}, func(t *testing.T, q *sqstest.Queue, client sqsfifo.Client) {
		results := producertest.On(t, client, q).SendBatch(t.Context(), producertest.Scenes(120, 7))
		require.NoError(t, results.Err())
		assert.Len(t, q.Messages(), 120)
		assert.Empty(t, q.Suppressed())
	})
}

// With DetectForeignDuplicates, the producer recognises an event that another process
// sent a minute ago. An event that the producer itself stored without getting the answer
// is not a duplicate.
func TestForeignDuplicates(t *testing.T) {
	for _, trust := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			q := producertest.NewQueue(t, sqstest.Config{})
			_, err := producertest.On(t, q, q).Send(t.Context(), producertest.Sample)
			require.NoError(t, err)
			time.Sleep(time.Minute)

			p := producertest.On(t, q, q, func(c *sqsfifo.Config[producertest.Scene]) { c.Delivery.Memory.DetectForeignDuplicates = trust })
			r, err := p.Send(t.Context(), producertest.Sample)
			require.NoError(t, err)
			assert.Equal(t, trust, r.Duplicate)
			require.Len(t, q.Messages(), 1)

			q.Inject(sqstest.LoseAnswer(), 5)
			r, err = p.Send(t.Context(), producertest.Scenes(1, 1)[0])
			require.NoError(t, err)
			assert.Equal(t, 6, r.Attempts)
			assert.False(t, r.Duplicate, "it is this event's own first attempt that SQS knows")
		})
	}
}

// aheadClient is a connection to an SQS with a clock ahead of this machine's clock. The
// answers to SendMessage may be late.
type aheadClient struct {
	sqs.HTTPClient
	lead       time.Duration
	beforeDate time.Duration // delay before SQS sets the Date header of the answer
	afterDate  time.Duration // delay after SQS has set the Date header
}

func (c aheadClient) Do(r *http.Request) (*http.Response, error) {
	answer, err := c.HTTPClient.Do(r)
	sends := r.Header.Get("X-Amz-Target") == "AmazonSQS.SendMessage"
	if sends {
		time.Sleep(c.beforeDate)
	}
	if err == nil {
		answer.Header.Set("Date", time.Now().Add(c.lead).UTC().Format(http.TimeFormat))
	}
	if sends {
		time.Sleep(c.afterDate)
	}
	return answer, err
}

// This machine's clock is three minutes slow. The Date header of SQS's answers shows the
// difference, so the producer recognises a duplicate of another process's event.
func TestForeignDuplicatesWithAWrongClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lead = 3 * time.Minute
		q := producertest.NewQueue(t, sqstest.Config{})
		q.Advance(lead)
		client := q.Client(func(o *sqs.Options) { o.HTTPClient = aheadClient{HTTPClient: o.HTTPClient, lead: lead} })
		_, err := producertest.On(t, client, q).Send(t.Context(), producertest.Sample)
		require.NoError(t, err)
		time.Sleep(time.Minute)

		p := producertest.On(t, client, q, func(c *sqsfifo.Config[producertest.Scene]) { c.Delivery.Memory.DetectForeignDuplicates = true })
		r, err := p.Send(t.Context(), producertest.Sample)
		require.NoError(t, err)
		assert.True(t, r.Duplicate)
		r, err = p.Send(t.Context(), producertest.Scenes(1, 1)[0])
		require.NoError(t, err)
		assert.False(t, r.Duplicate)
	})
}

// This producer sends a copy of another process's event. SQS's answer arrives 12 seconds
// after the time in its Date header. The producer must not conclude that SQS's clock is 12
// seconds slow. By such a clock, the producer would compute an age that is 12 seconds too
// low, and might resend the event after SQS has forgotten it.
func TestAgeOfAForeignDuplicateWithALateAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		_, err := producertest.On(t, q, q).Send(t.Context(), producertest.Sample)
		require.NoError(t, err)
		time.Sleep(250 * time.Second)

		client := q.Client(func(o *sqs.Options) {
			o.HTTPClient = aheadClient{HTTPClient: o.HTTPClient, afterDate: 12 * time.Second}
		})
		p := producertest.On(t, client, q, func(c *sqsfifo.Config[producertest.Scene]) { c.Delivery.Memory.DetectForeignDuplicates = true })
		r, err := p.Send(t.Context(), producertest.Sample)
		require.NoError(t, err)
		assert.True(t, r.Duplicate)
		time.Sleep(18 * time.Second)
		r, err = p.Send(t.Context(), producertest.Sample)
		require.NoError(t, err)
		assert.True(t, r.Duplicate)
		assert.Zero(t, r.Attempts)
	})
}

// SQS stores a new event, and sets the Date header of the answer 12 seconds later. The
// producer must not conclude that SQS's clock is 12 seconds fast. After this wrong
// conclusion, the event would look older than the request, like a duplicate.
func TestNewEventWithAStalledAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		client := q.Client(func(o *sqs.Options) {
			o.HTTPClient = aheadClient{HTTPClient: o.HTTPClient, beforeDate: 12 * time.Second}
		})
		p := producertest.On(t, client, q, func(c *sqsfifo.Config[producertest.Scene]) { c.Delivery.Memory.DetectForeignDuplicates = true })
		r, err := p.Send(t.Context(), producertest.Sample)
		require.NoError(t, err)
		assert.False(t, r.Duplicate)
	})
}

// tardyClient answers its second request late, with an error.
type tardyClient struct {
	sqsfifo.Client
	sends int
}

func (c *tardyClient) SendMessage(ctx context.Context, in *sqs.SendMessageInput, o ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	c.sends++
	out, err := c.Client.SendMessage(ctx, in, o...)
	if c.sends == 2 {
		time.Sleep(40 * time.Second) // longer than the request's context allows
		return nil, context.DeadlineExceeded
	}
	return out, err
}

// SQS has stored an event. A copy is submitted within the deduplication interval, but
// answered after the interval. The copy ends as a duplicate, and the queue has one message.
func TestLateAnswerToAReplayOfAStoredEvent(t *testing.T) {
	for _, wait := range []time.Duration{time.Minute, 274 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			q := producertest.NewQueue(t, sqstest.Config{})
			p := producertest.On(t, &tardyClient{Client: q}, q)
			first, err := p.Send(t.Context(), producertest.Sample)
			require.NoError(t, err)
			time.Sleep(wait)
			again, err := p.Send(t.Context(), producertest.Sample)
			require.NoError(t, err, "the event is stored")
			assert.True(t, again.Duplicate)
			assert.Equal(t, first.EventID, again.EventID)
			assert.Len(t, q.Messages(), 1)
			time.Sleep(time.Minute)
			again, err = p.Send(t.Context(), producertest.Sample)
			require.NoError(t, err)
			assert.True(t, again.Duplicate)
			assert.Len(t, q.Messages(), 1)
		})
	}
}
