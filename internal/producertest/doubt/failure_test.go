package doubt

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/producertest"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// SQS stores an event, but the answer is lost. SQS drops the retry as a duplicate, so the
// event is stored once.
func TestTimeoutAfterCommit(t *testing.T) {
	producertest.WithBothClients(t, sqstest.Config{}, func(t *testing.T, q *sqstest.Queue, client sqsfifo.Client) {
		q.Inject(sqstest.LoseAnswer(), 2)
		r, err := producertest.On(t, client, q).Send(t.Context(), producertest.Sample)
		require.NoError(t, err)
		assert.Equal(t, 3, r.Attempts)
		assert.False(t, r.Duplicate, "it is this event's own first attempt that SQS knows")
		require.Len(t, q.Messages(), 1)
		assert.Equal(t, q.Messages()[0].MessageID, r.MessageID)
		assert.Len(t, q.Suppressed(), 2)
	})
}

func TestRetriesUntilItIsStored(t *testing.T) {
	for name, fault := range map[string]sqstest.Fault{
		"throttle":      sqstest.Throttle(),
		"server error":  sqstest.ServerError(),
		"dropped":       sqstest.DropRequest(),
		"service fault": sqstest.FailEntries("ServiceUnavailable", smithy.FaultServer, nil),
	} {
		t.Run(name, func(t *testing.T) {
			producertest.WithBothClients(t, sqstest.Config{}, func(t *testing.T, q *sqstest.Queue, client sqsfifo.Client) {
				q.Inject(fault, 4)
				r, err := producertest.On(t, client, q).Send(t.Context(), producertest.Sample)
				require.NoError(t, err)
				assert.Equal(t, 5, r.Attempts)
				assert.Zero(t, q.PendingFaults())
				assert.Len(t, q.Messages(), 1)
			})
		})
	}
}

// Retries end after RetryFor, before the deduplication interval ends. If SQS refused each
// attempt, the event is not stored. If an attempt has no clear answer, the event is in
// doubt.
func TestRetriesEndInsideTheInterval(t *testing.T) {
	for name, tc := range map[string]struct {
		fault     sqstest.Fault
		ambiguous bool
		code      string
	}{
		"throttle":     {sqstest.Throttle(), false, "RequestThrottled"},
		"server error": {sqstest.ServerError(), true, ""},
		"dropped":      {sqstest.DropRequest(), true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			producertest.WithBothClients(t, sqstest.Config{}, func(t *testing.T, q *sqstest.Queue, client sqsfifo.Client) {
				q.Inject(tc.fault, 100_000)
				p := producertest.On(t, client, q)
				start := time.Now()
				_, err := p.Send(t.Context(), producertest.Sample)
				took := time.Since(start)
				assert.GreaterOrEqual(t, took, 4*time.Minute+30*time.Second)
				assert.LessOrEqual(t, took, 4*time.Minute+35*time.Second)

				var doubt *sqsfifo.InDoubtError
				var refused *sqsfifo.NotStoredError
				if tc.ambiguous {
					require.ErrorAs(t, err, &doubt)
					assert.Greater(t, doubt.Attempts, 10)
					assert.Equal(t, start.Add(4*time.Minute+35*time.Second), doubt.ResendBefore)
					require.NotErrorAs(t, err, &refused)
				} else {
					require.ErrorAs(t, err, &refused)
					assert.Equal(t, tc.code, refused.Code)
					require.NotErrorAs(t, err, &doubt)
				}
			})
		})
	}
}

// SQS has stored an event, and then throttles for an hour while 1,000 events of one group
// are queued. Every event has its outcome RetryFor after its submission, and not one after
// another. If the outage ends earlier, all events are stored in order.
func TestAnOutageWithManyEventsOfAGroup(t *testing.T) {
	for _, outage := range []time.Duration{time.Hour, 4 * time.Minute} {
		t.Run(outage.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := producertest.NewQueue(t, sqstest.Config{})
				p := producertest.On(t, q, q)
				_, err := p.Send(t.Context(), producertest.Event("000", 0))
				require.NoError(t, err)
				q.Inject(sqstest.Throttle(), 1_000_000)
				stop := time.AfterFunc(outage, q.ClearFaults)
				defer stop.Stop()
				begin := time.Now()
				var last time.Duration
				untried := 0
				for _, s := range producertest.Scenes(1000, 1) {
					p.SendAsync(t.Context(), s, func(r sqsfifo.Receipt, err error) {
						last = time.Since(begin)
						if outage < 270*time.Second {
							assert.NoError(t, err)
							return
						}
						var refused *sqsfifo.NotStoredError
						if assert.ErrorAs(t, err, &refused) && refused.Attempts == 0 {
							untried++
							assert.Equal(t, "overdue", refused.ErrorType())
						}
					})
				}
				require.NoError(t, p.Close(t.Context()))
				if outage == time.Hour {
					assert.Equal(t, 999, untried)
					assert.Equal(t, 270*time.Second, last.Truncate(time.Second))
					return
				}
				assert.Len(t, q.Messages(), 1001)
				producertest.AssertOrder(t, q)
			})
		})
	}
}

