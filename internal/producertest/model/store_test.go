package model

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/seedtest"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

var (
	storeSeeds = seedtest.Flags("store", "TestStoreModel")
	storeBreak = flag.String("store.break", "", "forget or late: a store that forgets claims, or a network that delivers late, to see TestStoreModel fail")
)

var (
	errStoreDown = errors.New("the database is down")
	errCrashed   = errors.New("the process has crashed")
)

// TestStoreModel runs random programs in virtual time: several processes share one store.
// The method `check` verifies the results. Two runs with one seed may differ slightly,
// because the order of goroutines and the jitter of delays are random.
func TestStoreModel(t *testing.T) {
	var sum storeTotals
	n := storeSeeds.Run(t, 300, 60, func(t *testing.T, seed uint64) { newStoreWorld(t, seed).run(&sum) })
	t.Logf("%d seeds: %v", n, &sum)
}

// storeTotals has the sums over all seeds. Each seed is one random test program.
type storeTotals struct {
	submissions, accepted, receipts, duplicates, inDoubt, notStored, conflicts, held, crashes, faults, minutes atomic.Int64
}

func (s *storeTotals) String() string {
	return fmt.Sprintf("%d submissions, %d crashes, %d store faults, %d accepted; %d receipts, %d of them duplicates, %d in doubt (%d held), %d not stored, %d conflicts; %d virtual hours",
		s.submissions.Load(), s.crashes.Load(), s.faults.Load(), s.accepted.Load(), s.receipts.Load(), s.duplicates.Load(), s.inDoubt.Load(), s.held.Load(),
		s.notStored.Load(), s.conflicts.Load(), s.minutes.Load()/60)
}

// storeEvent is an event. Group and time may change between two submissions, because the
// payload does not contain them. Tag identifies the submission, in an attribute that the
// producer ignores.
type storeEvent struct {
	Key   string `json:"key"`
	Value int    `json:"value"`
	Group string `json:"-"`
	At    int    `json:"-"`
	Tag   int    `json:"-"`
}

// storeSub is one submission.
type storeSub struct {
	id      int
	process *storeProcess
	how     string
	e       storeEvent
	made    time.Time

	// Values of storeWorld.clock when the submission was recorded, and when its call of
	// SendAsync or TrySend returned.
	madeAt, returnedAt int

	call int // equal for events submitted together

	outcomes int
	reported time.Time
	receipt  sqsfifo.Receipt
	err      error
	last     bool // submitted at the end, when the faults are over
}

// storeAccept is a message stored by SQS.
type storeAccept struct {
	sub      *storeSub
	at       time.Time
	until    time.Time // Record.Expires of the event at its last granted claim
	id, body string
}

// storeWorld has the queue, the store and the network of a random program, and records
// what really happened.
type storeWorld struct {
	t    *testing.T
	seed uint64
	q    *sqstest.Queue
	on   *modelMachine
	mem  *idempotency.Memory
	ttl  time.Duration

	delivery      sqsfifo.Delivery
	store         sqsfifo.StoreConfig
	mayStoreTwice bool // the configuration has FailOpen or UnresolvedResend

	lossy, faulty, crashy float64

	mu      sync.Mutex
	rng     *rand.Rand
	clock   int
	calm    bool // no more faults
	down    time.Time
	mute    time.Time // until then, the store loses all its answers
	subs    []*storeSub
	accepts []*storeAccept
	known   map[string]*storeAccept // by message ID

	// recorded has the message IDs and dedupe keys of all results, because the store deletes
	// expired records.
	recorded map[string]bool
	until    map[string]time.Time // Record.Expires at the last granted claim, by key

	started int
	crashes int
	faults  int
	notes   []storeNote
	wrong   []string
	actors  sync.WaitGroup
}

