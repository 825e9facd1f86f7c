package sqsfifo

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// The limits of one SendMessageBatch (F-054, F-057).
const (
	maxBatchEntries = 10
	maxBatchBytes   = 1 << 20

	// maxMessageBytes is the most that a queue may take of one message (F-073).
	maxMessageBytes = 1 << 20
)

var (
	// ErrClosed is wrapped by the error of an event that was handed to a closed
	// producer. The event was never sent.
	ErrClosed = errors.New("producer is closed")

	// ErrGroupPaused is wrapped by the error of an event behind one of its own
	// message group that failed in the same SendBatch. The event was never sent:
	// it would have overtaken the one before it.
	ErrGroupPaused = errors.New("an earlier event of the message group failed")
)

// sender delivers built messages. It knows nothing of the type of the events.
type sender struct {
	client    Client
	queueURL  string
	explicit  bool
	retryFor  time.Duration
	telemetry *telemetry
	memory    *memory
	groups    *groupLocks
	queue     queueCheck
}

// delivery is one message on its way to its one result.
type delivery struct {
	ctx context.Context // the caller's, with the span of this message
	msg *Message

	sent       sent
	claim      claim
	attributes map[string]types.MessageAttributeValue
	size       int

	attempts  int
	first     time.Time            // of the first attempt
	ambiguous bool                 // an attempt may have been stored
	end       func(Receipt, error) // called once
}

// lane is the deliveries of one message group in the order of the calls. Only
// its head is ever on its way, so that order holds under every fault.
type lane struct {
	queue     []*delivery
	notBefore time.Time
}

// deliver sends the messages and returns when each has its result. Messages of
// one group are sent one after the other in the given order; messages of
// different groups share requests.
func (s *sender) deliver(ctx context.Context, deliveries []*delivery) {
	var ready []*lane
	byGroup := map[string]*lane{}
	for _, d := range deliveries {
		l := byGroup[d.msg.Group]
		if l == nil {
			l = &lane{}
			byGroup[d.msg.Group] = l
			ready = append(ready, l)
		}
		l.queue = append(l.queue, d)
	}
	names := make([]string, 0, len(byGroup))
	for g := range byGroup {
		names = append(names, g)
	}
	unlock, err := s.groups.lock(ctx, names)
	if err != nil {
		for _, d := range deliveries {
			d.end(Receipt{}, s.unsent(d, outcome{err: err}))
		}
		return
	}
	defer unlock()

	for len(ready) > 0 {
		if ctx.Err() != nil {
			for _, l := range ready {
				s.fail(l, outcome{err: context.Cause(ctx)})
			}
			return
		}
		var batch []*lane
		batch, ready = s.nextBatch(ready)
		if len(batch) > 0 {
			ready = append(ready, s.round(ctx, batch)...)
		} else if len(ready) > 0 {
			wait(ctx, ready)
		}
	}
}

// nextBatch takes the lanes whose heads make the next request. A head that is
// refused before it is sent ends its lane.
func (s *sender) nextBatch(ready []*lane) (batch, rest []*lane) {
	now := time.Now()
	bytes := 0
	for i, l := range ready {
		if l.notBefore.After(now) {
			rest = append(rest, l)
			continue
		}
		d := l.queue[0]
		if len(batch) == maxBatchEntries || len(batch) > 0 && bytes+d.size > maxBatchBytes {
			return batch, append(rest, ready[i:]...)
		}
		if d.attempts == 0 {
			c, err := s.memory.claim(now, d.msg, d.sent)
			if err != nil {
				if !errors.Is(err, window.ErrFull) {
					s.telemetry.collided(d.ctx)
				}
				s.telemetry.refused(d.ctx, err)
				s.settle(l, Receipt{}, err)
				continue
			}
			d.claim, d.first = c, now
		}
		batch = append(batch, l)
		bytes += d.size
	}
	return batch, rest
}

// round makes one request and returns the lanes that have more to send.
func (s *sender) round(ctx context.Context, batch []*lane) (more []*lane) {
	heads := make([]*delivery, len(batch))
	for i, l := range batch {
		heads[i] = l.queue[0]
		heads[i].attempts++
	}
	for i, o := range s.attempt(ctx, heads) {
		l, d := batch[i], heads[i]
		d.ambiguous = d.ambiguous || o.ambiguous
		now := time.Now()
		switch {
		case o.err == nil:
			d.sent.messageID, d.sent.sequence = o.messageID, o.sequence
			duplicate := s.memory.stored(now, d.first, d.msg, d.sent, d.claim)
			s.settle(l, d.receipt(duplicate), nil)
		case o.retry && ctx.Err() == nil && now.Before(d.first.Add(s.retryFor)):
			l.notBefore = now.Add(backoff(d.attempts))
		default:
			s.fail(l, o)
		}
		if len(l.queue) > 0 {
			more = append(more, l)
		}
	}
	return more
}

