package systemtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// event is an event that a producer process sends.
type event struct {
	Group  string `json:"group"`
	Number int    `json:"number"` // position in its group
}

func (e event) key() string { return fmt.Sprintf("%s|%d", e.Group, e.Number) }

// world is the part of the simulation that outlives processes: sources with their
// acknowledgements, store, queue, the consumers' database, and a record of what really
// happened.
type world struct {
	t     *testing.T
	seed  uint64
	queue *sqstest.Queue

	storage worldStorage
	store   idempotency.Store // connection of the operator and the checks
	witness *witness

	groups []string
	length int // number of events in each group

	// odds maps the name of a step to the probability of a fault or crash at the step.
	odds     map[string]float64
	sabotage string

	// faultsUntil is the end of the faults and crashes. Six hours later, an unfinished run
	// counts as stuck.
	faultsUntil time.Time

	// If twoProducers is set, two producer processes send the events of the same source
	// simultaneously. The library then promises no order.
	twoProducers bool

	mu         sync.Mutex
	faultsOver bool // true after the time faultsUntil
	rng        *rand.Rand
	done       map[string]int   // by group: number of events marked as sent
	effects    map[string][]int // by group: numbers of the handled events, in the order in which they were handled
	receipts   map[string]string
	notes      []note
	wrong      []string
	totals     totals
}

// totals counts the events and faults of a run, or of the runs of all seeds.
type totals struct {
	events, crashes, requests, lost, storeFaults, ambiguous, duplicates, inDoubt, resolved, redelivered, entries int
}

func (s *totals) add(o totals) {
	s.events += o.events
	s.crashes += o.crashes
	s.requests += o.requests
	s.lost += o.lost
	s.storeFaults += o.storeFaults
	s.ambiguous += o.ambiguous
	s.duplicates += o.duplicates
	s.inDoubt += o.inDoubt
	s.resolved += o.resolved
	s.redelivered += o.redelivered
	s.entries += o.entries
}

type note struct {
	at   time.Time
	key  string
	what string
}

// steps has the points at which a fault or crash may happen. A claim is ClaimBatch or
// Lookup, an extension is Extend, an ending is Finish.
var steps = []string{
	"crash before a claim", "crash after a claim", "crash before an extension", "crash after an extension", "crash before an ending", "crash after an ending",
	"crash before a request", "crash during a request", "crash after a request",
	"crash before an effect", "crash after an effect", "crash before a deletion", "crash after a deletion",
	"store fails", "store is ambiguous", "store is ambiguous after its commit", "store is slow",
	"request is dropped", "answer is lost", "request is late", "throttled", "black hole", "fails and stores",
	"deletion is lost",
}

