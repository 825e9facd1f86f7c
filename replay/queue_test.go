package replay_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/consumer"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/replay"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// parked has a parking queue with messages (source), and the queue to which RunQueue sends
// the messages (target).
type parked struct {
	*testing.T
	source, target *sqstest.Queue
	server         *sqstest.Server
	journal        *idempotency.Memory
}

// withParked runs the function `test` on virtual time. The source queue has n parked messages
// in each of the given number of groups.
func withParked(t *testing.T, groups, n int, test func(p *parked)) {
	synctest.Test(t, func(t *testing.T) {
		p := &parked{T: t, journal: &idempotency.Memory{}}
		var err error
		p.source, err = sqstest.NewQueue(sqstest.Config{Name: "parking.fifo"})
		require.NoError(t, err)
		p.target, err = sqstest.NewQueue(sqstest.Config{Name: "events.fifo"})
		require.NoError(t, err)
		p.server = sqstest.NewServer(p.source, p.target)
		for i := range n {
			for g := range groups {
				p.add(fmt.Sprintf("g%d", g), i, nil)
			}
		}
		test(p)
	})
}

func (p *parked) add(group string, n int, extra map[string]string) {
	m, err := builder.Build(Event{ID: fmt.Sprintf("%s/%d", group, n), Group: group})
	require.NoError(p, err)
	in := &sqs.SendMessageInput{QueueUrl: aws.String(p.source.URL()), MessageBody: &m.Body, MessageGroupId: &group, MessageAttributes: map[string]types.MessageAttributeValue{}}
	for name, value := range map[string]string{"hint": "7", consumer.AttributeReason: "cloudy"} {
		in.MessageAttributes[name] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: &value}
	}
	for name, value := range extra {
		in.MessageAttributes[name] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: &value}
	}
	_, err = p.source.SendMessage(p.Context(), in)
	require.NoError(p, err)
}

// run calls RunQueue once, with a new producer, as a new process would. The parameter
// `client` reads the source queue.
func (p *parked) run(ctx context.Context, client consumer.Client, change ...func(*replay.QueueConfig)) (replay.QueueReport, error) {
	producer := newProducer(p, p.server, p.target.URL(), func(c *sqsfifo.Config[Event]) {
		c.Store = sqsfifo.StoreConfig{Store: p.journal, Client: replay.QueueClient("incident-17"), Owner: "test"}
	})
	c := replay.QueueConfig{Client: client, QueueURL: p.source.URL(), Sender: producer, ID: "incident-17"}
	for _, f := range change {
		f(&c)
	}
	report, err := replay.RunQueue(ctx, c)
	closed, cancel := context.WithCancel(context.Background())
	cancel()
	_ = producer.Close(closed)
	return report, err
}

// sent returns the bodies in the target queue by group. It fails the test if a body occurs
// twice.
func (p *parked) sent() map[string][]string {
	out := map[string][]string{}
	seen := map[string]bool{}
	for _, m := range p.target.Messages() {
		assert.False(p, seen[m.Body], "%s is stored twice", m.Body)
		seen[m.Body] = true
		e, err := sqsfifo.DecodeEnvelope[Event](m.Body)
		require.NoError(p, err)
		out[m.GroupID] = append(out[m.GroupID], e.Payload.ID)
	}
	return out
}

func (p *parked) left() (out []sqstest.Message) {
	for _, m := range p.source.Messages() {
		if !m.Deleted {
			out = append(out, m)
		}
	}
	return out
}

func (p *parked) requireAll(groups, n int) {
	p.Helper()
	sent := p.sent()
	require.Len(p, sent, groups)
	for g := range groups {
		group := fmt.Sprintf("g%d", g)
		var want []string
		for i := range n {
			want = append(want, fmt.Sprintf("%s/%d", group, i))
		}
		assert.Equal(p, want, sent[group])
	}
	assert.Empty(p, p.left())
}

// RunQueue waits until SQS has forgotten the original sends, sends each group in order, and
// deletes the parked messages. It removes the attributes added by the consumer that parked
// the messages.
func TestRunQueue(t *testing.T) {
	withParked(t, 4, 25, func(p *parked) {
		report, err := p.run(p.Context(), p.server, func(c *replay.QueueConfig) {
			c.Progress = func(r replay.QueueResult) { assert.Equal(p, "cloudy", r.Parked) }
		})
		require.NoError(p, err)
		assert.Equal(p, replay.QueueReport{ID: "incident-17", Received: 100, Sent: 100, Deleted: 100, Left: 0}, report)
		p.requireAll(4, 25)
		first := p.target.Messages()[0]
		assert.GreaterOrEqual(p, first.AcceptedAt.Sub(p.source.Messages()[0].AcceptedAt), replay.Interval+replay.Margin)
		assert.Equal(p, "7", *first.Attributes["hint"].StringValue)
		assert.Equal(p, "incident-17", *first.Attributes[sqsfifo.ReplayAttribute].StringValue)
		assert.NotContains(p, first.Attributes, consumer.AttributeReason)
	})
}

