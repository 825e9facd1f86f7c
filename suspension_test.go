package sqsfifo_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// If the machine sleeps while the credentials of a request are refreshed, the request is
// not sent, because the time of the attempt is over. The event is admitted again before the
// next request.
func TestSuspensionBetweenAdmitAndTheNetwork(t *testing.T) {
	for name, change := range map[string]func(*sqsfifo.Config[Scene]){
		"without a store": func(*sqsfifo.Config[Scene]) {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(t, sqstest.Config{})
				var p *sqsfifo.Producer[Scene]
				refreshes, arrived := 0, -1
				client := q.Client(func(o *sqs.Options) {
					o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
						switch refreshes++; refreshes {
						case 2: // the first was for the attributes of the queue
							sqsfifo.Suspend(p, 4*time.Minute)
							time.Sleep(time.Millisecond)
						case 3:
							arrived = len(q.Messages())
						}
						return aws.Credentials{AccessKeyID: "id", SecretAccessKey: "secret"}, nil
					})
				})
				p = on(t, client, q, change)
				r, err := p.Send(t.Context(), scene)
				require.NoError(t, err)
				require.Equal(t, 3, refreshes)
				require.Zero(t, arrived, "the late request was not sent")
				require.Equal(t, 2, r.Attempts)
				require.Len(t, q.Messages(), 1)
				require.Empty(t, q.Suppressed())
			})
		})
	}
}

// If an event's context ends between Admit and the network, the request is not sent, and
// the event is not stored.
func TestContextEndsBetweenAdmitAndTheNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, sqstest.Config{})
		ctx, cancel := context.WithCancel(t.Context())
		refreshes := 0
		client := q.Client(func(o *sqs.Options) {
			o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
				if refreshes++; refreshes == 2 { // the first was for the attributes of the queue
					cancel()
				}
				return aws.Credentials{AccessKeyID: "id", SecretAccessKey: "secret"}, nil
			})
		})
		p := on(t, client, q)
		outcome := make(chan error, 1)
		p.SendAsync(ctx, scene, func(_ sqsfifo.Receipt, err error) { outcome <- err })
		err := <-outcome
		require.ErrorIs(t, err, context.Canceled)
		synctest.Wait()
		require.Empty(t, q.Messages())
	})
}