func newWorld(t *testing.T, seed uint64, sabotage string, open newStorage) *world {
	rng := rand.New(rand.NewPCG(seed, 1))
	queue, err := sqstest.NewQueue(sqstest.Config{VisibilityTimeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	// The store's clock differs from the processes' clock.
	skew := time.Duration(rng.IntN(21)-10) * time.Second
	w := &world{
		t: t, seed: seed, queue: queue, rng: rng, sabotage: sabotage,
		storage: open(t, func() time.Time { return time.Now().Add(skew) }),
		length:  3 + rng.IntN(12), twoProducers: rng.IntN(4) == 0,
		odds: map[string]float64{}, done: map[string]int{}, effects: map[string][]int{}, receipts: map[string]string{},
	}
	w.witness = &witness{w: w, claims: map[claimed]*claimAnswers{}}
	w.store = w.connect()
	for g := range 1 + rng.IntN(4) {
		w.groups = append(w.groups, fmt.Sprintf("g%d", g))
	}
	for _, step := range steps {
		w.odds[step] = []float64{0, 0.01, 0.03, 0.1}[rng.IntN(4)]
	}
	w.totals.events = len(w.groups) * w.length
	return w
}

// connect returns a connection to the store. The caller must call disconnect.
func (w *world) connect() idempotency.Store {
	s, err := w.storage.Open()
	if err != nil {
		w.t.Fatal(err)
	}
	if w.storage.Ledger == nil {
		return s
	}
	return watched{s, w.witness}
}

func (w *world) disconnect(s idempotency.Store) {
	if v, ok := s.(watched); ok {
		s = v.Store
	}
	if c, ok := s.(io.Closer); ok {
		if err := c.Close(); err != nil {
			w.fail("", "close the store: %v", err)
		}
	}
}

// happens decides at random whether the fault or crash of a step happens.
func (w *world) happens(step string) bool {
	odds, known := w.odds[step]
	if !known {
		panic("no step " + step)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.faultsOver && w.rng.Float64() < odds
}

// span returns a random duration d with 0 <= d < limit.
func (w *world) span(limit time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Duration(w.rng.Int64N(int64(limit)))
}

func (w *world) count(n *int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*n++
}

func (w *world) note(key, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notes = append(w.notes, note{time.Now(), key, fmt.Sprintf(format, args...)})
}

func (w *world) fail(key, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrong = append(w.wrong, key+"\x00"+fmt.Sprintf(format, args...))
}

// finished reports whether every event has a receipt and an effect. It also returns true
// if the run is stuck, that is, six hours after the last fault.
func (w *world) finished() bool {
	if time.Since(w.faultsUntil) > 6*time.Hour {
		return true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, g := range w.groups {
		if w.done[g] < w.length || len(w.effects[g]) < w.length {
			return false
		}
	}
	return true
}

// check checks the promises of the library: see the package comment.
func (w *world) check() {
	if w.storage.Ledger != nil {
		w.witness.check(w.store.Scan(context.Background(), idempotency.Filter{}))
	}
	stored := map[string][]sqstest.Message{}
	for _, m := range w.queue.Messages() {
		key := keyOfBody(w.t, m.Body)
		stored[key] = append(stored[key], m)
	}
	for _, g := range w.groups {
		if n := w.done[g]; n < w.length {
			w.fail(event{g, n}.key(), "has no receipt, hours after the last fault")
		}
		times := map[int]int{}
		last := -1
		for _, n := range w.effects[g] {
			times[n]++
			if n < last && !w.twoProducers {
				w.fail(event{g, n}.key(), "its effect came after that of event %d", last)
			}
			last = max(last, n)
		}
		for n := range w.length {
			key := event{g, n}.key()
			if times[n] != 1 {
				w.fail(key, "%d effects", times[n])
			}
			switch ms := stored[key]; {
			case len(ms) != 1:
				w.fail(key, "stored %d times", len(ms))
			case w.receipts[key] != "" && w.receipts[key] != ms[0].MessageID:
				w.fail(key, "the receipt names message %s, the queue has %s", w.receipts[key], ms[0].MessageID)
			}
		}
	}
}

// report prints the first three broken promises, each with the history of the event
// concerned.
func (w *world) report() {
	test, _, _ := strings.Cut(w.t.Name(), "/")
	for _, text := range w.wrong[:min(len(w.wrong), 3)] {
		key, text, _ := strings.Cut(text, "\x00")
		var b strings.Builder
		fmt.Fprintf(&b, "event %s: %s; again with: go test -run '^%s$' -system.seed %d\n", key, text, test, w.seed)
		for _, n := range w.notes {
			if n.key == key || n.key == "" {
				fmt.Fprintf(&b, "  %10.3f s  %s\n", n.at.Sub(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).Seconds(), n.what)
			}
		}
		w.t.Error(b.String())
	}
}

var errDead = errors.New("the process is dead")

// process is a program that may be killed at any step. A dead process has no effect on
// the world.
type process struct {
	w      *world
	name   string
	store  *handle
	alive  context.Context // ends when the process dies
	cancel context.CancelFunc
	once   sync.Once
}

func (w *world) newProcess(name string) *process {
	p := &process{w: w, name: name}
	p.alive, p.cancel = context.WithCancel(context.Background())
	p.store = &handle{p, w.connect()}
	return p
}

// end ends the remaining goroutines of the process and its connection to the store.
func (p *process) end() {
	p.once.Do(p.cancel)
	p.w.disconnect(p.store.s)
	if p.w.storage.Ledger != nil {
		p.w.witness.saveHead()
	}
}

func (p *process) kill(step string) {
	p.once.Do(func() {
		p.w.count(&p.w.totals.crashes)
		p.w.note("", "%s dies: %s", p.name, step)
		p.cancel()
	})
}

func (p *process) dead() bool { return p.alive.Err() != nil }

// crash kills the process with the probability of the step. It reports whether the
// process is dead, now or since an earlier step.
func (p *process) crash(step string) bool {
	if !p.dead() && p.w.happens(step) {
		p.kill(step)
	}
	return p.dead()
}

// sleep waits for d, or returns false early if the process dies.
func (p *process) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return !p.dead()
	case <-p.alive.Done():
		return false
	}
}

func keyOfBody(t *testing.T, body string) string {
	var e struct {
		Key string `json:"dedupe_key"`
	}
	if err := json.Unmarshal([]byte(body), &e); err != nil {
		t.Fatal(err)
	}
	return e.Key
}
