package sqsfifo_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// credentials fail so many times and are there then.
type credentials struct {
	err   error
	fails atomic.Int64
}

func (c *credentials) Retrieve(context.Context) (aws.Credentials, error) {
	if c.fails.Add(-1) >= 0 {
		return aws.Credentials{}, c.err
	}
	return aws.Credentials{AccessKeyID: "id", SecretAccessKey: "secret"}, nil
}

// What fails before a request leaves the machine leaves no doubt: the event is
// not stored.
func TestWhatNeverLeftIsNotInDoubt(t *testing.T) {
	for _, tc := range []struct {
		name     string
		err      error
		attempts int // 0: it is tried again, with success
	}{
		{"no credentials", errors.New("no EC2 IMDS role found"), 1},
		{"the credentials' service is not there", context.DeadlineExceeded, 0},
		{"the credentials' service fails", &smithy.GenericAPIError{Code: "InternalFailure", Fault: smithy.FaultServer}, 0},
		{"the credentials' service refuses", &smithy.GenericAPIError{Code: "AccessDenied", Fault: smithy.FaultClient}, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(t, sqstest.Config{})
				c := &credentials{err: tc.err}
				p := on(t, q.Client(func(o *sqs.Options) { o.Credentials = c }), q)
				_, err := p.Send(t.Context(), event("b", 0)) // the queue is known now
				require.NoError(t, err)

				c.fails.Store(1)
				r, err := p.Send(t.Context(), scene)
				if tc.attempts == 0 {
					require.NoError(t, err)
					assert.Equal(t, 2, r.Attempts)
					c.fails.Store(1000)
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					_, err = p.Send(ctx, event("c", 0))
				}
				var refused *sqsfifo.RefusedError
				require.ErrorAs(t, err, &refused)
				if tc.attempts == 0 {
					assert.Greater(t, refused.Attempts, 1)
					return
				}
				require.ErrorIs(t, err, tc.err)
				assert.Equal(t, tc.attempts, refused.Attempts)
				assert.Len(t, q.Messages(), 1)
			})
		})
	}
}

// An attempt in doubt stays in doubt, whatever the next one comes to.
func TestDoubtOutlivesWhatNeverLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, sqstest.Config{})
		c := &credentials{err: errors.New("the role is gone")}
		p := on(t, q.Client(func(o *sqs.Options) { o.Credentials = c }), q)
		_, err := p.Send(t.Context(), event("b", 0))
		require.NoError(t, err)
		q.Inject(sqstest.LoseAnswer(), 1)
		outcome := make(chan error, 1)
		p.SendAsync(t.Context(), scene, func(_ sqsfifo.Receipt, err error) { outcome <- err })
		time.Sleep(time.Millisecond)
		c.fails.Store(1)
		var doubt *sqsfifo.SendError
		require.ErrorAs(t, <-outcome, &doubt)
		assert.Equal(t, 2, doubt.Attempts)
	})
}

// A certificate is checked before the request is sent, and the next attempt will
// meet the same.
func TestWrongCertificate(t *testing.T) {
	q := newQueue(t, sqstest.Config{})
	server := httptest.NewUnstartedServer(nil)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	c := sqsfifo.NewClient(aws.Config{Region: "us-east-1", Credentials: &credentials{}}, 1, func(o *sqs.Options) { o.BaseEndpoint = &server.URL })
	p := on(t, &attributesClient{Client: c, err: errors.New("not asked")}, q)
	_, err := p.Send(t.Context(), scene)
	var refused *sqsfifo.RefusedError
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, 1, refused.Attempts)
}

// What the context ends says what went wrong before.
func TestContextsErrorComesWithTheLastAttempts(t *testing.T) {
	bothDoors(t, sqstest.Config{}, func(t *testing.T, q *sqstest.Queue, client sqsfifo.Client) {
		p := on(t, client, q)
		q.Inject(sqstest.Throttle(), 1000)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := p.Send(ctx, scene)
		var refused *sqsfifo.RefusedError
		require.ErrorAs(t, err, &refused)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, "RequestThrottled", refused.Code)
		assert.ErrorContains(t, err, "context deadline exceeded; the last attempt: ")
		assert.ErrorContains(t, err, "RequestThrottled")
	})
}
