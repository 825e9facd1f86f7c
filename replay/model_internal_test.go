package replay

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

var (
	modelSeeds = flag.Int("model.seeds", 400, "random programs of TestModel")
	modelSeed  = flag.Uint64("model.seed", 0, "the one seed to run")
)

// world simulates a queue, a store and processes that crash, in virtual time. The seed decides
// everything except the order of goroutines.
type world struct {
	t   *testing.T
	rng *rand.Rand

	mu   sync.Mutex // guards the fields below, which several goroutines use
	dead bool       // the running process has crashed
	life int        // steps until the process crashes; negative for no crash

	idempotency.Memory // outlives the processes

	accepted  map[string]time.Time // time of acceptance, by body
	delivered []string             // dedupe keys in the order of storage
	resent    int                  // messages sent again within the window
	faults    bool
}

var errDead = errors.New("the process is dead")

// step is called at each point at which the process may crash. It reports whether the
// process has crashed.
func (w *world) step() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.life--; w.life == 0 {
		w.dead = true
	}
	return w.dead
}

// write makes a change of the store. If the process crashes at this moment, the change is made
// or not.
func (w *world) write(change func() error) error {
	w.mu.Lock()
	dead := w.dead
	w.mu.Unlock()
	if dead {
		return errDead
	}
	if w.step() {
		if w.random(2) == 0 {
			_ = change()
		}
		return errDead
	}
	return change()
}

func (w *world) random(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rng.IntN(n)
}

// Claim implements [idempotency.Store].
func (w *world) Claim(ctx context.Context, c idempotency.Claim) (out idempotency.Outcome, err error) {
	err = w.write(func() error { out, err = w.Memory.Claim(ctx, c); return err })
	return out, err
}

// Finish implements [idempotency.Store].
func (w *world) Finish(ctx context.Context, ref idempotency.Ref, e idempotency.Ending) error {
	return w.write(func() error { return w.Memory.Finish(ctx, ref, e) })
}

// SendMessageAsync simulates the producer and SQS. A message takes up to ten seconds. It
// may be refused, or be stored without an answer.
func (w *world) SendMessageAsync(ctx context.Context, m *sqsfifo.Message, done func(sqsfifo.Receipt, error)) {
	body, key := m.Body, m.DedupeKey
	there, back := time.Duration(w.random(5000))*time.Millisecond, time.Duration(w.random(5000))*time.Millisecond
	chance := 9
	if w.faults {
		chance = w.random(10)
	}
	survives := w.random(2) == 0 // whether SQS stores the message when the sender crashes
	go func() {
		notStored := &sqsfifo.NotStoredError{Err: errors.New("refused")}
		inDoubt := &sqsfifo.InDoubtError{Err: errors.New("no answer")}
		if w.step() && !survives || ctx.Err() != nil {
			done(sqsfifo.Receipt{}, notStored)
			return
		}
		select {
		case <-ctx.Done(): // the send is cancelled, but SQS may have the message already
			if survives {
				w.store(body, key)
			}
			done(sqsfifo.Receipt{}, inDoubt)
			return
		case <-time.After(there):
		}
		w.mu.Lock()
		dead := w.dead
		w.mu.Unlock()
		if dead && !survives {
			done(sqsfifo.Receipt{}, inDoubt)
			return
		}
		if chance == 0 {
			done(sqsfifo.Receipt{}, notStored)
			return
		}
		w.store(body, key)
		w.step()
		time.Sleep(back)
		if w.step() || chance == 1 {
			done(sqsfifo.Receipt{}, inDoubt)
			return
		}
		done(sqsfifo.Receipt{MessageID: key}, nil)
	}()
}

func (w *world) store(body, key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if at, known := w.accepted[body]; known && time.Since(at) < Interval {
		w.resent++
		return
	}
	w.accepted[body] = time.Now()
	w.delivered = append(w.delivered, key)
}

// fixed is a source with messages in memory.
type fixed struct{ items []Item }

func (*fixed) Name() string { return "fixed" }

func (f *fixed) Scan(context.Context) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		for _, it := range f.items {
			if !yield(it, nil) {
				return
			}
		}
	}
}

func (f *fixed) Fetch(_ context.Context, positions []string) ([]Item, error) {
	out := make([]Item, len(positions))
	for i, p := range positions {
		var n int
		if _, err := fmt.Sscan(p, &n); err != nil {
			return nil, err
		}
		out[i] = f.items[n]
	}
	return out, nil
}

func newFixed(groups, each int) *fixed {
	f := new(fixed)
	for i := range each {
		for g := range groups {
			key := fmt.Sprintf("g%d-%03d", g, i)
			f.items = append(f.items, Item{
				Position: fmt.Sprint(len(f.items)), Status: StatusPending,
				Message: &sqsfifo.Message{Group: fmt.Sprintf("g%d", g), DedupeKey: key, EventID: uuid.UUID{1}, Body: `{"dedupe_key":"` + key + `"}`},
			})
		}
	}
	return f
}

// A process may crash at any step. No message is stored twice, every group stays in order, and
// the report is correct.
func TestModel(t *testing.T) {
	first, n := *modelSeed, 1
	if first == 0 {
		first, n = rand.Uint64(), *modelSeeds
		if testing.Short() {
			n = min(n, 50)
		}
	}
	crashes, unresolved, resent := 0, 0, 0
	for i := range n {
		seed := first + uint64(i)
		synctest.Test(t, func(t *testing.T) {
			w := &world{t: t, rng: rand.New(rand.NewPCG(seed, 0)), accepted: map[string]time.Time{}, faults: true}
			c, h := w.program()
			crashes, unresolved, resent = crashes+c, unresolved+h, resent+w.resent
		})
		if t.Failed() {
			t.Fatalf("seed %d: go test -run TestModel -model.seed %d", seed, seed)
		}
	}
	t.Logf("seeds from %d: %d programs, %d crashes and interruptions, %d items sent again within the window, %d unresolved", first, n, crashes, resent, unresolved)
	if *modelSeed == 0 {
		assert.Positive(t, crashes)
		assert.Positive(t, unresolved)
		assert.Positive(t, resent)
	}
}

