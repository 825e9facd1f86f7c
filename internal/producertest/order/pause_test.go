package order

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/producertest"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

var senderFault = sqstest.FailEntries("InvalidMessageContents", smithy.FaultClient, nil)

// A failed event pauses its group: later events are refused until a successful resend or
// Resume.
func TestPausedGroup(t *testing.T) {
	scheduling(t, sqsfifo.Delivery{OnGroupFailure: sqsfifo.GroupFailurePause}, func(t *testing.T, p *sqsfifo.Producer[producertest.Scene], c *slowClient) {
		c.Inject(senderFault, 1)
		var outcomes []error
		for n := range 3 {
			p.SendAsync(t.Context(), producertest.Event("a", n), func(_ sqsfifo.Receipt, err error) { outcomes = append(outcomes, err) })
		}
		require.NoError(t, p.Flush(t.Context()))
		var refused *sqsfifo.NotStoredError
		require.ErrorAs(t, outcomes[0], &refused)
		for _, err := range outcomes[1:] {
			require.ErrorIs(t, err, sqsfifo.ErrGroupPaused)
			var own *sqsfifo.NotStoredError
			require.ErrorAs(t, err, &own)
			assert.NotEqual(t, refused.EventID, own.EventID)
			assert.Empty(t, own.Code, "the failure of another event is in the text alone")
			require.ErrorContains(t, err, refused.EventID.String())
		}
		require.Len(t, p.Paused(), 1)
		assert.Equal(t, sqsfifo.FateNotStored, p.Paused()["a"].Fate)
		_, err := p.Send(t.Context(), producertest.Event("b", 0))
		require.NoError(t, err, "other groups go on")

		// The failed event goes first, and later submissions follow.
		results := p.SendBatch(t.Context(), []producertest.Scene{producertest.Event("a", 0), producertest.Event("a", 1)})
		require.NoError(t, results.Err())
		assert.Empty(t, p.Paused())

		c.Inject(senderFault, 1)
		_, err = p.Send(t.Context(), producertest.Event("a", 2))
		require.Error(t, err)
		_, err = p.Send(t.Context(), producertest.Event("a", 3))
		require.ErrorIs(t, err, sqsfifo.ErrGroupPaused)
		p.Resume("a")
		p.Resume("nobody")
		_, err = p.Send(t.Context(), producertest.Event("a", 3))
		require.NoError(t, err)
	})
	scheduling(t, sqsfifo.Delivery{OnGroupFailure: sqsfifo.GroupFailureSkip}, func(t *testing.T, p *sqsfifo.Producer[producertest.Scene], c *slowClient) {
		c.Inject(senderFault, 1)
		bad := producertest.Event("a", 2)
		bad.ID = ""
		results := p.SendBatch(t.Context(), []producertest.Scene{producertest.Event("a", 0), producertest.Event("a", 1), bad, producertest.Event("a", 3)})
		require.Error(t, results[0].Err)
		require.Error(t, results[2].Err)
		require.NoError(t, results[1].Err)
		require.NoError(t, results[3].Err)
		assert.Empty(t, p.Paused())
	})
}

// With the order Runs, a request may contain several events of a group. But the resend of an
// event that paused its group is the group's only event in its request, because it may fail
// again.
func TestPausedRun(t *testing.T) {
	scheduling(t, sqsfifo.Delivery{Order: sqsfifo.OrderRuns, OnGroupFailure: sqsfifo.GroupFailurePause}, func(t *testing.T, p *sqsfifo.Producer[producertest.Scene], c *slowClient) {
		run := []producertest.Scene{producertest.Event("a", 0), producertest.Event("a", 1), producertest.Event("a", 2)}
		c.Inject(senderFault, 2)
		_, err := p.Send(t.Context(), run[0])
		require.Error(t, err)

		results := p.SendBatch(t.Context(), run)
		for i, r := range results {
			require.Error(t, r.Err)
			assert.Equal(t, i > 0, errors.Is(r.Err, sqsfifo.ErrGroupPaused), "event %d: %v", i, r.Err)
		}
		assert.Empty(t, c.Messages())

		require.NoError(t, p.SendBatch(t.Context(), run).Err())
		var groups []string
		for _, r := range c.requests {
			groups = append(groups, r.groups)
		}
		assert.Equal(t, []string{"a", "a", "a", "a a"}, groups)
	})
}