var errGone = errors.New("the process is dead")

// dying is a client whose process dies at one of the deletes.
type dying struct {
	consumer.Client
	deletes atomic.Int64 // deletes that remain before the process dies
	kill    context.CancelFunc
}

func (d *dying) DeleteMessageBatch(ctx context.Context, in *sqs.DeleteMessageBatchInput, o ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	if d.deletes.Add(-1) < 0 {
		d.kill()
		return nil, errGone
	}
	return d.Client.DeleteMessageBatch(ctx, in, o...)
}

// A run dies before it deletes a sent message. Another run continues: no body is stored
// twice, even hours later.
func TestRunQueueContinues(t *testing.T) {
	for _, pause := range []time.Duration{time.Second, 6 * time.Hour} {
		t.Run(pause.String(), func(t *testing.T) {
			withParked(t, 3, 12, func(p *parked) {
				suppressed := 0
				for kills := 0; ; kills++ {
					require.Less(p, kills, 100)
					ctx, cancel := context.WithCancel(p.Context())
					d := &dying{Client: p.server, kill: cancel}
					d.deletes.Store(3)
					report, err := p.run(ctx, d, func(c *replay.QueueConfig) { c.Wait = -1 })
					cancel()
					suppressed += report.Suppressed
					if len(p.left()) == 0 {
						break
					}
					require.Error(p, err)
					time.Sleep(pause)
				}
				assert.Positive(p, suppressed)
				p.requireAll(3, 12)
			})
		})
	}
}

// A group stops at a message that cannot be sent. The later messages of the group stay in
// the source, in order. The other groups continue.
func TestRunQueueStops(t *testing.T) {
	withParked(t, 2, 2, func(p *parked) {
		_, err := p.source.SendMessage(p.Context(), &sqs.SendMessageInput{QueueUrl: aws.String(p.source.URL()), MessageBody: aws.String("no envelope"), MessageGroupId: aws.String("g0")})
		require.NoError(p, err)
		p.add("g0", 2, nil)
		p.add("g1", 2, nil)
		p.add("g2", 0, map[string]string{sqsfifo.ReplayAttribute: "incident-17"})
		p.add("g3", 0, map[string]string{sqsfifo.ReplayAttribute: "incident-16"})
		report, err := p.run(p.Context(), p.server)
		require.NoError(p, err)
		assert.Equal(p, map[string][]string{"g0": {"g0/0", "g0/1"}, "g1": {"g1/0", "g1/1", "g1/2"}, "g3": {"g3/0"}}, p.sent())
		assert.Equal(p, []int{9, 6, 6, 1, 3}, []int{report.Received, report.Sent, report.Deleted, report.Remaining, report.Left})
		require.Len(p, report.Stopped, 2)
		reasons := map[string]string{}
		for _, s := range report.Stopped {
			assert.Equal(p, replay.OutcomeFailed, s.Outcome)
			reasons[s.Group] = s.Reason
		}
		assert.Contains(p, reasons["g0"], "not an envelope")
		assert.Contains(p, reasons["g2"], "came back")
		for _, m := range p.left() {
			assert.Zero(p, m.HiddenUntil)
			assert.Equal(p, 1, m.Receives)
		}
	})
}

// A dry run shows the first messages of the groups, and changes nothing.
func TestRunQueueDry(t *testing.T) {
	withParked(t, 3, 15, func(p *parked) {
		var seen []string
		report, err := p.run(p.Context(), p.server, func(c *replay.QueueConfig) {
			c.DryRun, c.InFlight = true, 1
			c.Progress = func(r replay.QueueResult) { seen = append(seen, r.DedupeKey) }
		})
		require.NoError(p, err)
		assert.ElementsMatch(p, []string{"g0/0", "g1/0", "g2/0"}, seen)
		assert.Zero(p, report.Sent+report.Deleted)
		assert.Empty(p, p.sent())
		assert.Len(p, p.left(), 45)
	})
}

func TestRunQueueRefuses(t *testing.T) {
	for field, c := range map[string]replay.QueueConfig{
		"Sender": {ID: "x"}, "ID": {DryRun: true}, "InFlight": {DryRun: true, ID: "x", InFlight: -1},
	} {
		_, err := replay.RunQueue(t.Context(), c)
		var wrong *sqsfifo.InvalidError
		require.ErrorAs(t, err, &wrong)
		assert.Equal(t, "QueueConfig."+field, wrong.Field)
	}
}
