package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest/compliance"
)

const childEnv = "SQSFIFO_TEST_SHUTDOWN_CHILD"

// With the environment variable childEnv, the test binary runs the program instead of the
// tests. The tests start it as a child process and send it a signal.
func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// The program gets SIGTERM while its queue is healthy, throttles, is unreachable or never
// answers. It prints exactly one outcome for each reading taken from the gauges, and the
// outcomes agree with the messages in the queue.
func TestEveryEventHasItsOutcomeAfterSIGTERM(t *testing.T) {
	for _, tc := range []struct {
		queue string
		set   func(*sqstest.Queue, *httptest.Server)
		check func(t *testing.T, fates map[string]int)
	}{
		{"healthy", func(*sqstest.Queue, *httptest.Server) {}, func(t *testing.T, fates map[string]int) {
			assert.Positive(t, fates["stored"])
			assert.Zero(t, fates["in doubt"])
		}},
		{"throttling", func(q *sqstest.Queue, _ *httptest.Server) { q.SetQuota(5) }, func(t *testing.T, fates map[string]int) {
			assert.Positive(t, fates["stored"])
			assert.Positive(t, fates["not stored"])
		}},
		{"dead, its host is gone", func(_ *sqstest.Queue, s *httptest.Server) { s.CloseClientConnections(); s.Close() }, func(t *testing.T, fates map[string]int) {
			assert.Positive(t, fates["not stored"])
		}},
		{"dead, never answers", func(q *sqstest.Queue, _ *httptest.Server) { q.Inject(sqstest.DelayAnswer(time.Hour), 1<<30) }, func(t *testing.T, fates map[string]int) {
			assert.Positive(t, fates["in doubt"])
		}},
	} {
		t.Run(tc.queue, func(t *testing.T) {
			q, err := sqstest.NewQueue(sqstest.Config{Name: "gauges.fifo"})
			require.NoError(t, err)
			server := httptest.NewServer(sqstest.NewServer(q))
			t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
			c := start(t, q.URL(), server.URL)
			for len(q.Messages()) == 0 {
				time.Sleep(time.Millisecond)
			}
			tc.set(q, server)
			time.Sleep(500 * time.Millisecond) // some readings
			require.NoError(t, c.cmd.Process.Signal(syscall.SIGTERM))
			fates := c.judge(t, q)
			tc.check(t, fates)
		})
	}
}

// child is the program in another process.
type child struct {
	cmd         *exec.Cmd
	out, log    bytes.Buffer
	waitForExit func() error
}

func start(t *testing.T, queueURL, endpoint string) *child {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	c := &child{cmd: exec.CommandContext(t.Context(), exe, "-queue-url", queueURL, "-grace", "1s")}
	c.cmd.Env = append(os.Environ(), childEnv+"=1", "AWS_ENDPOINT_URL_SQS="+endpoint, "AWS_REGION=us-east-1",
		"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_EC2_METADATA_DISABLED=true")
	c.cmd.Stdout = &c.out
	log, err := c.cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, c.cmd.Start())
	lines := bufio.NewReader(log)
	_, err = lines.ReadString('\n') // the program is sending
	require.NoError(t, err)
	c.waitForExit = func() error {
		_, err := c.log.ReadFrom(lines)
		return errors.Join(err, c.cmd.Wait())
	}
	return c
}

// judge waits for the end of the program and compares its outcomes with the queue.
func (c *child) judge(t *testing.T, q *sqstest.Queue) map[string]int {
	t.Helper()
	exit := c.waitForExit()
	stored := map[int]int{}
	for _, m := range q.Messages() {
		e, err := sqsfifo.DecodeEnvelope[Reading](m.Body)
		require.NoError(t, err)
		stored[e.Payload.Height]++
	}
	fates, said := map[string]int{}, map[int]string{}
	for line := range bytes.Lines(c.out.Bytes()) {
		var o outcome
		require.NoError(t, json.Unmarshal(line, &o))
		require.Empty(t, said[o.Height], "reading %d has one outcome", o.Height)
		said[o.Height] = o.Fate
		fates[o.Fate]++
		switch o.Fate {
		case "stored":
			require.Equal(t, 1, stored[o.Height], "reading %d is stored once", o.Height)
		case "not stored":
			require.Zero(t, stored[o.Height], "reading %d is not stored", o.Height)
		default:
			require.Equal(t, "in doubt", o.Fate)
			require.NotNil(t, o.ResendBefore)
		}
	}
	for height := range stored {
		require.Contains(t, []string{"stored", "in doubt"}, said[height], "reading %d is in the queue", height)
	}
	var taken int
	_, err := fmt.Sscanf(c.log.String(), "%d readings", &taken)
	require.NoError(t, err, c.log.String())
	require.Len(t, said, taken, "each reading that was taken has its outcome")
	t.Logf("%s; the queue has %d; exit: %v", strings.SplitN(c.log.String(), "\n", 2)[0], len(stored), exit)
	return fates
}

// When the source of gauge readings ends, the function `forward` sends the readings that it
// took, and returns. It does not wait for a signal such as SIGTERM.
func TestTheReadingsEnd(t *testing.T) {
	q, err := sqstest.NewQueue(sqstest.Config{})
	require.NoError(t, err)
	producer, err := newProducer(q, q.URL())
	require.NoError(t, err)
	o := &outcomes{out: json.NewEncoder(&bytes.Buffer{}), fates: map[sqsfifo.Fate]int{}}
	at := time.Date(2025, 12, 4, 12, 0, 0, 0, time.UTC)
	require.NoError(t, forward(t.Context(), producer, slices.Values([]Reading{{"a", at, 1}, {"b", at, 2}}), time.Minute, o.report))
	assert.Equal(t, 2, o.fates[sqsfifo.FateStored])
	assert.Len(t, q.Messages(), 2)
}

func TestCompliance(t *testing.T) {
	at := time.Date(2025, 12, 4, 12, 0, 0, 0, time.UTC)
	compliance.TestProducer(t, compliance.Suite[Reading]{
		Send: func(ctx context.Context, client *sqs.Client, queueURL string, r Reading) error {
			producer, err := newProducer(client, queueURL)
			if err != nil {
				return err
			}
			defer producer.Close(ctx)
			_, err = producer.Send(ctx, r)
			return err
		},
		Events: []Reading{{"a", at, 1}, {"a", at.Add(time.Minute), 2}, {"b", at, 3}},
	})
}