func newStoreWorld(t *testing.T, seed uint64) *storeWorld {
	q, err := sqstest.NewQueue(sqstest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(seed, 23))
	w := &storeWorld{
		t: t, seed: seed, q: q, on: newModelMachine(seed, q), mem: new(idempotency.Memory), rng: rng, known: map[string]*storeAccept{}, recorded: map[string]bool{}, until: map[string]time.Time{},
		ttl: []time.Duration{15 * time.Minute, time.Hour, 24 * time.Hour}[rng.IntN(3)],
	}
	w.mem.Now = w.on.now
	w.lossy = []float64{0, 0.05, 0.2, 0.4}[rng.IntN(4)]
	w.faulty = []float64{0, 0.02, 0.1, 0.3}[rng.IntN(4)]
	w.crashy = []float64{0, 0.005, 0.02, 0.05}[rng.IntN(4)]
	w.delivery = sqsfifo.Delivery{
		Order:          sqsfifo.Order(rng.IntN(2)),
		OnGroupFailure: sqsfifo.GroupFailure(rng.IntN(3)),
		RetryFor:       []time.Duration{0, 2 * time.Second, 30 * time.Second}[rng.IntN(3)],
		InFlight:       []int{1, 2, 10}[rng.IntN(3)],
	}
	w.store = sqsfifo.StoreConfig{TTL: w.ttl, Timeout: []time.Duration{0, time.Second}[rng.IntN(2)]}
	switch rng.IntN(10) {
	case 0:
		w.store.FailOpen, w.mayStoreTwice = true, true
	case 1:
		w.store.Unresolved, w.mayStoreTwice = sqsfifo.UnresolvedResend, true
	}
	return w
}

// storeProcess simulates a process with one producer. A crash ends the process for good.
type storeProcess struct {
	*sqsfifo.Producer[storeEvent]
	w    *storeWorld
	n    int
	dead bool // guarded by storeWorld.mu
}

func (w *storeWorld) start() *storeProcess {
	w.mu.Lock()
	w.started++
	p := &storeProcess{w: w, n: w.started}
	w.mu.Unlock()
	c := sqsfifo.Config[storeEvent]{
		QueueURL: w.q.URL(), Source: "kfm.test.store", Delivery: w.delivery, Store: w.store,
		Identify: func(e storeEvent) (sqsfifo.Identity, error) {
			return sqsfifo.Identity{DedupeKey: e.Key, Group: e.Group, Time: time.Unix(int64(1e9+e.At), 0)}, nil
		},
		Attributes: func(e storeEvent) map[string]string { return map[string]string{modelTag: strconv.Itoa(e.Tag)} },
	}
	c.Store.Store = &storeOfProcess{Memory: w.mem, p: p}
	producer, err := sqsfifo.NewProducer(&storeClient{p}, c)
	if err != nil {
		w.t.Fatal(err)
	}
	p.Producer = producer
	return p
}

// crash disconnects a process from the queue and the store for good. The caller holds the
// lock.
func (p *storeProcess) crash() {
	if p.dead || p.w.calm {
		return
	}
	p.dead = true
	p.w.crashes++
	// Close only ends the goroutines: the producer cannot reach the queue or the store.
	p.w.actors.Go(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = p.Close(ctx)
	})
}

// chance returns true with probability p. If w.calm is set, no more faults occur, and
// chance returns false. The caller holds the lock.
func (w *storeWorld) chance(p float64) bool { return !w.calm && w.rng.Float64() < p }

// millis returns a random duration below n ms. The caller holds the lock.
func (w *storeWorld) millis(n int) time.Duration {
	return time.Duration(w.rng.IntN(n)) * time.Millisecond
}

// storeOfProcess is one process's connection to the store.
type storeOfProcess struct {
	*idempotency.Memory
	p *storeProcess
}

