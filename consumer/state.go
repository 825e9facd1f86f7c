package consumer

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/clock"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/observe"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/pacer"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/sink"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/sqscall"
)

// Client is the subset of *sqs.Client that a consumer calls. *sqs.Client and the fake queue
// of package sqstest implement it. The consumer passes options that turn the SDK's retries
// off, so a wrapper of *sqs.Client must pass on the options of each call.
type Client interface {
	ReceiveMessage(context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
	DeleteMessageBatch(context.Context, *sqs.DeleteMessageBatchInput, ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error)
	ChangeMessageVisibilityBatch(context.Context, *sqs.ChangeMessageVisibilityBatchInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error)
	GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
	SendMessage(context.Context, *sqs.SendMessageInput, ...func(*sqs.Options)) (*sqs.SendMessageOutput, error)
	SendMessageBatch(context.Context, *sqs.SendMessageBatchInput, ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error)
}

// settings are the fields of Config that do not depend on the type of the events.
type settings struct {
	queueURL                        string
	groups, perReceive, messages    int
	bytes                           int64
	visibility, maxHold, wait, stop time.Duration
	rules                           Failure
	showKeys                        bool
}

// margin is the safety margin before the end of a visibility timeout. A message with less
// time left counts as lost, so its handler stops before another consumer receives the
// message.
func (s *settings) margin() time.Duration { return s.visibility / 10 }

// processor is the part of a consumer that depends on the event type. The goroutine of
// each batch calls process, abandon and describe. Another goroutine calls renew. No
// caller holds engine.mu.
type processor interface {
	// process makes an attempt.
	process(ctx context.Context, it *item) outcome
	// renew extends the lease of the item's claim in the store.
	renew(ctx context.Context, it *item) error
	// abandon ends the claim of an unhandled item, so another consumer can claim the key.
	abandon(ctx context.Context, it *item, reason string)
	// describe returns the key and the time of the event, empty if unknown.
	describe(it *item) (key string, at time.Time)
}

// engine receives, schedules and deletes messages. It does not depend on the type of the
// events.
type engine struct {
	settings
	client  Client
	parking *sqscall.Caller
	events  processor
	watch   *observe.Consumer
	log     *sink.Log
	clock   *clock.Clock // counts suspensions, as SQS does

	base    context.Context // context of all calls; ends when Run returns
	closing chan struct{}   // closed when Run begins to shut down
	dead    chan struct{}   // closed when the time limit of the shutdown has passed

	// The engine releases mu before it calls the client, the store or the caller's code.
	mu   sync.Mutex
	cond *sync.Cond // wakes goroutines that wait in reserve or release

	batches map[*groupBatch]struct{}
	byGroup map[string][]*groupBatch // the first batch is in progress; later batches wait until it ends
	count   [numberOfStates]int
	stats   Stats

	schedule
	caution
	intake
	deletions
	receivePace, deletePace pacer.Pacer // one pace per action, because SQS has a quota for each

	failure error
	failed  chan struct{} // closed when failure is set
	idle    chan struct{} // closed when the shutdown has begun and all work has ended
	calls   sync.WaitGroup
	stopped bool // no further call begins
}

func newEngine(s settings, client Client, events processor, watch *observe.Consumer, log *sink.Log) *engine {
	e := &engine{
		settings: s, client: client, events: events, watch: watch, log: log, clock: clock.New(),
		closing: make(chan struct{}), dead: make(chan struct{}), failed: make(chan struct{}), idle: make(chan struct{}),
		batches: map[*groupBatch]struct{}{}, byGroup: map[string][]*groupBatch{}, deletions: deletions{unreleased: map[string]clock.Instant{}},
	}
	e.cond = sync.NewCond(&e.mu)
	if s.rules.ParkingQueue != "" {
		e.parking = sqscall.New(client, s.rules.ParkingQueue)
	}
	return e
}

// close begins the shutdown. The caller holds e.mu.
func (e *engine) close() {
	if e.isClosing() {
		return
	}
	close(e.closing)
	e.stopPolling()
	e.cond.Broadcast()
	e.checkIdle()
}

func (e *engine) isClosing() bool { return isClosed(e.closing) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// checkIdle closes idle if the shutdown has begun and all work has ended. The caller holds
// e.mu.
func (e *engine) checkIdle() {
	if e.isClosing() && len(e.batches) == 0 && e.receivers == 0 && !isClosed(e.idle) {
		close(e.idle)
	}
}

// fail ends Run with err. Only the first error counts.
func (e *engine) fail(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.failure == nil {
		e.failure = err
		close(e.failed)
		e.close() // no receive and no handler begins after the failure
		e.log.Add(slog.LevelError, "the consumer stops", slog.String("error", err.Error()))
	}
}

// flushLog waits until all log records are written, but at most a second.
func (e *engine) flushLog() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = e.log.Flush(ctx) // log records not written before ctx ends are lost
}

// caution is the behaviour after suspected crashes. If a handler crashes the process, SQS
// delivers again all messages that the process had received, with higher receive counts. So
// the consumer keeps few messages while it handles a suspect. engine.mu guards the fields.
//
// A suspect is a message whose receive count is above half of the limit, and at least three.
// Its receipt begins a period of caution, which ends after one visibility timeout.
type caution struct {
	// limit is the receive count above which Failure.Action or the redrive policy applies. It
	// is 0 without a limit: then there are no suspects. A suspect is handled alone, so a
	// message that crashes the process takes no other message along to the limit.
	limit int

	single period // each receive asks for one message
	last   period // each suspect runs alone

	suspectsInHand int  // batches whose first message is a suspect without a call of the handler
	aloneRuns      bool // the only running handler is a suspect's

	givenUp map[string]past // messages that this process gave up, by message ID
}

// past is what this process did to a message that it gave up.
type past struct {
	receives int

	// See item.
	attempts   int
	blocked    error
	unresolved idempotency.Key
}

// period is a limited time of caution.
type period struct {
	until        clock.Instant // end of the period
	trustedUntil clock.Instant // no new period begins before this time
}

// outage is a time in which no receive has succeeded. The zero value means no outage.
type outage struct {
	since  clock.Instant // first failed receive
	denied clock.Instant // first refusal in a row of refusals; 0 if the last failure was none
	err    error         // of the last failed receive
}

// schedule decides which batch may call the handler. engine.mu guards its fields.
type schedule struct {
	running int
	waiting []*waiter
}

// answerRequest answers the waiting request of an operator, if there is one.
func (b *groupBatch) answerRequest(err error) {
	select {
	case o := <-b.requests:
		o.done <- err
	default:
	}
}

// endCause returns the reason why a batch must end: the cause of its context, or ErrShutdown
// if its context has not ended.
func (b *groupBatch) endCause() error { return cmp.Or(context.Cause(b.ctx), ErrShutdown) }

// waiter is a batch that waits until it may call the handler.
type waiter struct {
	batch   *groupBatch
	granted chan struct{}
}

// intake is the shared state of the receivers. engine.mu guards its fields.
type intake struct {
	polling     context.Context // ends at the shutdown
	stopPolling context.CancelFunc

	receivers int
	polls     int
	reserved  int // total number of messages that the running receives may return
	kept      int // received messages that were neither deleted nor released
	keptBytes int64
	paused    bool
	answered  bool // SQS has answered a receive
	failing   outage
	throttled sink.OnceAMinute
	full      sink.OnceAMinute
}

// deletions collects messages of all groups for DeleteMessageBatch calls. engine.mu
// guards its fields.
type deletions struct {
	queue      []*deletion
	deleting   int // DeleteMessageBatch calls under way
	timer      *time.Timer
	unreleased map[string]clock.Instant // groups with messages whose release SQS did not confirm: end of the visibility timeouts
}

// deletion is one message that waits for its delete.
type deletion struct {
	item *item
	done chan bool // gets one value: true if SQS confirmed the delete, else false
	try  int
}

// setState sets the state of b and updates e.count. The caller holds e.mu.
func (e *engine) setState(b *groupBatch, s state) {
	e.count[b.state]--
	e.count[s]++
	b.state = s
}

// drop removes an item from its batch and from the counts of kept messages and bytes. Unless
// the message was deleted, the consumer gives it up. The caller holds e.mu.
func (e *engine) drop(it *item) {
	if !it.removed {
		e.noteGivenUp(it)
	}
	it.removed = true
	b := it.batch
	for i, other := range b.items {
		if other == it {
			b.items = append(b.items[:i:i], b.items[i+1:]...)
			e.kept--
			e.keptBytes -= it.bytes
			break
		}
	}
	e.cond.Broadcast()
}

// markLost marks a message whose visibility timeout has ended or ends soon. If the message
// is the first of its batch, markLost ends the handler's context. Otherwise the batch ends
// before this message. The caller holds e.mu.
func (e *engine) markLost(it *item) {
	it.visibilityLost = true
	e.stats.Lost++
	b := it.batch
	if len(b.items) > 0 && b.items[0] == it {
		b.cancel(ErrLost)
	}
	e.log.Add(slog.LevelWarn, "message lost: its visibility timeout ended or was changed elsewhere",
		slog.String("message_group", it.group), slog.String("message_id", it.id()))
}

// logItem logs a record about a message. Only the goroutine of the message's batch calls
// logItem.
func (e *engine) logItem(level slog.Level, message string, it *item, attributes ...slog.Attr) {
	if e.log == nil {
		return
	}
	about := []slog.Attr{
		slog.String("message_group", it.group), slog.String("message_id", it.id()), slog.Int("receives", it.receives),
	}
	if key, _ := e.events.describe(it); e.showKeys && key != "" {
		about = append(about, slog.String("dedupe_key", key))
	}
	e.log.Add(level, message, append(about, attributes...)...)
}

// mostGivenUp limits the size of caution.givenUp, without blocked messages.
const mostGivenUp = 10_000

// noteGivenUp records that this process gives up a message without a crash. The message's
// next receive is then no sign of a crash, and continues its attempts. The caller holds e.mu.
func (e *engine) noteGivenUp(it *item) {
	if e.givenUp == nil {
		e.givenUp = map[string]past{}
	}
	if len(e.givenUp) >= mostGivenUp {
		maps.DeleteFunc(e.givenUp, func(_ string, p past) bool { return p.blocked == nil })
	}
	p := e.givenUp[it.id()]
	p.receives++
	if it.wasHead {
		p.attempts, p.blocked, p.unresolved = it.attempts, it.blocked, it.unresolved
	}
	e.givenUp[it.id()] = p
}
