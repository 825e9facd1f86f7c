package consumertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// Client is the part of *sqs.Client that a consumer may call.
type Client interface {
	ReceiveMessage(context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
	DeleteMessage(context.Context, *sqs.DeleteMessageInput, ...func(*sqs.Options)) (*sqs.DeleteMessageOutput, error)
	DeleteMessageBatch(context.Context, *sqs.DeleteMessageBatchInput, ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error)
	ChangeMessageVisibility(context.Context, *sqs.ChangeMessageVisibilityInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityOutput, error)
	ChangeMessageVisibilityBatch(context.Context, *sqs.ChangeMessageVisibilityBatchInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error)
	GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
	SendMessage(context.Context, *sqs.SendMessageInput, ...func(*sqs.Options)) (*sqs.SendMessageOutput, error)
	SendMessageBatch(context.Context, *sqs.SendMessageBatchInput, ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error)
}

// Env describes one process of a case.
type Env struct {
	// Client gives access to the queues of the case. Some cases simulate the death of the
	// process; from then on, every call of Client returns an error.
	Client Client

	QueueURL   string
	ParkingURL string // a FIFO queue for messages whose attempts are used up

	Visibility  time.Duration // visibility timeout of received messages
	PerReceive  int           // largest number of messages in a receive
	Attempts    int           // calls of Handle for a message before it is parked
	MaxMessages int           // largest number of received, undeleted messages

	// Handle is the handler. A nil error says that the message is handled. A call takes up
	// to two hours.
	Handle func(ctx context.Context, d Delivery) error
}

// Delivery is a message with the text "group/number" as its body.
type Delivery struct{ Group, MessageID, Body string }

// Run runs a consumer until ctx ends and returns after its shutdown.
type Run func(ctx context.Context, e Env) error

var errKilled = errors.New("consumertest: the process was killed")

// world has the queues of a case and records the calls of the handlers.
type world struct {
	t                    testing.TB
	run                  Run
	queue, parking, dead *sqstest.Queue
	server               *sqstest.Server
	env                  Env
	// called before and after each call of SQS, the store or the database; may kill the
	// process
	point func(p *process, name string)

	mu       sync.Mutex
	position map[string]int          // position of each body in its group
	ended    map[string]bool         // bodies of handled and parked messages
	handling map[string]*handlerCall // the running handler, by group
	broken   map[string]int          // number of violations of each invariant
	errs     []string
	starts   int

	// count a message as handled when its transaction commits, not when the handler
	// returns
	endsAtCommit bool
	parkedBodies map[string]int // copies in the parking queue
	deliveries   int
	most         int // largest number of receives of one message

	calls atomic.Int64
	order map[string][]string
}

func newWorld(t testing.TB, run Run, c sqstest.Config) *world {
	w := &world{
		t: t, run: run, position: map[string]int{}, ended: map[string]bool{}, broken: map[string]int{}, parkedBodies: map[string]int{}, handling: map[string]*handlerCall{}, order: map[string][]string{},
		point: func(*process, string) {},
	}
	w.parking = w.newQueue(sqstest.Config{Name: "parking.fifo", DiscardDeleted: true})
	if c.MaxReceiveCount > 0 {
		w.dead = w.newQueue(sqstest.Config{Name: "dead.fifo"})
		c.DeadLetterQueue = w.dead
	}
	w.queue = w.newQueue(c)
	w.server = sqstest.NewServer(w.queue, w.parking)
	w.env = Env{QueueURL: w.queue.URL(), ParkingURL: w.parking.URL(), Visibility: 30 * time.Second, PerReceive: 10, Attempts: 5, MaxMessages: 1000}
	return w
}

func (w *world) newQueue(c sqstest.Config) *sqstest.Queue {
	q, err := sqstest.NewQueue(c)
	if err != nil {
		w.t.Fatal(err)
	}
	return q
}

// fail records a violation of an invariant, but at most three for each invariant. The
// caller holds w.mu.
func (w *world) fail(format string, args ...any) {
	invariant, _, _ := strings.Cut(format, ":")
	if w.broken[invariant]++; w.broken[invariant] <= 3 {
		w.errs = append(w.errs, fmt.Sprintf(format, args...))
	}
}

// send sends the next messages of a group.
func (w *world) send(group string, n int) { w.sendTo(w.queue, group, n) }

func (w *world) sendTo(queue *sqstest.Queue, group string, n int) {
	w.t.Helper()
	for range n {
		w.mu.Lock()
		number := len(w.order[group])
		body := fmt.Sprintf("%s/%d", group, number)
		w.order[group] = append(w.order[group], body)
		w.position[body] = number
		w.mu.Unlock()
		if _, err := queue.SendMessage(context.Background(), &sqs.SendMessageInput{QueueUrl: aws.String(queue.URL()), MessageBody: &body, MessageGroupId: &group}); err != nil {
			w.t.Fatal(err)
		}
	}
}

// process is a simulated operating-system process with one consumer.
type process struct {
	w      *world
	name   string
	killed atomic.Bool
	over   atomic.Bool // Run has returned
	cancel context.CancelFunc
	ended  chan error
}

// start starts a process with the given handler. The process calls the handler through the
// method callHandler, which first checks the invariants.
func (w *world) start(name string, handle func(ctx context.Context, p *process, d Delivery) error) *process {
	p := &process{w: w, name: name, ended: make(chan error, 1)}
	e := w.env
	e.Client = processClient{p}
	e.Handle = func(ctx context.Context, d Delivery) error { return p.callHandler(ctx, d, handle) }
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	go func() {
		err := w.run(ctx, e)
		p.over.Store(true)
		p.ended <- err
	}()
	return p
}

// handlerCall is a running call of the handler in one process.
type handlerCall struct{ by *process }

// kill ends a process without a shutdown. The goroutines of the process may still run,
// but their calls have no effect from now on.
func (p *process) kill() {
	p.killed.Store(true)
	p.w.mu.Lock()
	for group, by := range p.w.handling {
		if by.by == p {
			delete(p.w.handling, group)
		}
	}
	p.w.mu.Unlock()
	p.cancel()
}

// callHandler calls the function `handle`, the handler of the process. It first checks that
// all earlier messages of the group were handled or parked (I1), no other handler of the
// group runs (I2), and Run has not returned (I6). For a killed process, callHandler returns
// errKilled.
func (p *process) callHandler(ctx context.Context, d Delivery, handle func(context.Context, *process, Delivery) error) error {
	w := p.w
	if p.killed.Load() {
		return errKilled
	}
	w.mu.Lock()
	w.starts++
	if p.over.Load() {
		w.fail("I6: the handler of %s started after Run returned", d.Body)
	}
	if by, busy := w.handling[d.Group]; busy {
		w.fail("I2: %s starts in %s while a handler of the group runs in %s", d.Body, p.name, by.by.name)
	}
	for _, earlier := range w.order[d.Group][:w.position[d.Body]] {
		if !w.ended[earlier] {
			w.fail("I1: %s starts before %s was handled or parked", d.Body, earlier)
			break
		}
	}
	s := &handlerCall{p}
	w.handling[d.Group] = s
	w.mu.Unlock()
	over := func() {
		if w.handling[d.Group] == s {
			delete(w.handling, d.Group)
		}
	}
	// A consumer ends ctx when it loses the message. Then another may handle the group.
	stop := context.AfterFunc(ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		over()
	})
	defer stop()
	err := handle(ctx, p, d)
	w.mu.Lock()
	defer w.mu.Unlock()
	over()
	if p.killed.Load() {
		return errKilled
	}
	if err == nil && !w.endsAtCommit {
		w.ended[d.Body] = true
	}
	return err
}