// do calls the store with random faults. The call may take long, or fail before or
// after it takes effect, and the process may crash during the call.
func (s *storeOfProcess) do(ctx context.Context, f func() error) error {
	w := s.p.w
	w.mu.Lock()
	if s.p.dead {
		w.mu.Unlock()
		return errCrashed
	}
	took := w.millis(10)
	before, after, ambiguous := w.chance(w.faulty) || time.Now().Before(w.down), w.chance(w.faulty) || time.Now().Before(w.mute), w.rng.IntN(2) == 0
	dies, early := w.chance(w.crashy), w.rng.IntN(2) == 0
	if w.chance(w.faulty / 4) {
		took = w.millis(8000)
	}
	if before || after {
		w.faults++
	}
	if dies && early {
		s.p.crash()
		w.mu.Unlock()
		return errCrashed
	}
	w.mu.Unlock()
	timer := time.NewTimer(took)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	if before {
		return errStoreDown
	}
	w.mu.Lock()
	dead := s.p.dead
	w.mu.Unlock()
	if dead {
		return errCrashed
	}
	if err := f(); err != nil {
		return err
	}
	switch {
	case dies:
		w.mu.Lock()
		defer w.mu.Unlock()
		s.p.crash()
		return errCrashed
	case after && ambiguous:
		return fmt.Errorf("%w: %w", idempotency.ErrAmbiguous, errStoreDown)
	case after:
		return idempotency.ErrAmbiguous
	}
	return nil
}

func (s *storeOfProcess) ClaimBatch(ctx context.Context, claims []idempotency.Claim) (out []idempotency.Outcome, err error) {
	err = s.do(ctx, func() (err error) {
		if *storeBreak == "forget" {
			for i := range claims {
				claims[i].Key.Value += idempotency.NewToken().String()
			}
		}
		out, err = s.Memory.ClaimBatch(context.Background(), claims)
		s.p.w.mu.Lock()
		defer s.p.w.mu.Unlock()
		for i := range out {
			if out[i].Decision.Granted() {
				s.p.w.until[claims[i].Key.Value] = out[i].Record.Expires
			}
			s.p.w.note(claims[i].Key.Value, "process %d claims: %v, fence %d, record until %v", s.p.n, out[i].Decision, out[i].Record.Fence, out[i].Record.LeaseUntil.Sub(s.p.w.on.start))
		}
		return err
	})
	return out, err
}

func (s *storeOfProcess) Lookup(ctx context.Context, keys ...idempotency.Key) (out []idempotency.Record, err error) {
	err = s.do(ctx, func() (err error) {
		out, err = s.Memory.Lookup(context.Background(), keys...)
		return err
	})
	return out, err
}

func (s *storeOfProcess) Finish(ctx context.Context, ref idempotency.Ref, t idempotency.Ending) error {
	return s.do(ctx, func() error {
		err := s.Memory.Finish(context.Background(), ref, t)
		s.p.w.mu.Lock()
		s.p.w.note(ref.Key.Value, "process %d ends fence %d with %v: %v", s.p.n, ref.Fence, t, err)
		s.p.w.mu.Unlock()
		if result, ok := t.Result(); ok && err == nil {
			s.p.w.mu.Lock()
			defer s.p.w.mu.Unlock()
			s.p.w.recorded[result.MessageID] = true
			s.p.w.recorded[ref.Key.Value] = true
		}
		return err
	})
}

