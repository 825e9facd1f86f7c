package probe_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/cmd/sqsfifo/internal/probe"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

const source = "kfm.sqsfifo.probe"

func newQueue(t *testing.T, c sqstest.Config) *sqstest.Queue {
	t.Helper()
	c.DiscardDeleted = true
	q, err := sqstest.NewQueue(c)
	require.NoError(t, err)
	return q
}

func results(r *probe.Report) map[string]string {
	out := map[string]string{}
	for _, c := range r.Checks {
		out[c.Name] = string(c.Result)
	}
	return out
}

func answer(t *testing.T, r *probe.Report, name string) string {
	t.Helper()
	for _, c := range r.Checks {
		if c.Name == name {
			return c.Answer
		}
	}
	t.Fatalf("no check %s in %+v", name, r.Checks)
	return ""
}

func TestProbe(t *testing.T) {
	usual := map[string]string{
		"attributes": "note", "content-based": "as_expected", "duplicate": "as_expected", "body-hash": "as_expected",
		"other-body": "as_expected", "attribute-only": "as_expected", "scope": "note", "explicit-id": "as_expected",
	}
	t.Run("usual", func(t *testing.T) {
		q := newQueue(t, sqstest.Config{})
		r, err := probe.Run(t.Context(), probe.Config{Client: q, QueueURL: q.URL(), Source: source})
		require.NoError(t, err)
		assert.Equal(t, usual, results(r))
		assert.False(t, r.Differs())
		assert.Equal(t, 3, r.Sent)
		stored := q.Messages()
		assert.Len(t, stored, 3, "nothing is deleted")
		for _, m := range stored {
			assert.True(t, strings.HasPrefix(m.GroupID, "sqsfifo-probe-"+r.Run), m.GroupID)
			assert.Contains(t, m.Body, `"event_source":"kfm.sqsfifo.probe"`)
			assert.Contains(t, m.Body, r.Run)
		}
		again, err := probe.Run(t.Context(), probe.Config{Client: q, QueueURL: q.URL(), Source: source})
		require.NoError(t, err)
		assert.Equal(t, usual, results(again), "another run within five minutes is another run")
	})
	t.Run("no content-based deduplication", func(t *testing.T) {
		q := newQueue(t, sqstest.Config{DisableContentBasedDeduplication: true})
		r, err := probe.Run(t.Context(), probe.Config{Client: q, QueueURL: q.URL(), Source: source})
		require.NoError(t, err)
		assert.Equal(t, "note", results(r)["content-based"])
		assert.Equal(t, "not_tried", results(r)["body-hash"])
		assert.Equal(t, "as_expected", results(r)["duplicate"])
		assert.False(t, r.Differs())
	})
	t.Run("scope of the group", func(t *testing.T) {
		q := newQueue(t, sqstest.Config{DeduplicationScope: sqstest.ScopeMessageGroup})
		r, err := probe.Run(t.Context(), probe.Config{Client: q, QueueURL: q.URL(), Source: source})
		require.NoError(t, err)
		assert.Contains(t, answer(t, r, "scope"), "messageGroup: ")
		assert.Equal(t, 4, r.Sent)
	})
	t.Run("no FIFO queue", func(t *testing.T) {
		q := newQueue(t, sqstest.Config{Standard: true})
		_, err := probe.Run(t.Context(), probe.Config{Client: q, QueueURL: q.URL(), Source: source})
		var not *probe.NotFIFOError
		require.ErrorAs(t, err, &not)
		assert.Empty(t, q.Messages())
	})
}

func TestWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, sqstest.Config{})
		began := time.Now()
		r, err := probe.Run(t.Context(), probe.Config{Client: q, QueueURL: q.URL(), Source: source, Window: true})
		require.NoError(t, err)
		assert.Equal(t, "as_expected", results(r)["window-begin"])
		assert.Equal(t, "as_expected", results(r)["window-end"])
		assert.Equal(t, 6, r.Sent)
		assert.Equal(t, 305*time.Second, time.Since(began))

		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, stop)
		r, err = probe.Run(ctx, probe.Config{Client: q, QueueURL: q.URL(), Source: source, Window: true, Clean: true})
		require.ErrorIs(t, err, context.Canceled)
		assert.Equal(t, r.Sent, r.Deleted, "what was sent is deleted although the probe was interrupted")
	})
}

// odd is a fake queue that deviates from SQS. The function `send` changes each message
// before the queue gets it. If deny is true, the queue refuses to return its attributes.
type odd struct {
	*sqstest.Queue
	send func(*sqs.SendMessageInput)
	deny bool
	n    int
}

