package replay_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/replay"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// Event is the payload of the tests.
type Event struct {
	ID    string `json:"id"`
	Group string `json:"group"`
	Note  string `json:"note,omitempty"`
}

func config(queueURL string) sqsfifo.Config[Event] {
	return sqsfifo.Config[Event]{
		QueueURL: queueURL,
		Source:   "kfm.test.replay",
		Identify: func(e Event) (sqsfifo.Identity, error) {
			return sqsfifo.Identity{DedupeKey: e.ID, Group: e.Group, Time: time.Unix(1764806400, 0)}, nil
		},
	}
}

func newQueue(t testing.TB) *sqstest.Queue {
	t.Helper()
	q, err := sqstest.NewQueue(sqstest.Config{})
	require.NoError(t, err)
	return q
}

func newProducer(t testing.TB, client sqsfifo.Client, queueURL string, change ...func(*sqsfifo.Config[Event])) *sqsfifo.Producer[Event] {
	t.Helper()
	c := config(queueURL)
	for _, f := range change {
		f(&c)
	}
	p, err := sqsfifo.NewProducer(client, c)
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.Close(context.Background()) })
	return p
}

var builder = func() *sqsfifo.Producer[Event] {
	p, err := sqsfifo.NewProducer(new(sqstest.Queue), config("https://sqs.us-east-1.amazonaws.com/000000000000/events.fifo"))
	if err != nil {
		panic(err)
	}
	return p
}()

// line returns a line for sourceOf, with a new event and the status StatusPending. The
// functions of the parameter `change` may then change the line.
func line(t testing.TB, id, group string, change ...func(*replay.MessageLine)) replay.MessageLine {
	t.Helper()
	m, err := builder.Build(Event{ID: id, Group: group})
	require.NoError(t, err)
	l := replay.MessageLine{Message: *m, BodyHash: sqsfifo.BodyHash(m.Body), Status: replay.StatusPending}
	for _, f := range change {
		f(&l)
	}
	return l
}

func deliveredAt(at time.Time) func(*replay.MessageLine) {
	return func(l *replay.MessageLine) {
		l.Status, l.Sent = replay.StatusDelivered, replay.SentBetween{From: at, To: at}
	}
}

func doubtAt(at time.Time) func(*replay.MessageLine) {
	return func(l *replay.MessageLine) {
		l.Status, l.Sent = replay.StatusInDoubt, replay.SentBetween{From: at, To: at}
	}
}

func encode(t testing.TB, lines []replay.MessageLine) []byte {
	t.Helper()
	var text bytes.Buffer
	for _, l := range lines {
		writeLine(&text, l)
	}
	return text.Bytes()
}

func writeLine(w io.Writer, l replay.MessageLine) {
	if err := json.NewEncoder(w).Encode(l); err != nil {
		panic(err)
	}
}

func sourceOf(t testing.TB, lines ...replay.MessageLine) replay.Source {
	t.Helper()
	text := encode(t, lines)
	return replay.NewJSONLines("events.jsonl", bytes.NewReader(text), int64(len(text)))
}

// many returns lines with n pending events for each group. The first events of all groups
// come first, then the second events of all groups, and so on.
func many(t testing.TB, groups, n int) []replay.MessageLine {
	t.Helper()
	var out []replay.MessageLine
	for i := range n {
		for g := range groups {
			out = append(out, line(t, fmt.Sprintf("g%03d-%04d", g, i), fmt.Sprintf("g%03d", g)))
		}
	}
	return out
}

func newPlan(t testing.TB, s replay.Source, o replay.Options, now time.Time) *replay.Plan {
	t.Helper()
	p, err := replay.NewPlan(t.Context(), s, o, now)
	require.NoError(t, err)
	return p
}

// senderFunc is a Sender that answers from another goroutine.
type senderFunc func(context.Context, *sqsfifo.Message) (sqsfifo.Receipt, error)

func (f senderFunc) SendMessageAsync(ctx context.Context, m *sqsfifo.Message, done func(sqsfifo.Receipt, error)) {
	go func() { done(f(ctx, m)) }()
}

var errRefused = errors.New("refused")

func refused(m *sqsfifo.Message) error {
	return &sqsfifo.NotStoredError{DedupeKey: m.DedupeKey, Attempts: 1, Err: errRefused}
}

func doubt(m *sqsfifo.Message) error {
	return &sqsfifo.InDoubtError{DedupeKey: m.DedupeKey, Attempts: 1, Err: errors.New("no answer")}
}

func sendAndWait(ctx context.Context, p replay.Sender, m *sqsfifo.Message) (r sqsfifo.Receipt, err error) {
	answered := make(chan struct{})
	p.SendMessageAsync(ctx, m, func(receipt sqsfifo.Receipt, e error) {
		r, err = receipt, e
		close(answered)
	})
	<-answered
	return r, err
}

// start runs a plan. If c has no store, start adds one in memory.
func start(ctx context.Context, plan *replay.Plan, c replay.Config) (replay.PlanReport, error) {
	if c.Store == nil {
		c.Store = new(idempotency.Memory)
	}
	return replay.Run(ctx, plan, c)
}

func run(t testing.TB, plan *replay.Plan, c replay.Config) replay.PlanReport {
	t.Helper()
	report, err := start(t.Context(), plan, c)
	require.NoError(t, err)
	return report
}

// sent returns the IDs of the queue's events by group.
func sent(t testing.TB, q *sqstest.Queue) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for _, m := range q.Messages() {
		e, err := sqsfifo.DecodeEnvelope[Event](m.Body)
		require.NoError(t, err)
		out[m.GroupID] = append(out[m.GroupID], e.Payload.ID)
	}
	return out
}

// planned returns, by group, the dedupe keys of the items that have one of the actions.
func planned(p *replay.Plan, actions ...replay.Action) map[string][]string {
	out := map[string][]string{}
	for _, it := range p.Items {
		if slices.Contains(actions, it.Action) {
			out[it.Group] = append(out[it.Group], it.DedupeKey)
		}
	}
	return out
}

// actions returns "key label action reason" for each item.
func actions(p *replay.Plan) (out []string) {
	for _, it := range p.Items {
		out = append(out, strings.TrimSpace(fmt.Sprint(it.DedupeKey, " ", it.Label, " ", it.Action, " ", it.Reason)))
	}
	return out
}