// run runs the random program: processes submit events, crash and restart. At the end it
// calls finish and check.
func (w *storeWorld) run(sum *storeTotals) {
	begin := time.Now()
	processes := make([]*storeProcess, 1+w.rng.IntN(3))
	for i := range processes {
		processes[i] = w.start()
	}
	stop := w.on.run(rand.New(rand.NewPCG(w.seed, 31)), func() {})
	keys, steps := 2+w.rng.IntN(10), 20+w.rng.IntN(60)
	for range steps {
		w.mu.Lock()
		i := w.rng.IntN(len(processes))
		p := processes[i]
		if w.chance(w.crashy * 2) {
			p.crash()
		}
		restart := p.dead
		if w.chance(0.03) {
			w.down = time.Now().Add(time.Duration(w.rng.IntN(120)) * time.Second)
		}
		if w.chance(0.02) {
			w.mute = time.Now().Add(time.Duration(w.rng.IntN(600)) * time.Second)
		}
		var events []storeEvent
		for range 1 + w.rng.IntN(4) {
			n := w.rng.IntN(keys)
			e := storeEvent{Key: fmt.Sprintf("key-%d", n), Value: n, Group: fmt.Sprintf("g%d", n%3)}
			switch w.rng.IntN(12) {
			case 0:
				e.At = w.rng.IntN(3)
			case 1:
				e.Group = "drifted"
			case 2:
				e.Value += 100 // a different event with this key
			}
			events = append(events, e)
		}
		pause := []time.Duration{0, w.millis(100), w.millis(5000), w.millis(60_000), w.millis(400_000)}[w.rng.IntN(5)]
		if w.rng.IntN(40) == 0 {
			pause = w.ttl
		}
		w.mu.Unlock()
		if restart {
			p = w.start()
			processes[i] = p
		}
		w.submit(p, events)
		time.Sleep(pause)
	}
	stop()
	w.finish(processes, keys)
	w.check(sum)
	sum.minutes.Add(int64(w.on.now().Sub(begin) / time.Minute))
	if len(w.wrong) > 0 {
		w.t.Errorf("%d violations; again with: go test -run '^TestStoreModel$' ./internal/producertest/model -store.seed %d\n%+v %+v", len(w.wrong), w.seed, w.delivery, w.store)
		w.t.Log(strings.Join(w.on.history, "\n"))
		for _, text := range w.wrong[:min(len(w.wrong), 5)] {
			var b strings.Builder
			for _, n := range w.notes {
				if strings.Contains(text, n.key) {
					fmt.Fprintln(&b, n.text)
				}
			}
			w.t.Logf("%s\n%s", text, &b)
		}
	}
}

// finish closes all live processes and sends every event again without faults.
func (w *storeWorld) finish(processes []*storeProcess, keys int) {
	w.mu.Lock()
	closing := w.rng.IntN(3) > 0
	w.calm = w.rng.IntN(2) == 0
	w.mu.Unlock()
	for _, p := range processes {
		w.mu.Lock()
		dead := p.dead
		if !closing {
			p.crash()
		}
		w.mu.Unlock()
		if !dead && closing {
			_ = p.Close(context.Background())
		}
	}
	w.actors.Wait()
	w.mu.Lock()
	w.calm, w.down, w.mute = true, time.Time{}, time.Time{}
	wait := []time.Duration{31 * time.Second, 4 * time.Minute, 10 * time.Minute}[w.rng.IntN(3)]
	w.mu.Unlock()
	for range 600 { // a process that still lives may claim an event until its outcome
		if w.quiet() {
			break
		}
		time.Sleep(time.Second)
	}
	time.Sleep(wait)
	p := w.start()
	for n := range keys {
		e := storeEvent{Key: fmt.Sprintf("key-%d", n), Value: n, Group: fmt.Sprintf("g%d", n%3)}
		s := w.sub(p, "Send", e)
		s.last = true
		r, err := p.Send(w.t.Context(), s.e)
		w.end(s, r, err)
		p.ResumeAll()
	}
	if err := p.Close(context.Background()); err != nil {
		w.fail("close of the last process: %v", err)
	}
	w.actors.Wait()
	for _, p := range processes { // processes not closed yet
		_ = p.Close(context.Background())
	}
	time.Sleep(modelLongestRequest + time.Minute)
	synctest.Wait()
}

// quiet reports whether each submission has its outcome.
func (w *storeWorld) quiet() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !slices.ContainsFunc(w.subs, func(s *storeSub) bool { return s.outcomes == 0 })
}

func (w *storeWorld) sub(p *storeProcess, how string, e storeEvent) *storeSub {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clock++
	s := &storeSub{id: len(w.subs), process: p, how: how, e: e, made: w.on.now(), madeAt: w.clock}
	s.e.Tag = s.id
	w.subs = append(w.subs, s)
	w.note(e.Key, "submission %d of value %d in %s by %s, process %d", s.id, e.Value, e.Group, how, p.n)
	return s
}

