// Package faketest tests sqscall with the faults of sqstest. The tests are separate
// from sqscall, because sqstest imports the module's root, and sqscall must build and
// test without the root.
package faketest

import (
	"context"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/digest"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/sqscall"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/wire"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

type want struct {
	fate attempt.Fate
	next attempt.Next
	load attempt.Load
}

var (
	stored    = want{attempt.FateStored, attempt.NextFinal, attempt.LoadPassed}
	doubt     = want{attempt.FateInDoubt, attempt.NextRetry, attempt.LoadTroubled}
	refused   = want{attempt.FateNotStored, attempt.NextFinal, attempt.LoadPassed}
	throttled = want{attempt.FateNotStored, attempt.NextRetry, attempt.LoadThrottled}
)

func TestFaults(t *testing.T) {
	first := func(position int, _ types.SendMessageBatchRequestEntry) bool { return position == 0 }
	for _, test := range []struct {
		name  string
		fault sqstest.Fault

		// Expected answers for a batch of two entries. The field `first` is also the expected
		// answer for a single message.
		first, second want
	}{
		{"none", sqstest.Fault{}, stored, stored},
		{"LoseAnswer", sqstest.LoseAnswer(), doubt, doubt},
		{"DropRequest", sqstest.DropRequest(), doubt, doubt},
		{"ResetConnection", sqstest.ResetConnection(), doubt, doubt},
		{"TruncateAnswer", sqstest.TruncateAnswer(), doubt, doubt},
		{"DelayAnswer", sqstest.DelayAnswer(time.Minute), doubt, doubt},
		{"Throttle", sqstest.Throttle(), throttled, throttled},
		{"ServerError", sqstest.ServerError(), doubt, doubt},
		{"FailEntries, sender", sqstest.FailEntries("InvalidMessageContents", smithy.FaultClient, first), refused, stored},
		{"FailEntries, service", sqstest.FailEntries("InternalError", smithy.FaultServer, first), doubt, stored},
		{"FailEntries, throttle", sqstest.FailEntries("RequestThrottled", smithy.FaultServer, first), throttled, stored},
	} {
		for _, over := range []string{"in process", "HTTP"} {
			t.Run(test.name+", "+over, func(t *testing.T) {
				q, err := sqstest.NewQueue(sqstest.Config{})
				require.NoError(t, err)
				var client sqscall.Client = q
				if over == "HTTP" {
					client = overHTTP(t, q)
				}
				c := sqscall.New(client, q.URL())
				limit := 10 * time.Second
				if test.name == "DelayAnswer" {
					limit = 50 * time.Millisecond
				}
				q.Inject(test.fault, 2)
				assert.Equal(t, []want{test.first}, send(t, c, limit, "a"))
				assert.Equal(t, []want{test.first, test.second}, send(t, c, limit, "b", "c"))
				q.ClearFaults()
				assert.Equal(t, []want{stored, stored}, send(t, c, 10*time.Second, "b", "c"))
				assert.Equal(t, []want{stored}, send(t, c, 10*time.Second, "a"))
			})
		}
	}
}

// One of the two entries of a batch has no group, so the fake queue refuses the whole
// batch, like SQS. The answers to both entries have attempt.NextApart in their field Next,
// because SQS may accept the entry with a group in a separate request.
func TestApart(t *testing.T) {
	q, err := sqstest.NewQueue(sqstest.Config{})
	require.NoError(t, err)
	for _, client := range []sqscall.Client{q, overHTTP(t, q)} {
		c := sqscall.New(client, q.URL())
		es := entries("a", "b")
		es[1].Group = nil
		answers := make([]attempt.Answer, 2)
		_, err := c.Send(t.Context(), es, answers)
		require.Error(t, err)
		for _, a := range answers {
			assert.Equal(t, attempt.FateNotStored, a.Fate, a.Err)
			assert.Equal(t, attempt.NextApart, a.Next)
			assert.Equal(t, "InvalidParameterValue", a.Code)
		}
		_, err = c.Send(t.Context(), es[1:], answers[1:])
		require.Error(t, err)
		assert.Equal(t, attempt.FateNotStored, answers[1].Fate)
		assert.Equal(t, attempt.NextFinal, answers[1].Next)
	}
}

func overHTTP(t *testing.T, q *sqstest.Queue) *sqs.Client {
	s := httptest.NewServer(sqstest.NewServer(q))
	t.Cleanup(s.Close)
	return sqs.New(sqs.Options{
		Region: "us-east-1", BaseEndpoint: &s.URL,

		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "SECRET"}, nil
		}),
	}, wire.Use)
}

func entries(bodies ...string) []sqscall.Entry {
	es := make([]sqscall.Entry, len(bodies))
	for i := range bodies {
		es[i] = sqscall.Entry{Body: &bodies[i], Group: aws.String("g"), BodyMD5: digest.Of(bodies[i])}
	}
	return es
}

func send(t *testing.T, c *sqscall.Caller, limit time.Duration, bodies ...string) []want {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	answers := make([]attempt.Answer, len(bodies))
	_, _ = c.Send(ctx, entries(bodies...), answers)
	var all []want
	for _, a := range answers {
		assert.Equal(t, a.Fate == attempt.FateStored, a.Err == nil)
		all = append(all, want{a.Fate, a.Next, a.Load})
	}
	return all
}
