package guide_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/dispatch"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/sqscall"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// Row is an invoice in a database.
type Row struct {
	ID        string    `json:"id"`
	Version   int       `json:"version"`
	Customer  string    `json:"customer"`
	CreatedAt time.Time `json:"created_at"`
}

func identify(r Row) (sqsfifo.Identity, error) {
	key, err := sqsfifo.JoinKey("invoice", r.ID, strconv.Itoa(r.Version))
	return sqsfifo.Identity{DedupeKey: key, Group: r.Customer, Time: r.CreatedAt}, err
}

// The event of a row contains only times stored in the row. The same row therefore gives
// the same event each time.
func TestARowIsTheSameEventEachTime(t *testing.T) {
	queue := newQueue(t, sqstest.Config{})
	//sqsfifo:ignore SF020 -- a snippet of the guide
	producer, err := sqsfifo.NewProducer(queue, sqsfifo.Config[Row]{QueueURL: queue.URL(), Organization: "acme", Source: "acme.billing.invoices", Identify: identify})
	require.NoError(t, err)
	row := Row{"17", 1, "ada", time.Date(2025, 12, 4, 12, 0, 0, 0, time.UTC)}
	for _, duplicate := range []bool{false, true} {
		receipt, err := producer.Send(t.Context(), row)
		require.NoError(t, err)
		assert.Equal(t, duplicate, receipt.Duplicate)
	}
}

// Scene is one of the events of an invocation.
type Scene struct {
	ID       string    `json:"id"`
	Acquired time.Time `json:"acquired"`
}

type handler struct {
	producer *sqsfifo.Producer[Scene]
}

func (h *handler) handle(ctx context.Context, scenes []Scene) error {
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-2*time.Second))
		defer cancel()
	}
	return h.producer.SendBatch(ctx, scenes).Err()
}

// When the queue does not answer, the guide's Lambda handler returns an error before its
// deadline. The next invocation sends the events again, and the queue has each event
// once.
func TestTheHandlerLeavesTimeToAnswer(t *testing.T) {
	queue := newQueue(t, sqstest.Config{})
	//sqsfifo:ignore SF020 -- a snippet of the guide
	producer, err := sqsfifo.NewProducer(queue, sqsfifo.Config[Scene]{
		QueueURL: queue.URL(), Organization: "acme", Source: "acme.imagery.scenes",
		Identify: func(s Scene) (sqsfifo.Identity, error) {
			key, err := sqsfifo.JoinKey("landsat", s.ID)
			return sqsfifo.Identity{DedupeKey: key, Group: s.ID, Time: s.Acquired}, err
		},
	})
	require.NoError(t, err)
	h := &handler{producer}
	at := time.Date(2025, 12, 4, 12, 0, 0, 0, time.UTC)
	scenes := []Scene{{"a", at}, {"b", at}}

	queue.Inject(sqstest.LoseAnswer(), 1<<30)
	ctx, cancel := context.WithTimeout(t.Context(), 2100*time.Millisecond)
	defer cancel()
	require.Error(t, h.handle(ctx, scenes))
	require.NoError(t, ctx.Err(), "the invocation has time left")
	queue.ClearFaults()
	require.NoError(t, h.handle(t.Context(), scenes))
	assert.Len(t, queue.Messages(), 2)
	require.NoError(t, producer.Close(t.Context()))
}

// The command for the AWS CLI in queue.md creates a queue that passes the preflight check.
func TestTheCLIsQueueIsFit(t *testing.T) {
	text, err := os.ReadFile("queue.md")
	require.NoError(t, err)
	line := regexp.MustCompile(`--queue-name (\S+) --attributes (\S+)`).FindStringSubmatch(string(text))
	require.NotNil(t, line)
	attributes := map[string]string{}
	for a := range strings.SplitSeq(line[2], ",") {
		name, value, _ := strings.Cut(a, "=")
		attributes[name] = value
	}
	server := sqstest.NewServer()
	created, err := server.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String(line[1]), Attributes: attributes})
	require.NoError(t, err)
	queue, err := sqsfifo.NewQueue(server, sqsfifo.QueueConfig{URL: *created.QueueUrl})
	require.NoError(t, err)
	report, err := queue.Preflight(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "perMessageGroupId", report.FifoThroughputLimit)
	assert.Equal(t, sqsfifo.EncryptionSQS, report.Encryption)
}

// The durations in the table of shutdown.md add up to the grace period, and equal those
// in the page's YAML and in the code.
func TestTheGracePeriodAddsUp(t *testing.T) {
	text, err := os.ReadFile("shutdown.md")
	require.NoError(t, err)
	var parts []int
	for _, row := range regexp.MustCompile(`(?m)^\| (?:\*\*)?([0-9]+)(?:\*\*)? \|`).FindAllStringSubmatch(string(text), -1) {
		n, err := strconv.Atoi(row[1])
		require.NoError(t, err)
		parts = append(parts, n)
	}
	require.Len(t, parts, 5)
	assert.Equal(t, parts[4], parts[0]+parts[1]+parts[2]+parts[3])
	yaml := func(pattern string) int {
		m := regexp.MustCompile(pattern).FindStringSubmatch(string(text))
		require.NotNil(t, m, pattern)
		n, err := strconv.Atoi(m[1])
		require.NoError(t, err)
		return n
	}
	assert.Equal(t, parts[4], yaml(`terminationGracePeriodSeconds: ([0-9]+)`))
	assert.Equal(t, parts[0], yaml(`sleep: \{seconds: ([0-9]+)\}`))
	assert.Equal(t, parts[1], yaml(`"-grace=([0-9]+)s"`))
	assert.Equal(t, int(dispatch.Grace/time.Second), parts[2])
	assert.Equal(t, int(sqscall.Timeout/time.Second), yaml(`one request may take ([0-9]+) s`))
}

func newQueue(t *testing.T, c sqstest.Config) *sqstest.Queue {
	t.Helper()
	queue, err := sqstest.NewQueue(c)
	require.NoError(t, err)
	return queue
}

// No snippet of a guide has an event source of the organization kfm: a reader copies the
// snippets, and kfm would be the wrong organization for most readers.
func TestSnippetsHaveAnotherOrganization(t *testing.T) {
	guides, err := filepath.Glob("*.md")
	require.NoError(t, err)
	require.NotEmpty(t, guides)
	for _, guide := range guides {
		text, err := os.ReadFile(guide)
		require.NoError(t, err)
		assert.NotRegexp(t, `["']kfm\.`, string(text), guide)
	}
}