func TestFinalRefusals(t *testing.T) {
	producertest.WithBothClients(t, sqstest.Config{}, func(t *testing.T, q *sqstest.Queue, client sqsfifo.Client) {
		c := producertest.Config()
		c.QueueURL = q.URL()[:len(q.URL())-len("events.fifo")] + "nowhere.fifo"
		p, err := sqsfifo.NewProducer(client, c)
		require.NoError(t, err)
		began := time.Now()
		_, err = p.Send(t.Context(), producertest.Sample)
		var refused *sqsfifo.NotStoredError
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, 15*time.Second, time.Since(began), "a queue may be created late")
		assert.Equal(t, "AWS.SimpleQueueService.NonExistentQueue", refused.Code)
		var missing *types.QueueDoesNotExist
		require.ErrorAs(t, err, &missing, "the SDK's error is in the chain")

		q.Inject(sqstest.FailEntries("InvalidMessageContents", smithy.FaultClient, nil), 1)
		p = producertest.On(t, client, q)
		_, err = p.Send(t.Context(), producertest.Sample)
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, 1, refused.Attempts)

		other := producertest.Sample
		other.Cloud = 50
		_, err = p.Send(t.Context(), other)
		require.NoError(t, err, "a refused event claims nothing, not even its key")
		_, err = p.Send(t.Context(), producertest.Sample)
		var conflict *sqsfifo.ConflictError
		require.ErrorAs(t, err, &conflict)

		q.Inject(sqstest.FailEntries("InvalidMessageContents", smithy.FaultClient, nil), 1)
		again, err := p.Send(t.Context(), other)
		require.NoError(t, err, "it is stored, whatever SQS says of another attempt")
		assert.True(t, again.Duplicate)
		assert.Empty(t, again.MessageID)
		_, err = p.Send(t.Context(), producertest.Sample)
		require.ErrorAs(t, err, &conflict, "a replay that is refused does not free the key of its original")
	})
}

func TestContextEndsTheRetries(t *testing.T) {
	producertest.WithBothClients(t, sqstest.Config{}, func(t *testing.T, q *sqstest.Queue, client sqsfifo.Client) {
		p := producertest.On(t, client, q)
		q.Inject(sqstest.LoseAnswer(), 1)
		q.Inject(sqstest.Throttle(), 1000)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		start := time.Now()
		_, err := p.Send(ctx, producertest.Sample)
		var doubt *sqsfifo.InDoubtError
		require.ErrorAs(t, err, &doubt, "the first attempt may be stored, and is")
		assert.Equal(t, 3*time.Second, time.Since(start))
		assert.Equal(t, start.Add(4*time.Minute+35*time.Second), doubt.ResendBefore)
		require.ErrorIs(t, err, context.DeadlineExceeded)

		// Use up the remaining faults. Then follow the advice in the error: resend
		// before ResendBefore.
		for q.PendingFaults() > 0 {
			_, _ = q.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: aws.String(q.URL()), MessageBody: aws.String("x")})
		}
		time.Sleep(time.Until(doubt.ResendBefore) - 1)
		_, err = p.Send(t.Context(), producertest.Sample)
		require.NoError(t, err)
		assert.Len(t, q.Messages(), 1)

		ended, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = p.Send(ended, producertest.Scenes(1, 1)[0])
		var refused *sqsfifo.NotStoredError
		require.ErrorAs(t, err, &refused)
		assert.Zero(t, refused.Attempts)
		require.ErrorIs(t, err, context.Canceled)
	})
}

// While an event is in doubt, another event with its dedupe key is a conflict. After SQS
// has certainly forgotten the first event, the other event may use the key.
func TestKeyOfAnEventInDoubtStaysTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		p := producertest.On(t, q, q)
		q.Inject(sqstest.LoseAnswer(), 1)
		q.Inject(sqstest.Throttle(), 1000)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := p.Send(ctx, producertest.Sample)
		var doubt *sqsfifo.InDoubtError
		require.ErrorAs(t, err, &doubt)

		other := producertest.Sample
		other.Cloud = 50
		_, err = p.Send(t.Context(), other)
		var conflict *sqsfifo.ConflictError
		require.ErrorAs(t, err, &conflict)

		for q.PendingFaults() > 0 {
			_, _ = q.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: aws.String(q.URL()), MessageBody: aws.String("x")})
		}
		// SQS forgets a message after five minutes. Add 20 seconds for the longest way to
		// SQS and 5 seconds of tolerance.
		time.Sleep(5*time.Minute + 25*time.Second)
		_, err = p.Send(t.Context(), other)
		require.NoError(t, err, "whatever became of the first, SQS has forgotten it")
	})
}