// With the order Runs, a request may contain several events of a group. If SQS stores a
// later event but not an earlier one, the producer does not resend the earlier event, and
// its error wraps ErrOvertaken. After a passing fault the group goes on.
func TestRunsNameWhatIsOvertaken(t *testing.T) {
	second := func(position int, _ types.SendMessageBatchRequestEntry) bool { return position == 1 }
	last := func(position int, _ types.SendMessageBatchRequestEntry) bool { return position >= 2 }
	for _, tc := range []struct {
		name      string
		fault     sqstest.Fault
		policy    sqsfifo.GroupFailure
		overtaken bool
		paused    int
		goesOn    bool // events of the next request are stored
	}{
		{"the service's fault", sqstest.FailEntries("InternalError", smithy.FaultServer, second), sqsfifo.GroupFailurePauseInDoubt, true, 0, true},
		{"a throttle", sqstest.FailEntries("ThrottlingException", smithy.FaultServer, second), sqsfifo.GroupFailurePauseInDoubt, true, 0, true},
		{"the service's fault, with a pause", sqstest.FailEntries("InternalError", smithy.FaultServer, second), sqsfifo.GroupFailurePause, true, 1, false},
		{"the sender's fault", sqstest.FailEntries("InvalidMessageContents", smithy.FaultClient, second), sqsfifo.GroupFailurePauseInDoubt, true, 0, false},
		{"the sender's fault, skipped", sqstest.FailEntries("InvalidMessageContents", smithy.FaultClient, second), sqsfifo.GroupFailureSkip, true, 0, true},
		{"the end of the run", sqstest.FailEntries("InternalError", smithy.FaultServer, last), sqsfifo.GroupFailurePauseInDoubt, false, 0, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := sqsfifo.Delivery{Order: sqsfifo.OrderRuns, OnGroupFailure: tc.policy}
			scheduling(t, d, func(t *testing.T, p *sqsfifo.Producer[producertest.Scene], c *slowClient) {
				c.Inject(tc.fault, 1)
				var events []producertest.Scene
				for i := range 12 { // the last two do not fit into the first request
					events = append(events, producertest.Event("a", i))
				}
				stored := 0
				for i, r := range p.SendBatch(t.Context(), events) {
					assert.Equal(t, tc.overtaken && i == 1, errors.Is(r.Err, sqsfifo.ErrOvertaken), "event %d: %v", i, r.Err)
					assert.Equal(t, i >= 10 && !tc.goesOn, errors.Is(r.Err, sqsfifo.ErrGroupPaused), "event %d: %v", i, r.Err)
					if r.Err == nil {
						stored++
					}
				}
				assert.Len(t, c.Messages(), stored)
				producertest.AssertOrder(t, c.Queue)
				assert.Len(t, p.Paused(), tc.paused)
			})
		})
	}
}

// Of the entries 3 %, of the calls 2 % and of the answers 2 % fail. With the order Runs and
// the default settings, the stored events are in order, each once, and an event fails only
// if SQS refused it and stored a later event of its request.
func TestRunsUnderFaults(t *testing.T) {
	for _, order := range []sqsfifo.Order{sqsfifo.OrderStrict, sqsfifo.OrderRuns} {
		scheduling(t, sqsfifo.Delivery{Order: order}, func(t *testing.T, p *sqsfifo.Producer[producertest.Scene], c *slowClient) {
			rng := rand.New(rand.NewPCG(1, 2))
			c.InjectRandomly(sqstest.ServerError(), 0.02, 1)
			c.InjectRandomly(sqstest.LoseAnswer(), 0.02, 2)
			var mu sync.Mutex // guards rng and entries
			entries := 0
			c.InjectRandomly(sqstest.FailEntries("InternalError", smithy.FaultServer, func(int, types.SendMessageBatchRequestEntry) bool {
				mu.Lock()
				defer mu.Unlock()
				failed := rng.Float64() < 0.03
				if failed {
					entries++
				}
				return failed
			}), 1, 3)
			const n, groups = 2000, 10
			overtaken := 0
			var receipts []string
			for i, r := range p.SendBatch(t.Context(), producertest.Scenes(n, groups)) {
				if r.Err != nil {
					require.ErrorIs(t, r.Err, sqsfifo.ErrOvertaken, "event %d", i)
					overtaken++
				} else {
					receipts = append(receipts, r.Receipt.MessageID)
				}
			}
			t.Logf("%v: %d entries failed, %d events overtaken", order, entries, overtaken)
			assert.Equal(t, order == sqsfifo.OrderRuns, overtaken > 0)
			assert.LessOrEqual(t, overtaken, entries)
			// An overtaken event may be stored, if an answer about it was lost before.
			producertest.AssertOrder(t, c.Queue)
			for _, m := range c.Messages() {
				receipts = slices.DeleteFunc(receipts, func(id string) bool { return id == m.MessageID })
			}
			assert.Empty(t, receipts, "receipts without a message")
			assert.Empty(t, p.Paused())
		})
	}
}

