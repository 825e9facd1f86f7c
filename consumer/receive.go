package consumer

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/uuid"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/clock"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/sqscall"
)

// attemptLifetime limits repeats with one ReceiveRequestAttemptId, which SQS forgets after
// five minutes (F-100).
const attemptLifetime = 4 * time.Minute

// systemAttributes are the message attributes of SQS that an item and a [Message] contain.
var systemAttributes = []types.MessageSystemAttributeName{
	types.MessageSystemAttributeNameMessageGroupId, types.MessageSystemAttributeNameSequenceNumber,
	types.MessageSystemAttributeNameMessageDeduplicationId, types.MessageSystemAttributeNameSentTimestamp,
	types.MessageSystemAttributeNameApproximateReceiveCount,
}

// addReceiver starts a receiver. The caller holds e.mu.
func (e *engine) addReceiver() {
	e.receivers++
	go e.receiver()
}

func (e *engine) receiver() {
	for {
		n := e.reserve()
		if n == 0 {
			break
		}
		messages, started := e.poll(n)
		if !e.takeIn(messages, started, n) {
			break
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.receivers--
	e.cond.Broadcast()
	e.grant()
	e.checkIdle()
}

// reserve waits until another receive may start, and reserves room for its messages. It
// returns the number of messages to receive, or 0 when the consumer shuts down.
func (e *engine) reserve() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	for {
		if e.isClosing() {
			return 0
		}
		n, polls := e.receiveLimits(e.clock.Now())
		active := e.count[stateWaiting] + e.count[stateHandling]
		room := e.room()
		if active+e.count[stateDeleting]+e.polls == 0 {
			n = min(n, room) // nothing in hand will end soon, so ask for fewer messages
		}
		e.stats.NoRoom = room < 1 && len(e.batches) > 0 && len(e.batches) == e.count[stateBlocked]
		if e.stats.NoRoom && e.log.IsDue(&e.full) {
			e.log.Add(slog.LevelError, "blocked groups fill Messages or Bytes; the consumer receives nothing", slog.Int("blocked", e.count[stateBlocked]))
		}
		if !e.paused && n > 0 && n <= room && e.polls < polls && active < e.groups {
			e.polls++
			e.reserved += n
			return n
		}
		e.cond.Wait()
	}
}

// room returns the number of messages that the limits still permit. The caller holds e.mu.
func (e *engine) room() int {
	return min(e.messages-e.kept, int((e.bytes-e.keptBytes)/mib)) - e.reserved
}

// takeIn makes one batch of the received messages of each message group, and passes the
// batches to the method `admit`. It starts one more receiver if SQS returned all n requested
// messages, no other receiver is idle, and fewer than mostPolls receivers exist. It returns
// false if this receiver should end.
func (e *engine) takeIn(messages []types.Message, started clock.Instant, n int) bool {
	now := e.clock.Now()
	var groups []*groupBatch
	byGroup := map[string]*groupBatch{}
	for _, m := range messages {
		it := newItem(m, started, e.visibility)
		b := byGroup[it.group]
		if b == nil {
			b = e.newBatch(it.group, started)
			byGroup[it.group] = b
			groups = append(groups, b)
			it.first = true
		}
		it.batch = b
		b.items = append(b.items, it)
	}
	if byGroup[""] != nil {
		e.fail(&QueueError{e.queueURL, []string{"a received message has no MessageGroupId, so its order is unknown; a FIFO queue of SQS returns the ID, so the emulator or the wrapper of the client must pass on system attributes (MessageSystemAttributeNames)"}})
	}
	e.watch.Received(e.base, len(messages))
	e.mu.Lock()
	defer e.mu.Unlock()
	e.polls--
	e.reserved -= n
	e.kept += len(messages)
	e.stats.Received += int64(len(messages))
	for _, b := range groups {
		for _, it := range b.items {
			e.keptBytes += it.bytes
		}
		e.suspect(b, now)
		e.admit(b)
	}
	e.grant()
	switch {
	case e.isClosing():
		return false
	case len(messages) == 0:
		return e.receivers == 1
	case len(messages) == n && e.receivers < mostPolls && e.receivers-e.polls == 1: // all receivers but this one are in a call
		e.addReceiver()
	}
	return true
}

// poll receives at most n messages. It repeats the call until SQS answers or the consumer
// shuts down. After network errors and throttles it uses the same attempt ID again, so SQS
// returns the messages of a lost answer.
func (e *engine) poll(n int) (_ []types.Message, started clock.Instant) {
	var id string
	var since clock.Instant
	for try := 0; ; try++ {
		started = e.clock.Now()
		if id == "" || started.Sub(since) > attemptLifetime {
			id, since = uuid.NewString(), started
		}
		began, ok := e.pace(e.polling, &e.receivePace)
		if !ok && try == 0 {
			return nil, started
		}
		if !ok {
			return e.repeatInterrupted(n, id), started
		}
		out, err := e.receive(e.polling, n, e.wait, id)
		e.reportCall(&e.receivePace, began, err)
		if err == nil {
			e.mu.Lock()
			e.answered, e.failing = true, outage{}
			e.mu.Unlock()
			return out.Messages, started
		}
		if e.polling.Err() != nil {
			return e.repeatInterrupted(n, id), started
		}
		code, refused := codeOf(err)
		denied := refused && isDenied(code)
		if isAttemptIDRefused(code) {
			id = ""
		} else if e.noteFailedReceive(err, denied) {
			e.fail(&DeniedError{Operation: "ReceiveMessage", Code: code, Err: err})
			return nil, started
		}
		if e.log.IsDue(&e.throttled) {
			e.log.Add(slog.LevelWarn, "receive failed; trying again", slog.String("code", code), slog.String("error", err.Error()))
		}
		most := 10 * time.Second
		if sqscall.LoadOf(code) == attempt.LoadThrottled {
			most = 200 * time.Millisecond // short, because the pacer already slows the calls down
		}
		if clock.Sleep(e.polling, backoff(100*time.Millisecond, most, try+1)) != nil {
			return e.repeatInterrupted(n, id), started
		}
	}
}

// repeatInterrupted repeats a receive interrupted by the shutdown, with the same attempt
// ID. The caller releases the returned messages. Without the repetition, messages in a lost
// answer would stay hidden until their visibility timeout ends.
func (e *engine) repeatInterrupted(n int, id string) []types.Message {
	if id == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(e.base, e.stop/5)
	defer cancel()
	for try := 0; ctx.Err() == nil; try++ {
		out, err := e.receive(ctx, n, time.Second, id)
		if err == nil {
			return out.Messages
		}
		if code, _ := codeOf(err); isAttemptIDRefused(code) {
			return nil
		}
		_ = clock.Sleep(ctx, backoff(50*time.Millisecond, time.Second, try+1))
	}
	return nil
}

func (e *engine) receive(ctx context.Context, n int, wait time.Duration, id string) (*sqs.ReceiveMessageOutput, error) {
	ctx, cancel := context.WithTimeout(ctx, wait+callTimeout)
	defer cancel()
	return called(e.client.ReceiveMessage, ctx, &sqs.ReceiveMessageInput{
		QueueUrl: &e.queueURL, MaxNumberOfMessages: int32(n), WaitTimeSeconds: int32(wait / time.Second), // #nosec G115 -- at most 10 and 20
		VisibilityTimeout: int32(e.visibility / time.Second), ReceiveRequestAttemptId: &id, // #nosec G115 -- at most 11 h
		MessageAttributeNames: []string{"All"}, MessageSystemAttributeNames: systemAttributes,
	})
}

// beCautiousAtStart limits each receive to one message, for one visibility timeout after the
// start. A message now in flight may have killed an earlier process. If it kills this
// process too, few other messages are affected. Without messages in flight there is no
// limit.
func (e *engine) beCautiousAtStart(ctx context.Context) {
	attributes, err := e.attributesOf(ctx, e.queueURL)
	report := reportOf(attributes)
	now := e.clock.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.limit = e.rules.Deliveries; e.limit == 0 {
		e.limit = report.MaxReceiveCount
	}
	if err != nil || report.InFlight > 0 {
		e.single.until = now.Add(e.visibility)
		e.wakeAt(e.single.until, now)
	}
}

// isAttemptIDRefused reports whether SQS refused a receive because its attempt ID cannot be
// used again (F-151). SQS has the same code for other invalid parameters, but these are
// always valid here.
func isAttemptIDRefused(code string) bool { return strings.HasPrefix(code, "InvalidParameterValue") }
