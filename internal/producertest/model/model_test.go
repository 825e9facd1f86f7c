package model

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/seedtest"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

var (
	modelSeeds = seedtest.Flags("model", "TestModel")
	modelBreak = flag.String("model.break", "", "late, lie or invent: makes the network dishonest, to see TestModel fail")
)

// TestModel runs random programs in virtual time. The method `check` compares the outcomes
// with the facts that modelWorld recorded. Two runs with one seed may differ slightly,
// because the order of goroutines and the jitter of delays are random.
func TestModel(t *testing.T) {
	var sum modelTotals
	n := modelSeeds.Run(t, 250, 60, func(t *testing.T, seed uint64) { newModelRun(t, seed).run(&sum) })
	t.Logf("%d seeds: %v", n, &sum)
}

// modelTotals has the sums over all seeds. Each seed is one random test program.
type modelTotals struct {
	submissions, attempts, accepted, receipts, duplicates, inDoubt, notStored, again, minutes atomic.Int64
}

func (s *modelTotals) String() string {
	return fmt.Sprintf("%d submissions, %d entries sent, %d accepted (%d of events that SQS had forgotten); %d receipts, %d of them duplicates, %d in doubt, %d not stored; %d virtual hours",
		s.submissions.Load(), s.attempts.Load(), s.accepted.Load(), s.again.Load(), s.receipts.Load(), s.duplicates.Load(), s.inDoubt.Load(), s.notStored.Load(), s.minutes.Load()/60)
}

// modelEvent is an event. Tag is the number of its submission. It travels in the message
// attribute "baggage", which the producer ignores when comparing events.
type modelEvent struct {
	Key   string `json:"key"`
	Group string `json:"group"`
	Value int    `json:"value"`
	Tag   int    `json:"-"`
	Route string `json:"-"`
}

const modelTag = "baggage"

// modelSub is a submission of an event, with its outcome.
type modelSub struct {
	id, producer int
	call, place  int // number of the SendBatch call, and index of the event in the call
	how          string
	e            modelEvent
	body         string

	// Values of modelWorld.clock when the call began, when it returned, and when the
	// outcome was reported.
	madeAt, returnedAt, reportedAt int
	made, reported                 time.Time
	outcomes                       int
	receipt                        sqsfifo.Receipt
	err                            error
}

// modelRun is one random program of TestModel.
type modelRun struct {
	*modelWorld
	t            *testing.T
	rng          *rand.Rand // used only by the goroutine of the test
	delivery     sqsfifo.Delivery
	producers    [][]*sqsfifo.Producer[modelEvent] // by process; guarded by mu
	processes    int                               // number of processes at the beginning
	successors   map[int]int                       // number of a closed process -> process started in its place; guarded by mu
	quit         chan struct{}
	actors       sync.WaitGroup
	identifiedAt sync.Map       // time of the last Identify call, by modelEvent.Tag
	slow         bool           // some callbacks block for seconds
	crowded      bool           // one slow request at a time, so that events wait in the buffer for minutes
	events       map[string]int // submissions of each event
	resumed      bool           // a call of Resume resumed at least one group
	closing      bool
	closed       []int // producers whose Close returned nil; guarded by mu
	cancels      []context.CancelFunc
}