// wait returns when the first lane may send again or the context is done.
func wait(ctx context.Context, ready []*lane) {
	next := slices.MinFunc(ready, func(a, b *lane) int { return a.notBefore.Compare(b.notBefore) })
	timer := time.NewTimer(time.Until(next.notBefore))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// fail ends the head of a lane after its last attempt, if it had one.
func (s *sender) fail(l *lane, last outcome) {
	s.settle(l, Receipt{}, s.unsent(l.queue[0], last))
}

// unsent returns the error of a delivery that ends here: what it says follows
// from whether any of its attempts may have been stored.
func (s *sender) unsent(d *delivery, last outcome) error {
	if d.ambiguous {
		s.memory.unanswered(time.Now(), d.msg)
		return &SendError{DedupeKey: d.msg.DedupeKey, Attempts: d.attempts, ResendBefore: d.first.Add(resendHorizon), Err: last.err}
	}
	if d.attempts > 0 {
		s.memory.refused(d.msg, d.claim)
	}
	return &RefusedError{DedupeKey: d.msg.DedupeKey, Attempts: d.attempts, Code: last.code, Err: last.err}
}

// settle ends the head of a lane. What stands behind one that failed is not
// sent: it would overtake it.
func (s *sender) settle(l *lane, r Receipt, err error) {
	d := l.queue[0]
	l.queue = l.queue[1:]
	d.end(r, err)
	if err == nil {
		return
	}
	for _, behind := range l.queue {
		behind.end(Receipt{}, pausedError(behind.msg, d.msg))
	}
	l.queue = nil
}

func pausedError(msg, failed *Message) error {
	return fmt.Errorf("sqsfifo: dedupe key %q not sent, %w: dedupe key %q in message group %q",
		msg.DedupeKey, ErrGroupPaused, failed.DedupeKey, failed.Group)
}

func (d *delivery) receipt(duplicate bool) Receipt {
	return Receipt{
		Duplicate:      duplicate,
		EventID:        d.msg.EventID,
		DedupeKey:      d.msg.DedupeKey,
		Group:          d.msg.Group,
		BodyHash:       fmt.Sprintf("%x", d.sent.body),
		MessageID:      d.sent.messageID,
		SequenceNumber: d.sent.sequence,
		Attempts:       d.attempts,
	}
}

// prepare checks the message as it will go out and returns its delivery. The
// trace context is not part of the message: it is added where there is room and
// changes neither the hash nor the outcome of the checks.
func (s *sender) prepare(ctx context.Context, msg *Message) (*delivery, error) {
	checked := lintMessage(msg)
	checked.MaxSize = s.queue.maxSize()
	if s.explicit {
		checked.DeduplicationID = BodyHash(msg.Body)
	}
	if refused := errorsAmong(lint.Check(checked)); len(refused) > 0 {
		return nil, &ViolationError{Findings: refused}
	}
	h, err := readHeader(msg.Body)
	if err != nil {
		return nil, err
	}
	if h.DedupeKey != msg.DedupeKey || h.EventID != msg.EventID {
		return nil, &ViolationError{Findings: []lint.Finding{finding(ruleDedupeKey, "Message", "",
			"DedupeKey or EventID differ from those of the body; the message was changed after Build")}}
	}
	size := lint.Size(checked)
	attributes, traceBytes := s.telemetry.attributesWithTrace(ctx, msg.Attributes, checked.MaxSize-size)
	return &delivery{
		ctx:        ctx,
		msg:        msg,
		attributes: attributes,
		size:       size + traceBytes,
		sent: sent{
			body:       sha256.Sum256([]byte(msg.Body)),
			payload:    sha256.Sum256([]byte(h.payload)),
			attributes: attributeDigest(msg.Attributes),
			group:      msg.Group,
		},
	}, nil
}

func (s *sender) deduplicationID(d *delivery) *string {
	if !s.explicit {
		return nil
	}
	id := fmt.Sprintf("%x", d.sent.body)
	return &id
}
