package model

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/clock"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/producertest"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// onMachine returns a new producer and its simulated machine, which the test can suspend.
func onMachine(t testing.TB, client sqsfifo.Client, q *sqstest.Queue) (*sqsfifo.Producer[producertest.Scene], *modelMachine) {
	t.Helper()
	machine := newModelMachine(0, q)
	c := producertest.Config()
	c.QueueURL = q.URL()
	p, err := sqsfifo.NewProducer(clientOnMachine{client, machine}, c)
	require.NoError(t, err)
	return p, machine
}

// clientOnMachine is the client of a producer on a simulated machine.
type clientOnMachine struct {
	sqsfifo.Client
	machine *modelMachine
}

// Clock returns the clock of a new process on the machine.
func (c clientOnMachine) Clock() *clock.Clock { return c.machine.newClock() }

// The machine is suspended for four minutes while the SDK fetches credentials. The request
// is not sent. Before the next request, the producer checks again whether the event may be
// sent.
func TestSuspensionBetweenAdmitAndTheNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		var machine *modelMachine
		fetches, arrived := 0, -1
		client := q.Client(func(o *sqs.Options) {
			o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
				// The first fetch of credentials is for GetQueueAttributes, and the second for
				// the request with the event.
				switch fetches++; fetches {
				case 2:
					machine.suspend(4 * time.Minute)
				case 3:
					arrived = len(q.Messages())
				}
				return aws.Credentials{AccessKeyID: "id", SecretAccessKey: "secret"}, nil
			})
		})
		p, m := onMachine(t, client, q)
		machine = m
		r, err := p.Send(t.Context(), producertest.Sample)
		require.NoError(t, err)
		require.Equal(t, 3, fetches)
		require.Zero(t, arrived, "the late request was not sent")
		require.Equal(t, 2, r.Attempts)
		require.Len(t, q.Messages(), 1)
		require.Empty(t, q.Suppressed())
	})
}

// secondClient takes a second for each request.
type secondClient struct{ sqsfifo.Client }

func (c secondClient) SendMessage(ctx context.Context, in *sqs.SendMessageInput, o ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	time.Sleep(time.Second)
	return c.Client.SendMessage(ctx, in, o...)
}

// A copy of an event waits in its group while the machine is suspended for an hour. SQS
// still had the event when the copy was submitted, so the copy ends as a duplicate. A
// copy submitted after the suspension is stored.
func TestSuspensionWhileADuplicateWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		p, machine := onMachine(t, secondClient{q}, q)
		var receipts []sqsfifo.Receipt
		between := producertest.Sample
		between.ID = "between"
		for _, s := range []producertest.Scene{producertest.Sample, between, producertest.Sample} { // the third event is the copy
			p.SendAsync(t.Context(), s, func(r sqsfifo.Receipt, err error) {
				require.NoError(t, err)
				receipts = append(receipts, r)
			})
		}
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		require.Len(t, receipts, 1)
		machine.suspend(time.Hour)
		require.NoError(t, p.Flush(t.Context()))
		require.Len(t, receipts, 3)
		require.True(t, receipts[2].Duplicate)
		require.Len(t, q.Messages(), 2)

		r, err := p.Send(t.Context(), producertest.Sample)
		require.NoError(t, err)
		require.False(t, r.Duplicate)
		require.Len(t, q.Messages(), 3)
		require.NoError(t, p.Close(t.Context()))
	})
}

// hangingGroupClient gives no answer to requests for one message group.
type hangingGroupClient struct {
	sqsfifo.Client
	group string
}

func (c hangingGroupClient) SendMessage(ctx context.Context, in *sqs.SendMessageInput, o ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	if *in.MessageGroupId == c.group {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return c.Client.SendMessage(ctx, in, o...)
}

// An event is stored. While an event of another group is still in flight, the machine is
// suspended for an hour. Right afterwards, a new send of the stored event has to wait: it
// would replace the memory's record of this event. The memory keeps all old records for two
// minutes, because an earlier submission has no outcome yet. If the send's context ends or
// the producer is closed meanwhile, the send ends as not stored. Otherwise the event is
// stored again at the end of the two minutes, as a new message.
func TestResendsRightAfterASuspension(t *testing.T) {
	for _, closes := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			q := producertest.NewQueue(t, sqstest.Config{})
			p, machine := onMachine(t, hangingGroupClient{q, "hanging"}, q)
			_, err := p.Send(t.Context(), producertest.Sample)
			require.NoError(t, err)
			waiting := producertest.Sample
			waiting.ID, waiting.PathRow = "waiting", "hanging"
			p.SendAsync(t.Context(), waiting, func(sqsfifo.Receipt, error) {})
			time.Sleep(time.Second)
			machine.suspend(time.Hour)

			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			_, err = p.Send(ctx, producertest.Sample)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, sqsfifo.FateNotStored, sqsfifo.FateOf(err))
			require.ErrorContains(t, err, "suspension")
			require.Len(t, q.Messages(), 1)

			begun := time.Now()
			outcome := make(chan error, 1)
			var receipt sqsfifo.Receipt
			p.SendAsync(t.Context(), producertest.Sample, func(r sqsfifo.Receipt, err error) {
				receipt = r
				outcome <- err
			})
			if closes {
				time.Sleep(time.Second)
				ended, end := context.WithCancel(t.Context())
				end()
				require.Error(t, p.Close(ended))
				err := <-outcome
				require.Equal(t, sqsfifo.FateNotStored, sqsfifo.FateOf(err))
				require.Len(t, q.Messages(), 1)
				return
			}
			require.NoError(t, <-outcome)
			require.False(t, receipt.Duplicate)
			require.Equal(t, 1, receipt.Attempts)
			require.Len(t, q.Messages(), 2)
			require.Less(t, time.Since(begun), 3*time.Minute)
			require.NoError(t, p.Close(t.Context()))
		})
	}
}

// An event's context ends after Admit, while the SDK fetches credentials. The request is
// not sent, and the event is not stored.
func TestContextEndsBetweenAdmitAndTheNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		ctx, cancel := context.WithCancel(t.Context())
		fetches := 0
		client := q.Client(func(o *sqs.Options) {
			o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
				// The first fetch of credentials is for GetQueueAttributes, and the second for
				// the request with the event.
				if fetches++; fetches == 2 {
					cancel()
				}
				return aws.Credentials{AccessKeyID: "id", SecretAccessKey: "secret"}, nil
			})
		})
		p := producertest.On(t, client, q)
		outcome := make(chan error, 1)
		p.SendAsync(ctx, producertest.Sample, func(_ sqsfifo.Receipt, err error) { outcome <- err })
		err := <-outcome
		require.ErrorIs(t, err, context.Canceled)
		synctest.Wait()
		require.Empty(t, q.Messages())
	})
}
