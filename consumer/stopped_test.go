//go:build unix

package consumer_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/consumer"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// A process with a consumer is stopped (SIGSTOP) for longer than the visibility timeout, and
// continues. No handler starts after the end of the visibility timeout of its message.
func TestStoppedProcess(t *testing.T) {
	if os.Getenv("CONSUMER_QUEUE") != "" {
		consumeUntilTerminated(t)
		return
	}
	if testing.Short() {
		t.Skip("takes a minute")
	}
	t.Parallel()
	const rounds, atOnce = 50, 10
	places := make(chan struct{}, atOnce)
	var wait sync.WaitGroup
	var mu sync.Mutex
	starts, late := 0, 0
	for range rounds {
		wait.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			s, l := stopAndContinue(t)
			mu.Lock()
			defer mu.Unlock()
			starts, late = starts+s, late+l
		})
	}
	wait.Wait()
	t.Logf("%d rounds, %d starts of handlers, %d late", rounds, starts, late)
	assert.Zero(t, late)
	assert.Greater(t, starts, 20*rounds)
}

// stopAndContinue stops and continues one process. It returns the number of handler starts in
// the process, and how many of them came after the end of a visibility timeout.
func stopAndContinue(t *testing.T) (starts, late int) {
	q, err := sqstest.NewQueue(sqstest.Config{})
	require.NoError(t, err)
	server := httptest.NewServer(sqstest.NewServer(q))
	defer server.Close()
	for n := range 10 {
		for g := range 40 {
			_, err := q.SendMessage(t.Context(), &sqs.SendMessageInput{
				QueueUrl: aws.String(q.URL()), MessageBody: aws.String(fmt.Sprintf(`{"Group":"g%d","N":%d}`, g, n)), MessageGroupId: aws.String(fmt.Sprint("g", g)),
			})
			require.NoError(t, err)
		}
	}
	child := exec.Command(os.Args[0], "-test.run=^TestStoppedProcess$", "-test.v") // #nosec G204 -- this test
	child.Env = append(os.Environ(), "CONSUMER_QUEUE="+q.URL(), "CONSUMER_ENDPOINT="+server.URL)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	time.AfterFunc(time.Duration(1000+rand.IntN(2000))*time.Millisecond, func() {
		_ = child.Process.Signal(syscall.SIGSTOP)
		time.Sleep(8 * time.Second)
		_ = child.Process.Signal(syscall.SIGCONT)
		time.Sleep(2 * time.Second)
		_ = child.Process.Signal(syscall.SIGTERM)
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		switch {
		case strings.Contains(lines.Text(), "handler starts"):
			starts++
		case strings.Contains(lines.Text(), "handler is late"):
			late++
		}
	}
	assert.NoError(t, child.Wait())
	return starts, late
}

// leases has the earliest ends of the visibility timeouts of a process, by message ID.
type leases struct {
	consumer.Client
	mu      sync.Mutex
	ends    map[string]time.Time
	handles map[string]string // message IDs by receipt handle
}

func (l *leases) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, o ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	began := time.Now()
	out, err := l.Client.ReceiveMessage(ctx, in, o...)
	if err == nil {
		end := began.Add(time.Duration(in.VisibilityTimeout) * time.Second)
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, m := range out.Messages {
			l.ends[*m.MessageId], l.handles[*m.ReceiptHandle] = end, *m.MessageId
		}
	}
	return out, err
}

func (l *leases) ChangeMessageVisibilityBatch(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput, o ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	began := time.Now()
	out, err := l.Client.ChangeMessageVisibilityBatch(ctx, in, o...)
	if err == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, e := range in.Entries {
			l.ends[l.handles[*e.ReceiptHandle]] = began.Add(time.Duration(e.VisibilityTimeout) * time.Second)
		}
	}
	return out, err
}

// consumeUntilTerminated is the child process of TestStoppedProcess.
func consumeUntilTerminated(t *testing.T) {
	client := sqs.New(sqs.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(os.Getenv("CONSUMER_ENDPOINT")),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "secret"}, nil
		}),
	})
	l := &leases{Client: client, ends: map[string]time.Time{}, handles: map[string]string{}}
	c, err := consumer.New(l, consumer.Config[job]{
		QueueURL: os.Getenv("CONSUMER_QUEUE"), Decode: consumer.JSON(job.String), Visibility: 6 * time.Second, Groups: 20,
		Handle: func(_ context.Context, m consumer.Message[job]) error {
			l.mu.Lock()
			late := time.Since(l.ends[m.MessageID])
			l.mu.Unlock()
			fmt.Println("handler starts")
			if late > 0 {
				fmt.Println("handler is late", m.MessageID, late)
			}
			time.Sleep(20 * time.Millisecond)
			if m.Attempt < 3 && m.Payload.N%3 == 0 {
				return consumer.Defer(context.DeadlineExceeded, 100*time.Millisecond)
			}
			return nil
		},
		Failure: consumer.Failure{Action: consumer.ActionBlock, FirstBackoff: 100 * time.Millisecond},
	})
	require.NoError(t, err)
	ctx, stop := signal.NotifyContext(t.Context(), syscall.SIGTERM)
	defer stop()
	require.NoError(t, c.Run(ctx))
}