func TestBatchEntriesFailOnTheirOwn(t *testing.T) {
	producertest.WithBothClients(t, sqstest.Config{}, func(t *testing.T, q *sqstest.Queue, client sqsfifo.Client) {
		p := producertest.On(t, client, q)
		second := func(_ int, e types.SendMessageBatchRequestEntry) bool { return *e.MessageGroupId == "001" }
		q.Inject(sqstest.FailEntries("InternalError", smithy.FaultServer, second), 1)
		results := p.SendBatch(t.Context(), producertest.Scenes(8, 4))
		require.NoError(t, results.Err())
		assert.Equal(t, 2, results[1].Receipt.Attempts, "only the failed entry is sent again")
		assert.Equal(t, 1, results[0].Receipt.Attempts)
		producertest.AssertOrder(t, q)
		assert.Empty(t, q.Suppressed())

		synctest.Wait() // wait until the producer can send the next event of each group
		q.Inject(sqstest.FailEntries("InvalidMessageContents", smithy.FaultClient, second), 1)
		later := producertest.Scenes(16, 4)[8:]
		results = p.SendBatch(t.Context(), later)
		var refused *sqsfifo.NotStoredError
		require.ErrorAs(t, results[1].Err, &refused)
		assert.Equal(t, "InvalidMessageContents", refused.Code)
		require.ErrorIs(t, results[5].Err, sqsfifo.ErrGroupPaused, "it would overtake the one that failed")
		for _, i := range []int{0, 2, 3, 4, 6, 7} {
			require.NoError(t, results[i].Err, "event %d", i)
		}
		producertest.AssertOrder(t, q)
	})
}

// brokenClient fails each send with one error.
type brokenClient struct {
	*sqstest.Queue
	err error
}

func (c brokenClient) SendMessage(context.Context, *sqs.SendMessageInput, ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	return nil, c.err
}

func (c brokenClient) SendMessageBatch(_ context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	return &sqs.SendMessageBatchOutput{
		Successful: []types.SendMessageBatchResultEntry{{Id: aws.String("not ours")}, {}},
		Failed:     []types.BatchResultErrorEntry{{Id: aws.String("9")}},
	}, nil
}

func TestWhatAnErrorMeansForTheEvent(t *testing.T) {
	for _, tc := range []struct {
		name           string
		err            error
		ambiguous, one bool
	}{
		{"unknown", errors.New("who knows"), true, false},
		{"no connection, says a client of which nothing is known", &net.OpError{Op: "dial", Err: errors.New("connection refused")}, true, false},
		{"connection broke", &net.OpError{Op: "read", Err: io.EOF}, true, false},
		{"truncated answer", &smithy.DeserializationError{Err: io.ErrUnexpectedEOF}, true, false},
		{"not serialisable", &smithy.SerializationError{Err: errors.New("x")}, false, true},
		{"invalid input", smithy.InvalidParamsError{}, false, true},
		{"access denied", &smithy.GenericAPIError{Code: "AccessDenied", Fault: smithy.FaultClient}, false, false},
		{"KMS throttles", &types.KmsThrottled{}, false, false},
		{"over limit", &types.OverLimit{}, false, false},
		{"service fault", &smithy.GenericAPIError{Code: "InternalError", Fault: smithy.FaultServer}, true, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := producertest.NewQueue(t, sqstest.Config{})
				p := producertest.On(t, brokenClient{q, &smithy.OperationError{Err: tc.err}}, q)
				_, err := p.Send(t.Context(), producertest.Sample)
				var doubt *sqsfifo.InDoubtError
				var refused *sqsfifo.NotStoredError
				attempts := 0
				if tc.ambiguous {
					require.ErrorAs(t, err, &doubt)
					attempts = doubt.Attempts
				} else {
					require.ErrorAs(t, err, &refused)
					attempts = refused.Attempts
				}
				assert.Equal(t, tc.one, attempts == 1, "attempts: %d", attempts)
			})
		})
	}
}

// An entry missing in the answer to a batch is in doubt. An unknown entry does not cause
// a panic.
func TestAnswerToABatchThatIsNotWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		// SQS refuses the next attempt. The refusal proves nothing about the first attempt,
		// so the event stays in doubt.
		p := producertest.On(t, brokenClient{q, &smithy.GenericAPIError{Code: "AccessDenied", Fault: smithy.FaultClient}}, q)
		for _, r := range p.SendBatch(t.Context(), producertest.Scenes(2, 2)) {
			var doubt *sqsfifo.InDoubtError
			require.ErrorAs(t, r.Err, &doubt)
			assert.Positive(t, doubt.Attempts)
		}
	})
}

// hangingClient never answers its first request.
type hangingClient struct {
	*sqstest.Queue
	calls int
}

func (c *hangingClient) SendMessage(ctx context.Context, in *sqs.SendMessageInput, o ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	if c.calls++; c.calls == 1 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return c.Queue.SendMessage(ctx, in, o...)
}

func TestRequestWithoutAnAnswerIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		start := time.Now()
		r, err := producertest.On(t, &hangingClient{Queue: q}, q).Send(t.Context(), producertest.Sample)
		require.NoError(t, err)
		assert.Equal(t, 2, r.Attempts)
		assert.Less(t, time.Since(start), time.Minute)
	})
}
