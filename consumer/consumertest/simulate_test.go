package consumertest

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/consumer"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

var (
	seeds    = flag.Int("consumer.seeds", 2, "simulations of each kind")
	messages = flag.Int("consumer.messages", 600, "messages of a simulation")
)

// The kinds of simulations. They differ in the handler and in the store.
const (
	kindTx     = "HandleTx"
	kindLeast  = "AtLeastOnce"
	kindProbed = "AtMostOnce with a probe"
	kindParks  = "AtMostOnce that parks"
)

// Calls fail, receives are down for minutes, handlers fail and hang, and processes are killed,
// stopped for a while and shut down. Some messages come from a queue whose dead-letter queue
// this is, with high receive counts. Two consumers still handle each group in order and without
// overlap, and delete all messages; none is parked without a reason. The number of effects of a
// message follows the documentation of package consumer.
func TestSimulation(t *testing.T) {
	for _, kind := range []string{kindTx, kindLeast, kindProbed, kindParks} {
		t.Run(kind, func(t *testing.T) {
			var sum simulated
			for seed := range *seeds {
				s := simulate(t, kind, uint64(seed), *messages)
				for _, v := range s.violations {
					t.Errorf("seed %d: %s", seed, v)
				}
				sum.add(s)
				if t.Failed() {
					t.Fatalf("go test ./consumer/consumertest -run TestSimulation -consumer.seeds %d -consumer.messages %d", seed+1, *messages)
				}
			}
			t.Logf("%d messages, %d of them dead-lettered before, %d deliveries, %d kills, %d stops, %d shutdowns, %d outages, %d hanging calls, %d effects, %d of them repeated, %d parked, most receives %d",
				sum.messages, sum.deadLettered, sum.deliveries, sum.kills, sum.stops, sum.shutdowns, sum.outages, sum.hangs, sum.effects, sum.repeated, sum.parked, sum.most)
		})
	}
}

type simulated struct {
	violations                                             []string
	messages, deliveries, kills, effects, repeated, parked int
	most                                                   int
	happened
}

// happened counts what happened to the processes, messages and calls of a simulation.
type happened struct{ deadLettered, stops, shutdowns, outages, hangs int }

func (s *simulated) add(o simulated) {
	s.messages += o.messages
	s.deliveries += o.deliveries
	s.kills += o.kills
	s.effects += o.effects
	s.repeated += o.repeated
	s.parked += o.parked
	s.most = max(s.most, o.most)
	s.deadLettered += o.deadLettered
	s.stops += o.stops
	s.shutdowns += o.shutdowns
	s.outages += o.outages
	s.hangs += o.hangs
}

// simulation is one random run of TestSimulation, determined by a seed.
type simulation struct {
	*world
	kind  string
	store *idempotency.Memory
	db    *fakeDB

	chance  sync.Mutex
	rng     *rand.Rand
	deadly  bool
	kills   int
	effects map[string]int
	happened
	stopped map[*process]time.Time // end of a stop
	closing map[*process]bool      // shut down
}

// sendDeadLettered sends messages of a group through another queue, whose dead-letter queue is
// the queue of the simulation. They arrive with a receive count of three.
func (s *simulation) sendDeadLettered(source *sqstest.Queue, group string, n int) {
	s.mu.Lock()
	s.deadLettered += n
	s.mu.Unlock()
	s.sendTo(source, group, n)
	in := &sqs.ReceiveMessageInput{QueueUrl: aws.String(source.URL()), MaxNumberOfMessages: 10, VisibilityTimeout: 1}
	for empty := 0; empty < 3; time.Sleep(2 * time.Second) {
		out, err := source.ReceiveMessage(context.Background(), in)
		if err != nil {
			s.t.Error(err)
			return
		}
		if empty++; len(out.Messages) > 0 {
			empty = 0
		}
	}
}

// disturb shuts a process down, stops it for up to two minutes, or begins or ends an outage of
// receives, each with a small probability in a second.
func (s *simulation) disturb(p *process, faults func()) {
	s.mu.Lock()
	busy := time.Now().Before(s.stopped[p]) || s.closing[p] || p.killed.Load()
	s.mu.Unlock()
	if busy {
		return
	}
	switch s.random(1200) {
	case 0:
		p.cancel()
		s.mu.Lock()
		s.shutdowns++
		s.closing[p] = true
		s.mu.Unlock()
	case 1:
		s.mu.Lock()
		s.stops++
		s.stopped[p] = time.Now().Add(time.Duration(1+s.random(120)) * time.Second)
		s.mu.Unlock()
	case 2:
		s.mu.Lock()
		s.outages++
		s.mu.Unlock()
		s.queue.InjectRandomly(sqstest.ServerError().On(sqstest.ActionReceive), 1, 1)
		time.AfterFunc(time.Duration(s.random(300))*time.Second, faults)
	}
}