func newModelRun(t *testing.T, seed uint64) *modelRun {
	rng := rand.New(rand.NewPCG(seed, 11))
	q, err := sqstest.NewQueue(sqstest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	m := &modelRun{modelWorld: newModelWorld(seed, q, rng), t: t, rng: rng, quit: make(chan struct{}), successors: map[int]int{}, events: map[string]int{}}
	m.sabotage = *modelBreak
	m.slow = rng.IntN(5) == 0
	m.delivery = sqsfifo.Delivery{
		Order:          sqsfifo.Order(rng.IntN(2)),
		OnGroupFailure: sqsfifo.GroupFailure(rng.IntN(3)),
		RetryFor:       []time.Duration{0, 2 * time.Second, 30 * time.Second, 10 * time.Minute}[rng.IntN(4)],
		Linger:         time.Duration(rng.IntN(3)) * 10 * time.Millisecond,
		InFlight:       []int{1, 2, 10, 64}[rng.IntN(4)],
		BufferEvents:   []int{1, 5, 50, 0}[rng.IntN(4)],
		Memory:         sqsfifo.Memory{DetectForeignDuplicates: rng.IntN(2) == 0},
	}
	if rng.IntN(12) == 0 {
		m.delivery.Memory.MaxKeys = 30
	}
	m.strict = m.delivery.Order == sqsfifo.OrderStrict
	if m.crowded = rng.IntN(6) == 0; m.crowded {
		m.delivery.InFlight = 1
		begin := time.Now()
		m.periods = append([]modelPeriod{{begin.Add(20 * time.Second), "fair"}, {begin.Add(15 * time.Minute), "slow"}}, m.periods...)
	}
	// DetectForeignDuplicates needs a correct wall clock, to compute the age of other
	// processes' messages.
	if m.on.setsClock {
		m.delivery.Memory.DetectForeignDuplicates = false
	}
	m.processes = 1 + rng.IntN(4)/3
	for range m.processes {
		m.begin(rng.IntN(4) == 0)
	}
	return m
}

// begin starts a simulated process and returns its number. If the parameter `two` is true,
// the process has two producers on one shared queue.
func (m *modelRun) begin(two bool) (process int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	process = len(m.producers)
	p, err := sqsfifo.NewProducer(&modelClient{m.modelWorld, process}, m.config(true))
	if err != nil {
		m.t.Fatal(err)
	}
	m.producers = append(m.producers, []*sqsfifo.Producer[modelEvent]{p})
	if two {
		if p, err = sqsfifo.NewProducerOn(p.Queue(), m.config(false)); err != nil {
			m.t.Fatal(err)
		}
		m.producers[process] = append(m.producers[process], p)
	}
	return process
}

func (m *modelRun) config(alone bool) sqsfifo.Config[modelEvent] {
	c := sqsfifo.Config[modelEvent]{
		Source: "kfm.test.model",
		Identify: func(e modelEvent) (sqsfifo.Identity, error) {
			m.identifiedAt.Store(e.Tag, m.on.now())
			return sqsfifo.Identity{DedupeKey: e.Key, Group: e.Group, Time: time.Unix(1e9, 0)}, nil
		},
		Attributes: func(e modelEvent) map[string]string {
			a := map[string]string{modelTag: strconv.Itoa(e.Tag)}
			if e.Route != "" {
				a["route"] = e.Route
			}
			return a
		},
	}
	if alone {
		c.QueueURL, c.Delivery = m.q.URL(), m.delivery
	}
	return c
}

// run runs the program. Feeders submit new events and copies, and each outcome may
// cause a resend. At the end the producers are closed, possibly with unfinished events.
func (m *modelRun) run(sum *modelTotals) {
	begin := time.Now()
	groups, steps := 1+m.rng.IntN(6), 5+m.rng.IntN(30)
	for p := range m.processes {
		for g := range groups {
			rng := rand.New(rand.NewPCG(m.seed, uint64(100+10*p+g)))
			m.spawn(func() { m.feed(rng, p, fmt.Sprintf("g%d", g), steps) })
		}
		if m.crowded || m.rng.IntN(8) == 0 {
			rng := rand.New(rand.NewPCG(m.seed, uint64(200+p)))
			m.spawn(func() { m.crowd(rng, p) })
		}
	}
	otherCalls := rand.New(rand.NewPCG(m.seed, 300))
	var others sync.WaitGroup
	others.Go(func() { m.callOtherMethods(otherCalls) })

	machine := rand.New(rand.NewPCG(m.seed, 400))
	restarts := machine.IntN(3) == 0
	stop := m.on.run(machine, func() {
		if restarts {
			m.restart(machine)
		}
	})

	ctx, cancel := m.t.Context(), context.CancelFunc(func() {})
	switch m.rng.IntN(3) {
	case 0:
		time.Sleep(20 * time.Minute)
	case 1:
		time.Sleep(time.Duration(m.rng.IntN(900)) * time.Second)
	case 2:
		time.Sleep(time.Duration(m.rng.IntN(900)) * time.Second)
		ctx, cancel = context.WithTimeout(ctx, time.Duration(m.rng.IntN(300))*100*time.Millisecond)
	}
	defer cancel()
	stop()
	m.mu.Lock()
	close(m.quit)
	m.closing = true
	m.mu.Unlock()
	for process := range m.processes {
		n := m.latest(process)
		m.checkClosed(n, ctx, m.producersOf(n)[0].Close(ctx))
	}
	m.actors.Wait()
	others.Wait()
	time.Sleep(modelLongestRequest + 30*time.Second) // until the last request of a client that ignores its context has ended
	for _, cancel := range m.cancels {
		cancel()
	}
	m.checkEmpty()
	m.check(sum)
	sum.minutes.Add(int64(m.on.now().Sub(begin) / time.Minute))
	m.report()
}
