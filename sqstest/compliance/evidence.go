package compliance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/kansas-frontier-matrix/sqsfifo/lint"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// evidence has the results of all calls of Send: the stored messages and the suppressed
// sends. The method `gather` makes all these calls. The cases of the suite only judge the
// results.
type evidence struct {
	organization string

	// The suite sends each event twice at the same instant. The messages of event i are
	// first[i] and second[i].
	first, second []sqstest.Message
	// later[i] is the message of a third send of event i, one hour after the second.
	later []sqstest.Message

	// The stored and suppressed sends of a queue that got every event once, and event 0
	// three more times.
	replayStored     []sqstest.Message
	replaySuppressed []sqstest.Suppression

	// afterTimeout has the stored messages of event 0, whose first answer was lost.
	afterTimeout []sqstest.Message

	// ordered has the messages of all events in stored order. The suite sent the events to
	// one queue, which refused its first calls (throttledCalls) with a throttle error.
	ordered []sqstest.Message

	storm loadCounts
}

// gather makes the sends described in the type `evidence`, and returns the results. The
// function `letTimePass` advances the producer's clock by the given duration, or, in real
// time, by about a second.
func (s Suite[T]) gather(ctx context.Context, letTimePass func(time.Duration)) (*evidence, error) {
	if s.Send == nil || len(s.Events) < 2 {
		return nil, errors.New("compliance: Suite needs Send and at least two Events")
	}
	if faults := (lint.Contract{Organization: s.Organization}).CheckOrganization(); len(faults) > 0 {
		return nil, fmt.Errorf("compliance: Suite.Organization: %s", faults[0].Message)
	}
	e := &evidence{}
	var err error
	for _, step := range []func(){
		func() {
			if e.first, err = s.sendSeparately(ctx); err == nil {
				e.organization = cmp.Or(s.Organization, organization(e.first[0].Body))
			}
		},
		func() { e.second, err = s.sendSeparately(ctx) },
		func() { e.replayStored, e.replaySuppressed, err = s.replay(ctx) },
		func() { letTimePass(time.Hour); e.later, err = s.sendSeparately(ctx) },
		func() { e.afterTimeout, err = s.underFault(ctx, sqstest.LoseAnswer(), 1, 1) },
		func() { e.ordered, err = s.underFault(ctx, sqstest.Throttle(), throttledCalls, len(s.Events)) },
		func() {
			if e.hasNoFailure() {
				e.storm, err = s.retryStorm(ctx, e.first[0])
			}
		},
	} {
		if step(); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// queues is the number of queues that newQueue has made in this process. It makes their
// names unique.
var queues atomic.Int64

// newQueue returns a queue with a name that no other queue of the suite has.
func newQueue() (*sqstest.Queue, error) {
	return sqstest.NewQueue(sqstest.Config{Name: fmt.Sprintf("compliance-%d.fifo", queues.Add(1))})
}

func (s Suite[T]) send(ctx context.Context, q *sqstest.Queue, event int) error {
	if err := s.Send(ctx, q.Client(), q.URL(), s.Events[event]); err != nil {
		return fmt.Errorf("compliance: Send failed for event %d: %w", event, err)
	}
	return nil
}

// sendSeparately sends every event, each to a separate new queue. It returns the stored
// messages, one for each event.
func (s Suite[T]) sendSeparately(ctx context.Context) ([]sqstest.Message, error) {
	var out []sqstest.Message
	for i := range s.Events {
		q, err := newQueue()
		if err != nil {
			return nil, err
		}
		if err := s.send(ctx, q, i); err != nil {
			return nil, err
		}
		if n := len(q.Messages()) + len(q.Suppressed()); n != 1 {
			return nil, fmt.Errorf("compliance: Send sent %d messages for event %d, want 1", n, i)
		}
		out = append(out, q.Messages()[0])
	}
	return out, nil
}

// replay sends every event, and then event 0 three more times: immediately, after three
// minutes and after five minutes. It advances only the queue's clock.
func (s Suite[T]) replay(ctx context.Context) ([]sqstest.Message, []sqstest.Suppression, error) {
	q, err := newQueue()
	if err != nil {
		return nil, nil, err
	}
	for i := range s.Events {
		if err := s.send(ctx, q, i); err != nil {
			return nil, nil, err
		}
	}
	for _, wait := range []time.Duration{0, 3 * time.Minute, 2 * time.Minute} {
		q.Advance(wait)
		if err := s.send(ctx, q, 0); err != nil {
			return nil, nil, err
		}
	}
	return q.Messages(), q.Suppressed(), nil
}

// throttledCalls is larger than the three tries of the SDK's retryer, so that Send gets a
// throttle error.
const throttledCalls = 4

// underFault sends the first events to a queue whose first calls fail. After an error it
// calls Send again for the same event.
func (s Suite[T]) underFault(ctx context.Context, f sqstest.Fault, calls, events int) ([]sqstest.Message, error) {
	q, err := newQueue()
	if err != nil {
		return nil, err
	}
	q.Inject(f, calls)
	for i := range events {
		for tries := 1; ; tries++ {
			err := s.send(ctx, q, i)
			if err == nil {
				break
			}
			if tries > calls {
				return nil, fmt.Errorf("%w (after %d tries, of which the queue failed %d)", err, tries, calls)
			}
		}
	}
	return q.Messages(), nil
}

// hasNoFailure reports whether no case has failed so far. A case that cannot be judged yet,
// such as "Retry Storm", has not failed.
func (e *evidence) hasNoFailure() bool {
	for _, c := range complianceCases {
		var masked *notJudgedError
		if err := c.run(e); err != nil && !errors.As(err, &masked) {
			return false
		}
	}
	return true
}

// loadCounts are the counts of the retry storm: 80 events a second for ten minutes. For 6 %
// of the events there is a duplicate attempt, a second send of an earlier event. The numbers
// are from the KFM glossary.
type loadCounts struct {
	events, duplicates int // number of events and of duplicate attempts
	accepted           int // number of stored duplicate attempts; must be 0
	example            sqstest.Message
}

const (
	stormRate    = 80
	stormSeconds = 600
	stormEvents  = stormRate * stormSeconds

	// The first stormRepeats of every stormCycle events get a duplicate attempt.
	stormCycle   = 100
	stormRepeats = 6

	// At most every tenth duplicate attempt is a Send of the producer. All others repeat
	// messages of the function `background`.
	stormProducerShare = 10

	// A duplicate attempt comes at most stormSafe events after its original. In between,
	// retryStorm advances the queue's clock by at most 200 s. The clock also follows real
	// time, so the sends may take up to the remaining 100 s of the five minutes.
	stormSafe = 200 * stormRate
)

// retryStorm sends the load that loadCounts describes. It advances only the queue's
// clock: no time passes for the producer.
func (s Suite[T]) retryStorm(ctx context.Context, model sqstest.Message) (loadCounts, error) {
	q, err := newQueue()
	if err != nil {
		return loadCounts{}, err
	}
	background := func(n int) error {
		body := model.Body
		if key := dedupeKey(body); key != "" {
			body = strings.Replace(body, key, fmt.Sprintf("storm %d", n), 1)
		}
		_, err := q.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: aws.String(q.URL()), MessageBody: &body, MessageGroupId: &model.GroupID})
		return err
	}
	var out loadCounts
	const half = stormEvents / 2
	rng := rand.New(rand.NewPCG(80, 600)) // #nosec G404 -- a repeatable load
	for n := range stormEvents {
		if n%half == 0 {
			// The producer sends its events at the start, and again after the window.
			for i := range s.Events {
				if err := s.send(ctx, q, i); err != nil {
					return out, err
				}
			}
		}
		if err := background(n); err != nil {
			return out, err
		}
		out.events++
		if n%stormCycle < stormRepeats {
			before, err := storedCount(ctx, q)
			if err != nil {
				return out, err
			}
			if out.duplicates%stormProducerShare == 0 && n%half < stormSafe {
				err = s.send(ctx, q, out.duplicates/stormProducerShare%len(s.Events))
			} else {
				err = background(n - rng.IntN(min(n, stormSafe)+1))
			}
			if err != nil {
				return out, err
			}
			out.duplicates++
			after, err := storedCount(ctx, q)
			if err != nil {
				return out, err
			}
			if after > before {
				out.accepted++
				all := q.Messages()
				out.example = all[len(all)-1]
			}
		}
		q.Advance(time.Second / stormRate)
	}
	return out, nil
}

// storedCount returns the number of stored messages. The queue still has all of them,
// because nothing deletes messages and a case is shorter than the retention period.
func storedCount(ctx context.Context, q *sqstest.Queue) (int, error) {
	out, err := q.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: aws.String(q.URL()), AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameApproximateNumberOfMessages},
	})
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(out.Attributes[string(types.QueueAttributeNameApproximateNumberOfMessages)])
}