func (w *world) left() []sqstest.Message {
	return slices.DeleteFunc(w.queue.Messages(), func(m sqstest.Message) bool { return m.Deleted })
}

// processClient is the SQS client of one simulated process.
type processClient struct{ p *process }

func through[I, O any](p *process, name string, call func(context.Context, *I, ...func(*sqs.Options)) (*O, error), ctx context.Context, in *I) (*O, error) {
	p.w.point(p, "before "+name)
	if p.killed.Load() {
		return nil, errKilled
	}
	p.w.calls.Add(1)
	if p.over.Load() {
		p.w.mu.Lock()
		p.w.fail("I6: %s after Run returned", name)
		p.w.mu.Unlock()
	}
	out, err := call(ctx, in)
	p.w.point(p, "after "+name)
	if p.killed.Load() {
		return nil, errKilled
	}
	return out, err
}

func (c processClient) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, _ ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	out, err := through(c.p, "a receive", c.p.w.server.ReceiveMessage, ctx, in)
	if err == nil {
		c.p.w.received(out.Messages)
	}
	return out, err
}

func (c processClient) DeleteMessage(ctx context.Context, in *sqs.DeleteMessageInput, _ ...func(*sqs.Options)) (*sqs.DeleteMessageOutput, error) {
	return through(c.p, "a delete", c.p.w.server.DeleteMessage, ctx, in)
}

func (c processClient) DeleteMessageBatch(ctx context.Context, in *sqs.DeleteMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	return through(c.p, "a delete", c.p.w.server.DeleteMessageBatch, ctx, in)
}

func (c processClient) ChangeMessageVisibility(ctx context.Context, in *sqs.ChangeMessageVisibilityInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityOutput, error) {
	return through(c.p, "a change of visibility", c.p.w.server.ChangeMessageVisibility, ctx, in)
}

func (c processClient) ChangeMessageVisibilityBatch(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	return through(c.p, "a change of visibility", c.p.w.server.ChangeMessageVisibilityBatch, ctx, in)
}

func (c processClient) GetQueueAttributes(ctx context.Context, in *sqs.GetQueueAttributesInput, _ ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	return through(c.p, "a look at attributes", c.p.w.server.GetQueueAttributes, ctx, in)
}

// SendMessage sends a message to the parking queue. The message then counts as finished.
func (c processClient) SendMessage(ctx context.Context, in *sqs.SendMessageInput, _ ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	return through(c.p, "a send", func(ctx context.Context, in *sqs.SendMessageInput, _ ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
		out, err := c.p.w.server.SendMessage(ctx, in)
		if err == nil && *in.QueueUrl == c.p.w.env.ParkingURL {
			c.p.w.mu.Lock()
			c.p.w.ended[*in.MessageBody] = true
			c.p.w.parkedBodies[*in.MessageBody]++
			c.p.w.mu.Unlock()
		}
		return out, err
	}, ctx, in)
}

func (c processClient) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	return through(c.p, "a send", c.p.w.server.SendMessageBatch, ctx, in)
}

func (w *world) purge() {
	if _, err := w.queue.PurgeQueue(context.Background(), &sqs.PurgeQueueInput{QueueUrl: &w.env.QueueURL}); err != nil {
		w.t.Fatal(err)
	}
}

// received counts the receives of each message.
func (w *world) received(messages []types.Message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deliveries += len(messages)
	for _, m := range messages {
		if n, err := strconv.Atoi(m.Attributes[string(types.MessageSystemAttributeNameApproximateReceiveCount)]); err == nil {
			w.most = max(w.most, n)
		}
	}
}