// SQS stores the first and the third of three events, and the answer is lost. The retry
// then stores the second event after the third, so the second event's receipt has
// Overtaken set.
func TestRunsSeeWhatALostAnswerOvertook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		p := producertest.On(t, &halfClient{Queue: q}, q, func(c *sqsfifo.Config[producertest.Scene]) { c.Delivery.Order = sqsfifo.OrderRuns })
		results := p.SendBatch(t.Context(), []producertest.Scene{producertest.Event("a", 0), producertest.Event("a", 1), producertest.Event("a", 2)})
		require.NoError(t, results.Err())
		for i, want := range []bool{false, true, false} {
			assert.Equal(t, want, results[i].Receipt.Overtaken, "event %d", i)
		}
	})
}

// One SendBatch contains an event three times. SQS stores it once, and the receipts of
// the other two copies are duplicates (F-009).
func TestDuplicateInOneRequest(t *testing.T) {
	for _, order := range []sqsfifo.Order{sqsfifo.OrderStrict, sqsfifo.OrderRuns} {
		scheduling(t, sqsfifo.Delivery{Order: order}, func(t *testing.T, p *sqsfifo.Producer[producertest.Scene], c *slowClient) {
			results := p.SendBatch(t.Context(), []producertest.Scene{producertest.Event("a", 0), producertest.Event("a", 1), producertest.Event("a", 0), producertest.Event("a", 2), producertest.Event("a", 0)})
			require.NoError(t, results.Err())
			var duplicates []bool
			for _, r := range results {
				duplicates = append(duplicates, r.Receipt.Duplicate)
				assert.False(t, r.Receipt.Overtaken)
			}
			assert.Equal(t, []bool{false, false, true, false, true}, duplicates)
			assert.Len(t, c.Messages(), 3)

			// Event 3 fails at first. Event 1 does not overtake it: the first SendBatch
			// stored event 1, so this copy is a duplicate.
			c.Inject(sqstest.FailEntries("InternalError", smithy.FaultServer, func(position int, _ types.SendMessageBatchRequestEntry) bool { return position == 0 }), 1)
			results = p.SendBatch(t.Context(), []producertest.Scene{producertest.Event("a", 3), producertest.Event("a", 1)})
			require.NoError(t, results.Err())
			assert.False(t, results[0].Receipt.Overtaken)
			assert.True(t, results[1].Receipt.Duplicate)
			assert.Len(t, c.Messages(), 4)
		})
	}
}

// halfClient passes the first and the third entry of its first request to the queue, and
// loses the answer. Later requests are normal.
type halfClient struct {
	*sqstest.Queue
	calls int
}

func (c *halfClient) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, o ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	if c.calls++; c.calls == 1 {
		part := *in
		part.Entries = []types.SendMessageBatchRequestEntry{in.Entries[0], in.Entries[2]}
		_, err := c.Queue.SendMessageBatch(ctx, &part, o...)
		return nil, errors.Join(err, &smithy.DeserializationError{Err: errors.New("connection broken")})
	}
	return c.Queue.SendMessageBatch(ctx, in, o...)
}

// SendBatch refuses an event with the dedupe key of another event, and also the later
// events of the group. Other groups continue. With GroupFailureSkip, the later events continue
// too.
func TestConflictStopsTheRestOfItsGroup(t *testing.T) {
	for _, d := range []sqsfifo.Delivery{
		{},
		{OnGroupFailure: sqsfifo.GroupFailureSkip},
		{Order: sqsfifo.OrderRuns},
		{Order: sqsfifo.OrderRuns, OnGroupFailure: sqsfifo.GroupFailureSkip},
	} {
		scheduling(t, d, func(t *testing.T, p *sqsfifo.Producer[producertest.Scene], c *slowClient) {
			other := producertest.Event("a", 0)
			other.Cloud = 99
			results := p.SendBatch(t.Context(), []producertest.Scene{producertest.Event("a", 0), other, producertest.Event("a", 2), producertest.Event("b", 0)})
			require.NoError(t, results[0].Err)
			var conflict *sqsfifo.ConflictError
			require.ErrorAs(t, results[1].Err, &conflict)
			if d.OnGroupFailure == sqsfifo.GroupFailurePauseInDoubt {
				require.ErrorIs(t, results[2].Err, sqsfifo.ErrGroupPaused)
				assert.ErrorContains(t, results[2].Err, fmt.Sprintf("event %v in message group \"a\" is not stored; it is of the same call", conflict.EventID))
				assert.Len(t, c.Messages(), 2)
			} else {
				require.NoError(t, results[2].Err)
			}
			require.NoError(t, results[3].Err)
			assert.Equal(t, "a b", c.requests[0].groups, "what is behind it waits, other groups do not")
			_, err := p.Send(t.Context(), producertest.Event("a", 3))
			require.NoError(t, err, "the next call goes on")
		})
	}
}
