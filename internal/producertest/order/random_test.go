package order

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/producertest"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// randomProgram is a random program. Its goroutines submit events to one producer by every
// method, each goroutine with another group, while the queue fails in every way.
type randomProgram struct {
	t        *testing.T
	rng      *rand.Rand
	delivery sqsfifo.Delivery
	q        *sqstest.Queue
	p        *sqsfifo.Producer[producertest.Scene]

	mu          sync.Mutex
	inCall      map[string]bool
	submissions map[string][]*submitted // by group, in the order of the calls
}

// submitted is one submission of an event and its outcome.
type submitted struct {
	body     string
	outcomes int
	receipt  sqsfifo.Receipt
	err      error
}

func TestRandomProgram(t *testing.T) {
	seeds := uint64(300)
	if testing.Short() {
		seeds = 40
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { newRandomProgram(t, seed).run() })
		})
	}
}

func newRandomProgram(t *testing.T, seed uint64) *randomProgram {
	rng := rand.New(rand.NewPCG(seed, 5))
	s := &randomProgram{t: t, rng: rng, inCall: map[string]bool{}, submissions: map[string][]*submitted{}}
	s.delivery = sqsfifo.Delivery{
		Order:          sqsfifo.Order(rng.IntN(2)),
		OnGroupFailure: sqsfifo.GroupFailure(rng.IntN(2)),
		RetryFor:       []time.Duration{0, 2 * time.Second, 30 * time.Second}[rng.IntN(3)],
		Linger:         time.Duration(rng.IntN(20)) * time.Millisecond,
		InFlight:       1 + rng.IntN(64),
		BufferEvents:   1 + rng.IntN(100),
		Memory:         sqsfifo.Memory{DetectForeignDuplicates: rng.IntN(2) == 0},
	}
	s.q = producertest.NewQueue(t, sqstest.Config{})
	some := func(int, types.SendMessageBatchRequestEntry) bool { return s.chance(2) }
	for i, f := range []sqstest.Fault{
		sqstest.LoseAnswer(), sqstest.DropRequest(), sqstest.ResetConnection(), sqstest.TruncateAnswer(), sqstest.Throttle(), sqstest.ServerError(),
		sqstest.FailEntries("InternalError", smithy.FaultServer, some), sqstest.FailEntries("ThrottlingException", smithy.FaultServer, some),
		sqstest.FailEntries("InvalidMessageContents", smithy.FaultClient, some), sqstest.DelayAnswer(time.Duration(rng.IntN(30)) * time.Second),
	} {
		s.q.InjectRandomly(f, rng.Float64()*0.05*float64(rng.IntN(2)), seed+uint64(i))
	}
	s.p = producertest.On(t, s, s.q, func(c *sqsfifo.Config[producertest.Scene]) {
		c.Delivery = s.delivery
		c.Attributes = func(e producertest.Scene) map[string]string {
			if e.Cloud == 66 {
				return map[string]string{"unique_key": "nowhere in the body"}
			}
			return nil
		}
	})
	return s
}

// chance returns true once in n calls on average. It is safe for concurrent use.
func (s *randomProgram) chance(n int) bool { return s.intN(n) == 0 }

func (s *randomProgram) intN(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rng.IntN(n)
}

func (s *randomProgram) run() {
	var wg sync.WaitGroup
	for g := range 1 + s.intN(10) {
		wg.Go(func() { s.feed(fmt.Sprintf("%03d", g)) })
	}
	wg.Go(func() {
		for range s.intN(4) {
			time.Sleep(time.Duration(s.intN(2000)) * time.Millisecond)
			if s.chance(2) {
				require.NoError(s.t, s.p.Flush(s.t.Context()))
			}
			for group := range s.p.Paused() {
				if s.chance(2) {
					s.p.Resume(group)
				}
			}
		}
	})
	if !s.chance(4) {
		wg.Wait() // otherwise the producer closes while events are submitted
	}
	require.NoError(s.t, s.p.Close(s.t.Context()))
	wg.Wait()
	require.Empty(s.t, producertest.Leftovers(s.p))
	s.check()
}

// feed submits the events of one group, one call after the other.
func (s *randomProgram) feed(group string) {
	var sofar []producertest.Scene
	for n := 0; n < 30; {
		events := make([]producertest.Scene, 1+s.intN(6))
		for i := range events {
			events[i] = producertest.Scene{ID: fmt.Sprintf("%s-%d", group, n), PathRow: group, Acquired: producertest.Sample.Acquired.Add(time.Duration(n) * time.Second)}
			n++
			switch s.intN(20) {
			case 0:
				events[i].Cloud = 66 // breaks SF001
			case 1, 2:
				if len(sofar) > 0 {
					events[i] = sofar[s.intN(len(sofar))] // a replay
				}
			case 3:
				if len(sofar) > 0 {
					events[i] = sofar[s.intN(len(sofar))]
					events[i].Cloud = 33 // another payload: a conflict with the key of the earlier event
				}
			}
			sofar = append(sofar, events[i])
		}
		s.send(group, events)
		if s.chance(5) {
			time.Sleep(time.Duration(s.intN(500)) * time.Millisecond)
		}
	}
}