// waitWhileStopped holds a call of a stopped process.
func (s *simulation) waitWhileStopped(p *process) {
	s.mu.Lock()
	end := s.stopped[p]
	s.mu.Unlock()
	if !p.killed.Load() {
		time.Sleep(time.Until(end))
	}
}

func (s *simulation) random(n int) int {
	s.chance.Lock()
	defer s.chance.Unlock()
	return s.rng.IntN(n)
}

func simulate(t *testing.T, kind string, seed uint64, messages int) (out simulated) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &simulation{kind: kind, store: &idempotency.Memory{}, rng: rand.New(rand.NewPCG(seed, 7)), deadly: true, effects: map[string]int{}, stopped: map[*process]time.Time{}, closing: map[*process]bool{}}
		s.world = newWorld(t, s.consume, sqstest.Config{DiscardDeleted: true})
		s.db = newFakeDB(s)
		s.env.PerReceive = 1 + s.random(10)
		s.env.MaxMessages = 200
		s.endsAtCommit = kind == kindTx
		s.point = s.maybeKill
		source := s.newQueue(sqstest.Config{Name: "source.fifo", DeadLetterQueue: s.queue, MaxReceiveCount: 3})
		rate := 0.02 + 0.02*float64(s.random(4))
		faults := func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.queue.ClearFaults(); s.deadly {
				s.injectFaults(rate, seed)
			}
		}
		faults()
		go func() { // sends the messages of a few hours
			for sent := 0; sent < messages; sent += 20 {
				if group := s.random(18); group < 16 {
					s.send(fmt.Sprintf("g%d", group), 20)
				} else {
					s.sendDeadLettered(source, fmt.Sprintf("d%d", group), 20)
				}
				time.Sleep(time.Duration(s.random(20)) * time.Second)
			}
		}()
		running := []*process{s.start("a", s.handleRandomly), s.start("b", s.handleRandomly)}
		end := time.Now().Add(time.Duration(messages/20*10+600) * time.Second)
		for time.Now().Before(end) {
			time.Sleep(time.Second)
			for i, p := range running {
				select {
				case <-p.ended:
					running[i] = s.start(p.name, s.handleRandomly)
				default:
					s.disturb(p, faults)
				}
			}
		}
		s.mu.Lock()
		s.deadly = false
		clear(s.stopped)
		s.mu.Unlock()
		faults()
		for i, p := range running {
			if p.killed.Load() || s.closing[p] {
				<-p.ended
				running[i] = s.start(p.name, s.handleRandomly)
			}
		}
		for range 48 {
			time.Sleep(time.Hour)
			if len(s.left()) == 0 {
				break
			}
		}
		s.stop(running...)
		s.finished()
		s.db.close()
		out = s.result()
	})
	return out
}

func (s *simulation) result() (out simulated) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.position {
		n := s.effects[key]
		out.effects += n
		if n > 1 {
			out.repeated += n - 1
		}
		switch {
		case n > 1 && s.kind != kindLeast:
			s.fail("I3: the effect of %s happened %d times", key, n)
		case s.parkedBodies[key] > 0 && s.kind != kindParks:
			s.fail("I4: %s was parked without a reason", key)
		case n == 0 && s.parkedBodies[key] == 0:
			s.fail("I3: the effect of %s never happened", key)
		}
	}
	out.violations, out.messages, out.deliveries, out.kills, out.parked = s.errs, len(s.position), s.deliveries, s.kills, len(s.parkedBodies)
	out.most, out.happened = s.most, s.happened
	return out
}

// maybeKill is called at each step of a process. It waits while the process is stopped. In a
// deadly simulation it kills the process with a probability of 1 in 400.
func (s *simulation) maybeKill(p *process, step string) {
	if !strings.HasSuffix(step, "commit") { // package sql holds a mutex, so virtual time would stand still
		s.waitWhileStopped(p)
	}
	s.mu.Lock()
	deadly := s.deadly
	s.mu.Unlock()
	if !deadly || p.killed.Load() || s.random(400) > 0 {
		return
	}
	s.mu.Lock()
	s.kills++
	s.mu.Unlock()
	p.kill()
}