func (o *odd) SendMessage(ctx context.Context, in *sqs.SendMessageInput, _ ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	o.n++
	changed := *in
	o.send(&changed)
	return o.Queue.SendMessage(ctx, &changed)
}

func (o *odd) GetQueueAttributes(ctx context.Context, in *sqs.GetQueueAttributesInput, _ ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	if o.deny {
		return nil, &smithy.GenericAPIError{Code: "AccessDenied"}
	}
	return o.Queue.GetQueueAttributes(ctx, in)
}

func TestQueuesThatDiffer(t *testing.T) {
	for name, tc := range map[string]struct {
		send    func(o *odd, in *sqs.SendMessageInput)
		differs []string
	}{
		"deduplicates nothing": {func(o *odd, in *sqs.SendMessageInput) { in.MessageDeduplicationId = aws.String(fmt.Sprint(o.n)) }, []string{"duplicate", "body-hash", "attribute-only", "explicit-id", "scope"}},
		"hashes attributes": {func(_ *odd, in *sqs.SendMessageInput) {
			if len(in.MessageAttributes) > 0 {
				in.MessageDeduplicationId = aws.String("other")
			}
		}, []string{"attribute-only"}},
		"stores one body alone": {func(_ *odd, in *sqs.SendMessageInput) { in.MessageDeduplicationId = aws.String("always") }, []string{"other-body"}},
		"has another hash": {func(_ *odd, in *sqs.SendMessageInput) {
			if in.MessageDeduplicationId != nil && len(*in.MessageDeduplicationId) == 64 {
				in.MessageDeduplicationId = aws.String("x" + *in.MessageDeduplicationId)
			}
		}, []string{"body-hash"}},
		"ignores IDs": {func(_ *odd, in *sqs.SendMessageInput) { in.MessageDeduplicationId = nil }, []string{"explicit-id"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := &odd{Queue: newQueue(t, sqstest.Config{})}
			o.send = func(in *sqs.SendMessageInput) { tc.send(o, in) }
			r, err := probe.Run(t.Context(), probe.Config{Client: o, QueueURL: o.URL(), Source: source})
			require.NoError(t, err)
			var differs []string
			for _, c := range r.Checks {
				if c.Result == probe.Differs {
					differs = append(differs, c.Name)
					assert.Contains(t, c.Answer, "use a queue of SQS or another emulator")
				}
			}
			assert.ElementsMatch(t, tc.differs, differs)
			assert.True(t, r.Differs())
		})
	}
}

func TestAttributesThatMayNotBeRead(t *testing.T) {
	o := &odd{Queue: newQueue(t, sqstest.Config{DisableContentBasedDeduplication: true}), send: func(*sqs.SendMessageInput) {}, deny: true}
	r, err := probe.Run(t.Context(), probe.Config{Client: o, QueueURL: o.URL(), Source: source})
	require.NoError(t, err)
	assert.Equal(t, "not_tried", results(r)["attributes"])
	assert.Contains(t, answer(t, r, "content-based"), "off")
	r, err = probe.Run(t.Context(), probe.Config{Client: o, QueueURL: o.URL(), Source: source, Clean: true})
	var unclean *probe.UncleanError
	require.ErrorAs(t, err, &unclean)
	assert.Zero(t, r.Deleted)
}

// sendForeign sends messages of other producers and returns their IDs.
func sendForeign(t *testing.T, q *sqstest.Queue, groups, each int) map[string]bool {
	t.Helper()
	ids := map[string]bool{}
	for g := range groups {
		for n := range each {
			out, err := q.SendMessage(t.Context(), &sqs.SendMessageInput{
				QueueUrl: aws.String(q.URL()), MessageBody: aws.String(fmt.Sprintf("foreign %d %d", g, n)), MessageGroupId: aws.String(fmt.Sprintf("g%d", g)),
			})
			require.NoError(t, err)
			ids[*out.MessageId] = true
		}
	}
	return ids
}