func (s *randomProgram) send(group string, events []producertest.Scene) {
	ctx := s.t.Context()
	if s.chance(5) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(s.intN(3000))*time.Millisecond)
		s.t.Cleanup(cancel)
	}
	records := make([]*submitted, len(events))
	for i, e := range events {
		records[i] = &submitted{}
		if msg, err := s.p.Build(e); err == nil {
			records[i].body = msg.Body
		}
		s.mu.Lock()
		s.submissions[group] = append(s.submissions[group], records[i])
		s.mu.Unlock()
	}
	end := func(i int, r sqsfifo.Receipt, err error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		records[i].outcomes++
		records[i].receipt, records[i].err = r, err
	}
	switch s.intN(5) {
	case 0:
		for i, r := range s.p.SendBatch(ctx, events) {
			end(i, r.Receipt, r.Err)
		}
	case 1:
		for i, e := range events {
			r, err := s.p.Send(ctx, e)
			end(i, r, err)
		}
	case 2:
		for i, e := range events {
			msg, err := s.p.Build(e)
			if err != nil {
				end(i, sqsfifo.Receipt{}, err)
				continue
			}
			r, err := s.p.SendMessage(ctx, msg)
			end(i, r, err)
		}
	case 3:
		for i, e := range events {
			for {
				err := s.p.TrySend(ctx, e, func(r sqsfifo.Receipt, err error) { end(i, r, err) })
				if !errors.Is(err, sqsfifo.ErrBufferFull) {
					require.NoError(s.t, err)
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
		}
	default:
		for i, e := range events {
			s.p.SendAsync(ctx, e, func(r sqsfifo.Receipt, err error) { end(i, r, err) })
		}
		if s.chance(2) {
			_ = s.p.Flush(ctx)
		}
	}
}

// check compares the messages in the queue with the outcomes.
func (s *randomProgram) check() {
	stored := map[string][]sqstest.Message{} // by group
	bodies := map[string][]time.Time{}
	for _, m := range s.q.Messages() {
		stored[m.GroupID] = append(stored[m.GroupID], m)
		for _, at := range bodies[m.Body] {
			require.GreaterOrEqual(s.t, m.AcceptedAt.Sub(at), 5*time.Minute, "stored twice: %s", m.Body)
		}
		bodies[m.Body] = append(bodies[m.Body], m.AcceptedAt)
	}
	for group, hs := range s.submissions {
		maybe, replays := map[string]bool{}, map[string]int{}
		for i, h := range hs {
			require.Equal(s.t, 1, h.outcomes, "outcomes of event %d of group %s", i, group)
			var doubt *sqsfifo.InDoubtError
			switch {
			case h.err == nil:
				require.NotEmpty(s.t, bodies[h.body], "a receipt and no message: %s", h.body)
				maybe[h.body] = true
				if h.receipt.Duplicate {
					require.Positive(s.t, replays[h.body], "a duplicate of nothing: %s", h.body)
				}
			case errors.As(h.err, &doubt):
				maybe[h.body] = true
			}
			if h.body != "" {
				replays[h.body]++
			}
		}
		for _, m := range stored[group] {
			require.True(s.t, maybe[m.Body], "surely not stored, and there it is: %s", m.Body)
		}
		s.checkOrder(group, hs, stored[group])
	}
}

// checkOrder checks that SQS stores one group's messages in the order in which their
// events were submitted. For an event submitted several times, any of its submissions may
// fit. Events reported as overtaken are exempt.
func (s *randomProgram) checkOrder(group string, hs []*submitted, stored []sqstest.Message) {
	named := map[string]bool{}
	for _, h := range hs {
		if h.receipt.Overtaken || errors.Is(h.err, sqsfifo.ErrOvertaken) {
			require.Equal(s.t, sqsfifo.Runs, s.delivery.Order, "nothing is overtaken with Strict")
			named[h.body] = true
		}
	}
	next := 0
	for _, m := range stored {
		if named[m.Body] {
			continue
		}
		at := slices.IndexFunc(hs[next:], func(h *submitted) bool {
			var doubt *sqsfifo.InDoubtError
			return h.body == m.Body && (h.err == nil && !h.receipt.Duplicate || errors.As(h.err, &doubt))
		})
		require.GreaterOrEqual(s.t, at, 0, "group %s: %s was stored out of order", group, m.Body)
		next += at + 1
	}
}

// The randomProgram is also the SQS client of its producer. Each request passes through the
// following methods, which check it.

func (s *randomProgram) enter(groups ...string) (leave func()) {
	s.mu.Lock()
	for _, g := range slices.Compact(groups) {
		require.False(s.t, s.inCall[g], "two requests with group %s at once", g)
		s.inCall[g] = true
	}
	latency := time.Duration(s.rng.IntN(50)) * time.Millisecond
	s.mu.Unlock()
	time.Sleep(latency)
	return func() {
		time.Sleep(latency)
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, g := range groups {
			delete(s.inCall, g)
		}
	}
}

func (s *randomProgram) SendMessage(ctx context.Context, in *sqs.SendMessageInput, o ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	defer s.enter(*in.MessageGroupId)()
	return s.q.SendMessage(ctx, in, o...)
}

func (s *randomProgram) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, o ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	groups := make([]string, len(in.Entries))
	for i, e := range in.Entries {
		groups[i] = *e.MessageGroupId
	}
	if s.delivery.Order == sqsfifo.Strict {
		sorted := slices.Sorted(slices.Values(groups))
		require.Len(s.t, slices.Compact(sorted), len(groups), "two events of one group in a request")
	}
	defer s.enter(groups...)()
	return s.q.SendMessageBatch(ctx, in, o...)
}

func (s *randomProgram) GetQueueAttributes(ctx context.Context, in *sqs.GetQueueAttributesInput, o ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	return s.q.GetQueueAttributes(ctx, in, o...)
}