// handleRandomly is the handler. At random it takes long, fails, or kills its process
// before or after it adds the message's effect.
func (s *simulation) handleRandomly(ctx context.Context, p *process, d Delivery) error {
	span := time.Duration(s.random(300)) * time.Millisecond
	if s.random(200) == 0 {
		span = time.Duration(s.random(100)) * time.Second // longer than the visibility timeout
	}
	if s.random(300) == 0 {
		s.mu.Lock()
		s.hangs++
		s.mu.Unlock()
		<-ctx.Done()
	}
	if err := works(span)(ctx, p, d); err != nil {
		return consumer.NotDone(err)
	}
	switch s.random(100) {
	case 0, 1:
		return errors.New("not this time")
	case 2:
		return consumer.Defer(errors.New("closed"), 5*time.Second)
	}
	if s.maybeKill(p, "before the effect"); p.killed.Load() {
		return errKilled
	}
	if tx, ok := ctx.Value(txKey{}).(*sql.Tx); ok {
		_, err := tx.ExecContext(ctx, d.Body)
		return err
	}
	s.mu.Lock()
	s.effects[d.Body]++
	s.mu.Unlock()
	s.maybeKill(p, "after the effect")
	return nil
}

type txKey struct{}

// consume runs package consumer in a process.
func (s *simulation) consume(ctx context.Context, e Env) error {
	p := e.Client.(processClient).p
	c := consumer.Config[string]{
		QueueURL: e.QueueURL, Visibility: e.Visibility, PerReceive: e.PerReceive, Messages: e.MaxMessages, Groups: 8, Timeout: 3 * time.Minute,
		Decode: func(body string) (sqsfifo.Envelope[string], error) {
			return sqsfifo.Envelope[string]{DedupeKey: body, Payload: body}, nil
		},
		Failure:   consumer.Failure{Action: consumer.ActionPark, ParkingQueue: e.ParkingURL, Attempts: 50, MaxBackoff: 5 * time.Second},
		Telemetry: consumer.Telemetry{Logger: slog.New(slog.DiscardHandler)},
	}
	handle := func(ctx context.Context, m consumer.Message[string]) error {
		return e.Handle(ctx, Delivery{Group: m.Group, MessageID: m.MessageID, Body: m.Body})
	}
	switch s.kind {
	case kindTx:
		c.DB, c.Store = s.db.open(p), fakeTxStore{s.store, s.db}
		defer c.DB.Close()
		c.HandleTx = func(ctx context.Context, tx *sql.Tx, m consumer.Message[string]) error {
			return handle(context.WithValue(ctx, txKey{}, tx), m)
		}
	case kindLeast:
		c.Handle, c.Store = handle, mortalStore{s.store, p}
	default:
		c.Handle, c.Store, c.Guarantee = handle, mortalStore{s.store, p}, consumer.GuaranteeAtMostOnce
		c.Failure.Unresolved = consumer.ActionPark
		if s.kind == kindProbed {
			c.Probe = func(_ context.Context, m consumer.Message[string]) (bool, error) {
				s.mu.Lock()
				defer s.mu.Unlock()
				happened := s.effects[m.Body] > 0
				if happened {
					s.ended[m.Body] = true
				}
				return happened, nil
			}
		}
	}
	running, err := consumer.New(e.Client.(consumer.Client), c)
	if err != nil {
		return err
	}
	return running.Run(ctx)
}

// mortalStore is the access of one process to the common store. After a kill of the
// process, the calls return errKilled.
type mortalStore struct {
	idempotency.Store
	p *process
}

func (m mortalStore) Claim(ctx context.Context, c idempotency.Claim) (out idempotency.Outcome, err error) {
	m.p.w.point(m.p, "before a claim")
	if m.p.killed.Load() {
		return out, errKilled
	}
	out, err = m.Store.Claim(ctx, c)
	m.p.w.point(m.p, "after a claim")
	return out, err
}

func (m mortalStore) Finish(ctx context.Context, ref idempotency.Ref, e idempotency.Ending) error {
	m.p.w.point(m.p, "before the end of a claim")
	if m.p.killed.Load() {
		return errKilled
	}
	err := m.Store.Finish(ctx, ref, e)
	m.p.w.point(m.p, "after the end of a claim")
	return err
}

func (m mortalStore) Extend(ctx context.Context, ref idempotency.Ref, lease time.Duration) error {
	if m.p.killed.Load() {
		return errKilled
	}
	return m.Store.Extend(ctx, ref, lease)
}