// callReturned records that the call of submission s has returned. A submission made
// after the return counts as later than s.
func (w *storeWorld) callReturned(s *storeSub) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clock++
	s.returnedAt = w.clock
}

func (s *storeSub) precedes(o *storeSub) bool {
	return s.call == o.call && s.id < o.id || s.returnedAt > 0 && s.returnedAt < o.madeAt
}

// submit submits events by a random method.
func (w *storeWorld) submit(p *storeProcess, events []storeEvent) {
	w.mu.Lock()
	how := []string{"SendAsync", "SendBatch", "Send", "TrySend"}[w.rng.IntN(4)]
	ctx, cancel := w.t.Context(), context.CancelFunc(func() {})
	if w.rng.IntN(3) == 0 {
		ctx, cancel = context.WithTimeout(ctx, w.millis([]int{10, 1000, 60_000}[w.rng.IntN(3)]))
	}
	wait := w.rng.IntN(2) == 0
	w.mu.Unlock()
	var left atomic.Int64
	left.Store(int64(len(events)))
	done := func(s *storeSub) func(sqsfifo.Receipt, error) {
		return func(r sqsfifo.Receipt, err error) {
			w.end(s, r, err)
			if left.Add(-1) == 0 {
				cancel()
			}
		}
	}
	subs := make([]*storeSub, len(events))
	for i, e := range events {
		subs[i] = w.sub(p, how, e)
		subs[i].call = subs[0].id + 1
	}
	send := func() {
		switch how {
		case "SendAsync":
			for _, s := range subs {
				p.SendAsync(ctx, s.e, done(s))
				w.callReturned(s)
			}
		case "TrySend":
			for _, s := range subs {
				if err := p.TrySend(ctx, s.e, done(s)); err != nil {
					done(s)(sqsfifo.Receipt{}, err)
				}
				w.callReturned(s)
			}
		case "Send":
			for _, s := range subs {
				s.made = w.on.now()
				r, err := p.Send(ctx, s.e)
				done(s)(r, err)
			}
		case "SendBatch":
			var all []storeEvent
			for _, s := range subs {
				all = append(all, s.e)
			}
			for i, r := range p.SendBatch(ctx, all) {
				done(subs[i])(r.Receipt, r.Err)
			}
		}
	}
	if wait || how == "TrySend" {
		send()
		return
	}
	w.actors.Go(send)
}

// end() records a submission's outcome. For a crashed process it only checks that there
// is at most one.
func (w *storeWorld) end(s *storeSub, r sqsfifo.Receipt, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clock++
	if s.outcomes++; s.outcomes > 1 {
		w.addViolation("submission %d of %s: %d outcomes", s.id, s.e.Key, s.outcomes)
	}
	w.note(s.e.Key, "submission %d: %+v %v", s.id, r, err)
	if s.process.dead {
		return
	}
	s.reported, s.receipt, s.err = w.on.now(), r, err
	has := w.recorded[r.MessageID] || (r.MessageID == "" || w.mayStoreTwice) && w.recorded[s.e.Key]
	if err == nil && !r.Unrecorded && !has {
		w.addViolation("submission %d of %s has a receipt, and the store never had its result", s.id, s.e.Key)
	}
}

func (w *storeWorld) fail(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.addViolation(format, args...)
}

// storeNote is a line of an event's history.
type storeNote struct{ key, text string }

// note adds a line to the history of a dedupe key. The caller holds the lock.
func (w *storeWorld) note(key, format string, args ...any) {
	at := w.on.now().Sub(w.on.start)
	w.notes = append(w.notes, storeNote{key, fmt.Sprintf("%12.3f s  ", at.Seconds()) + fmt.Sprintf(format, args...)})
}

// addViolation records a violation. The caller holds the lock.
func (w *storeWorld) addViolation(format string, args ...any) {
	w.wrong = append(w.wrong, fmt.Sprintf(format, args...))
}

func isUnresolved(err error) bool {
	var held *idempotency.UnresolvedError
	return errors.As(err, &held)
}