// Clean never deletes other senders' messages. After the run all of them are visible.
func TestForeignMessages(t *testing.T) {
	for _, tc := range []struct{ groups, each int }{{0, 0}, {1, 1}, {3, 2}, {3, 30}, {40, 5}} {
		t.Run(fmt.Sprintf("%d groups of %d", tc.groups, tc.each), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(t, sqstest.Config{})
				others := sendForeign(t, q, tc.groups, tc.each)
				r, err := probe.Run(t.Context(), probe.Config{Client: q, QueueURL: q.URL(), Source: source, Clean: true})
				require.NoError(t, err)
				left := map[string]bool{}
				for _, m := range q.Messages() {
					left[m.MessageID] = true
				}
				for id := range others {
					assert.True(t, left[id], "a foreign message was deleted")
				}
				assert.Len(t, left, len(others)+r.Sent-r.Deleted)
				if tc.groups == 0 {
					assert.Equal(t, r.Sent, r.Deleted)
					assert.Zero(t, r.Returned)
				}
				// No foreign message is hidden: these receives return all of them.
				seen := 0
				for {
					out, err := q.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String(q.URL()), MaxNumberOfMessages: 10})
					require.NoError(t, err)
					if len(out.Messages) == 0 {
						break
					}
					for _, m := range out.Messages {
						if others[*m.MessageId] {
							seen++
						}
						_, err := q.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: aws.String(q.URL()), ReceiptHandle: m.ReceiptHandle})
						require.NoError(t, err)
					}
				}
				assert.Equal(t, len(others), seen)
			})
		})
	}
}

// lossy is a queue that loses its first answer to a receive.
type lossy struct {
	*sqstest.Queue
	receives int
}

func (l *lossy) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, _ ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	if l.receives++; l.receives == 1 {
		// Discard this answer, so its messages stay hidden. The receive below stands for
		// the SDK's retry.
		if _, err := l.Queue.ReceiveMessage(ctx, in); err != nil {
			return nil, err
		}
	}
	return l.Queue.ReceiveMessage(ctx, in)
}

// SQS's first answer is lost, and its messages are hidden until the visibility timeout
// ends. The probe waits for them and deletes all its messages.
func TestCleanWaitsForHiddenMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, sqstest.Config{})
		others := sendForeign(t, q, 2, 1)
		r, err := probe.Run(t.Context(), probe.Config{Client: &lossy{Queue: q}, QueueURL: q.URL(), Source: source, Clean: true})
		require.NoError(t, err)
		assert.Equal(t, r.Sent, r.Deleted)
		assert.Len(t, q.Messages(), len(others), "and nothing of others")
	})
}

// liar is a queue that returns a wrong message group: the probe's messages seem to be in
// another sender's group. Clean must not delete the messages, although it knows their IDs.
type liar struct{ *sqstest.Queue }

func (l liar) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, _ ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	out, err := l.Queue.ReceiveMessage(ctx, in)
	if err == nil {
		for i := range out.Messages {
			out.Messages[i].Attributes = map[string]string{string(types.MessageSystemAttributeNameMessageGroupId): "somebody's"}
		}
	}
	return out, err
}

func TestIDsAloneDoNotDelete(t *testing.T) {
	q := newQueue(t, sqstest.Config{})
	r, err := probe.Run(t.Context(), probe.Config{Client: liar{q}, QueueURL: q.URL(), Source: source, Clean: true})
	require.NoError(t, err)
	assert.Zero(t, r.Deleted)
	assert.Len(t, q.Messages(), r.Sent)
	assert.NotZero(t, r.Returned)
}

// Clean is refused for a queue with a dead-letter queue. Clean also receives other
// senders' messages, and SQS moves a message to the dead-letter queue after a number of
// receives.
func TestCleanRefusesDeadLetterQueues(t *testing.T) {
	dead := newQueue(t, sqstest.Config{Name: "dead.fifo"})
	q := newQueue(t, sqstest.Config{DeadLetterQueue: dead, MaxReceiveCount: 1})
	sendForeign(t, q, 1, 1)
	r, err := probe.Run(t.Context(), probe.Config{Client: q, QueueURL: q.URL(), Source: source, Clean: true})
	var unclean *probe.UncleanError
	require.ErrorAs(t, err, &unclean)
	assert.Zero(t, r.Returned)
	_, err = q.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String(q.URL())})
	require.NoError(t, err)
	assert.Empty(t, dead.Messages())
}

func TestFailuresAreNamed(t *testing.T) {
	q := newQueue(t, sqstest.Config{})
	o := &odd{Queue: q, send: func(in *sqs.SendMessageInput) { in.QueueUrl = aws.String(q.URL() + "x") }}
	r, err := probe.Run(t.Context(), probe.Config{Client: o, QueueURL: q.URL(), Source: source})
	require.ErrorContains(t, err, "sqs:SendMessage: ")
	var missing *types.QueueDoesNotExist
	assert.True(t, errors.As(err, &missing))
	assert.Zero(t, r.Sent)
}