func (w *world) program() (crashes, unresolved int) {
	s := newFixed(1+w.rng.IntN(5), 1+w.rng.IntN(6))
	plan, err := NewPlan(context.Background(), s, Options{}, time.Now())
	require.NoError(w.t, err)
	idle := 0
	for round := 0; idle < 2; round++ {
		calm := round > 12
		w.faults, w.dead, w.life = !calm, false, -1
		if !calm && w.rng.IntN(4) > 0 {
			w.life = 1 + w.rng.IntN(60)
		}
		before := len(w.delivered)
		r, results, ended := w.run(plan, s)
		if ended {
			crashes++
		} else if r.Remaining > 0 {
			w.t.Errorf("%d items remain after a run that ended", r.Remaining)
		}
		w.check(plan, results)
		if calm && len(w.delivered) == before {
			idle++
		}
		if unresolved = r.Unresolved; calm && idle == 2 {
			assert.Equal(w.t, r.StoppedGroups, unresolved, "the last runs were without a fault")
			assert.Zero(w.t, r.Failed)
		}
		time.Sleep([]time.Duration{0, time.Second, time.Minute, 4 * time.Minute, ResendFor, Interval, time.Hour}[w.rng.IntN(7)])
	}
	return crashes, unresolved
}

// run runs the plan in a process that may crash or be interrupted, and returns the
// reports of Run and ReadReport.
func (w *world) run(plan *Plan, s Source) (_ PlanReport, _ []ItemResult, ended bool) {
	ctx, cancel := context.WithCancel(context.Background())
	if w.faults && w.rng.IntN(4) == 0 { // the context ends during the run
		ctx, cancel = context.WithTimeout(ctx, time.Duration(w.rng.IntN(30_000))*time.Millisecond)
	}
	report, err := Run(ctx, plan, Config{Source: s, Sender: w, Store: w, InFlight: 1 + w.rng.IntN(6)})
	interrupted := ctx.Err() != nil
	cancel()
	if interrupted && !w.dead {
		require.ErrorIs(w.t, err, context.DeadlineExceeded)
	} else if !w.dead {
		require.NoError(w.t, err)
	}
	require.NoError(w.t, report.check())
	time.Sleep(20 * time.Second) // until all messages in transit have arrived
	synctest.Wait()
	died, now := w.dead, time.Time{}
	if died || interrupted {
		now = time.Now()
	}
	w.dead, w.life = false, -1
	after, results, err := ReadReport(context.Background(), plan, w, now)
	require.NoError(w.t, err)
	if !died && !interrupted {
		assert.Equal(w.t, report, after, "the store says what the run said")
	}
	if died {
		time.Sleep(lockLease)
	}
	return after, results, died || interrupted
}

func (w *world) check(plan *Plan, results []ItemResult) {
	position := map[string]int{}
	for _, it := range plan.Items {
		position[it.DedupeKey] = it.Number
	}
	last := map[string]int{}
	times := map[string]int{}
	for _, key := range w.delivered {
		group, _, _ := strings.Cut(key, "-")
		at, seen := last[group]
		if times[key]++; times[key] > 1 {
			w.t.Errorf("%s was stored %d times", key, times[key])
		} else if seen && position[key] < at {
			w.t.Errorf("%s was stored after item %d of its group", key, at)
		}
		last[group] = position[key]
	}
	for _, r := range results {
		n := times[r.Item.DedupeKey]
		switch r.Outcome {
		case OutcomeSent, OutcomeSuppressed:
			assert.Equal(w.t, 1, n, "%s is %v", r.Item.DedupeKey, r.Outcome)
		case OutcomeFailed:
			assert.Zero(w.t, n, "%s is %v", r.Item.DedupeKey, r.Outcome)
		case OutcomeSkipped, OutcomeNone:
			if r.Label == "" {
				assert.Zero(w.t, n, "%s was not tried", r.Item.DedupeKey)
			}
		case OutcomeUnresolved:
		default:
			w.t.Errorf("%s is %v", r.Item.DedupeKey, r.Outcome)
		}
	}
}

// The reason or response of an operator is not an outcome, whatever its first word.
func TestWordsOfAnOperator(t *testing.T) {
	for _, text := range []string{"sent: no trace of it", "skipped: x", "suppressed: x", "unresolved: x", "looked"} {
		p := progressOf(idempotency.Record{Status: idempotency.StatusFailed, Reason: text})
		assert.True(t, p.resolved, text)
		assert.Equal(t, OutcomeNone, p.outcome, text)
		assert.Equal(t, text, p.reason)
	}
	for _, text := range []string{"failed: x", "drift: x", "unresolved: x", "looked"} {
		p := progressOf(idempotency.Record{Status: idempotency.StatusSucceeded, Result: idempotency.Result{Response: []byte(text)}})
		assert.Equal(t, OutcomeSuppressed, p.outcome, text)
	}
	assert.Equal(t, OutcomeFailed, progressOf(idempotency.Record{Status: idempotency.StatusFailed, Reason: textOf(OutcomeFailed, "x")}).outcome)
	assert.LessOrEqual(t, len(textOf(OutcomeUnresolved, strings.Repeat("ä", 2000))), idempotency.MaxReason)
}
