package dispatch

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/verdict"
)

// randomProgram is a random program: several callers submit items by every method, while
// the service, the reports and the contexts behave at random. The model sender checks
// every call of the dispatcher.
type randomProgram struct {
	*modelSender
	mu            sync.Mutex
	rng           *rand.Rand
	failureChance float64 // probability of each failure, 0 to 1
	copyFrom      []*item // a random new item may copy the event of one of these items
	groups        int
	closesEarly   bool
	reported      map[*item]chan struct{} // channel of each waiting caller's item, closed by Report
}

func TestRandomProgram(t *testing.T) {
	seeds := uint64(400)
	if n, err := strconv.ParseUint(os.Getenv("SEEDS"), 10, 64); err == nil {
		seeds = n
	}
	if testing.Short() {
		seeds = 60
	}
	total, named, doubts := 0, 0, 0
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newRandomProgram(t, seed)
				s.run()
				total += len(s.reports)
				for _, r := range s.reports {
					if r.Overtaken {
						named++
					}
					if r.Fate == attempt.FateInDoubt {
						doubts++
					}
				}
			})
		})
	}
	t.Logf("%d outcomes, %d in doubt, %d named", total, doubts, named)
}

func newRandomProgram(t *testing.T, seed uint64) *randomProgram {
	rng := rand.New(rand.NewPCG(seed, 7))
	o := Options{
		PerGroup: []int{1, 1, 2, 10}[rng.IntN(4)],
		Policy:   Policy(rng.IntN(3)),
		RetryFor: []time.Duration{0, time.Second, 30 * time.Second}[rng.IntN(3)],
		Linger:   time.Duration(rng.IntN(20)) * time.Millisecond,
		InFlight: 1 + rng.IntN(8),
		Items:    1 + rng.IntN(60),
		Bytes:    1 + rng.IntN(20_000),
		Prepared: []int{0, 2, 6, 64}[rng.IntN(4)],
	}
	s := &randomProgram{
		modelSender: newModelSender(t, o), rng: rng, groups: 1 + rng.IntN(12), closesEarly: rng.IntN(2) == 0,
		failureChance: []float64{0, 0.02, 0.1, 0.3}[rng.IntN(4)], reported: map[*item]chan struct{}{},
	}
	s.modelSender.admit, s.modelSender.serve, s.modelSender.prepare = s.admit, s.serve, s.prepare
	s.modelSender.revise = func(it *item) { it.Size++ }
	return s
}

func (s *randomProgram) chance(p float64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rng.Float64() < p
}

// upTo returns a random number below n.
func (s *randomProgram) upTo(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rng.IntN(n)
}

func (s *randomProgram) millis(n int) time.Duration {
	return time.Duration(s.upTo(n)) * time.Millisecond
}

func (s *randomProgram) admit(it *item) verdict.Verdict {
	switch {
	case s.chance(s.failureChance / 5):
		return later(s.millis(500))
	case s.chance(s.failureChance / 20):
		return change
	case s.chance(s.failureChance) && s.isKnown(it.Key):
		return known
	case s.chance(s.failureChance / 20):
		return refuses
	case s.chance(s.failureChance / 20):
		return tooLate
	case s.chance(s.failureChance / 20):
		time.Sleep(s.millis(100))
	}
	return send
}

func (s *randomProgram) prepare([]*item) {
	time.Sleep(s.millis(20))
	switch {
	case s.chance(s.failureChance / 10):
		runtime.Goexit()
	case s.chance(s.failureChance / 20):
		time.Sleep(s.millis(5000))
	}
}

func (s *randomProgram) isKnown(key string) bool {
	s.modelSender.mu.Lock()
	defer s.modelSender.mu.Unlock()
	return s.event(key).known == attempt.FateStored
}

func (s *randomProgram) serve(items []*item, answers []attempt.Answer) attempt.Load {
	time.Sleep(s.millis(20))
	if s.chance(s.failureChance / 30) {
		time.Sleep(s.millis(5000))
	}
	if s.chance(s.failureChance / 10) {
		for i := range items {
			answers[i] = failed()
		}
		return attempt.LoadThrottled
	}
	for _, it := range items {
		if it.Size%97 == 5 { // the service refuses a request with this item
			for i := range items {
				answers[i] = attempt.Answer{Fate: attempt.FateNotStored, Next: attempt.NextApart}
			}
			return attempt.LoadPassed
		}
	}
	noAnswer, broken := s.chance(s.failureChance/3), s.chance(s.failureChance/20)
	for i, it := range items {
		switch {
		case broken && s.chance(0.1):
			runtime.Goexit()
		case noAnswer && s.chance(0.5):
			answers[i] = lost()
		case noAnswer:
			answers[i] = s.lose(it)
		case s.chance(s.failureChance / 4):
			answers[i] = failed()
		case s.chance(s.failureChance / 20):
			answers[i] = refused()
		case s.chance(s.failureChance / 20):
			s.store(it)
			answers[i] = doubtful()
		default:
			answers[i] = s.store(it)
		}
	}
	return attempt.Load(min(1, s.upTo(40)/39))
}

// random returns an item, sometimes with the event of an earlier item.
func (s *randomProgram) random() *item {
	it := s.item(fmt.Sprint("group ", s.upTo(s.groups)))
	it.Size = 1 + s.upTo(3000)
	s.mu.Lock()
	if len(s.copyFrom) > 0 && s.rng.IntN(10) == 0 {
		it.Group, it.Key = s.copyFrom[s.rng.IntN(len(s.copyFrom))].Group, s.copyFrom[s.rng.IntN(len(s.copyFrom))].Key
		for _, original := range s.copyFrom {
			if original.Key == it.Key {
				it.Group = original.Group
			}
		}
	} else {
		s.copyFrom = append(s.copyFrom, it)
	}
	if s.rng.IntN(50) == 0 {
		it.Verdict = verdict.KindRefuse
	}
	s.mu.Unlock()
	s.modelSender.mu.Lock()
	s.items[it.Message.n].group = it.Group
	s.modelSender.mu.Unlock()
	it.Message.onReport = func() { s.tell(it) }
	return it
}

func (s *randomProgram) tell(it *item) {
	s.mu.Lock()
	done := s.reported[it]
	s.mu.Unlock()
	if done != nil {
		close(done)
		return
	}
	switch s.upTo(20) {
	case 0:
		time.Sleep(s.millis(50))
	case 1:
		runtime.Goexit()
	case 2:
		if next := s.random(); s.d.TryReserve(next.Size) == nil {
			s.enqueue(next)
		}
	case 3:
		s.d.Resume(it.Group)
		s.d.Stats()
		s.d.Pauses()
	case 4:
		s.d.ResumeAll()
		ctx, cancel := context.WithTimeout(context.Background(), s.millis(20))
		defer cancel()
		_ = s.d.Flush(ctx)
	}
}

// call submits some items and waits for their outcomes, until the context ends.
func (s *randomProgram) call(ctx context.Context) {
	var call *Call
	n := 1
	if s.chance(0.5) {
		call, n = &Call{}, 1+s.upTo(30)
	}
	var ready, all []*item
	var left []chan struct{}
	submit := func() {
		s.enqueue(ready...)
		ready = nil
	}
	for range n {
		it := s.random()
		makeWithdrawable(call, it)
		if s.d.TryReserve(it.Size) != nil {
			submit()
			if s.d.Reserve(ctx, it.Size, nil) != nil {
				continue
			}
		}
		done := make(chan struct{})
		s.mu.Lock()
		s.reported[it] = done
		s.mu.Unlock()
		ready, all, left = append(ready, it), append(all, it), append(left, done)
	}
	submit()
	for i, done := range left {
		s.modelSender.mu.Lock()
		submitted := s.items[s.numbers[all[i]]].submitted
		s.modelSender.mu.Unlock()
		if !submitted {
			continue
		}
		select {
		case <-done:
			continue
		case <-ctx.Done():
		}
		one := all[0]
		if call != nil {
			one = nil
		}
		s.d.Withdraw(call, one, context.Cause(ctx))
		<-done
	}
}

// caller makes 20 random calls, one after another.
func (s *randomProgram) caller() {
	for range 20 {
		ctx, cancel := context.Background(), context.CancelFunc(func() {})
		if s.chance(0.3) {
			ctx, cancel = context.WithTimeout(ctx, s.millis(400))
		}
		switch s.upTo(10) {
		case 0:
			s.call(ctx)
		case 1:
			_ = s.d.Flush(ctx)
		case 2:
			s.d.Resume(fmt.Sprint("group ", s.upTo(s.groups)))
		case 3:
			time.Sleep(s.millis(100))
		case 4:
			if it := s.random(); s.d.TryReserve(it.Size) == nil {
				it.Context = ctx
				s.enqueue(it)
			}
		default:
			for range 1 + s.upTo(10) {
				it := s.random()
				if s.d.Reserve(ctx, it.Size, nil) == nil {
					it.Context = ctx
					s.enqueue(it)
				}
			}
		}
		if s.chance(0.5) {
			// End the context only after all calls of the caller: items with this context
			// may still be under way.
			defer cancel()
		} else {
			cancel()
		}
	}
}

func (s *randomProgram) run() {
	var callers sync.WaitGroup
	for range 1 + s.upTo(6) {
		callers.Go(s.caller)
	}
	if s.closesEarly {
		time.Sleep(s.millis(2000))
		ctx, cancel := context.WithTimeoutCause(context.Background(), s.millis(100), errOver)
		start := time.Now()
		_, err := s.d.Close(ctx, func() {})
		cancel()
		if err != nil {
			require.Equal(s.t, errOver, err)
			require.LessOrEqual(s.t, time.Since(start), 100*time.Millisecond+Grace)
		}
	}
	callers.Wait()
	_, err := s.d.Close(context.Background(), func() {})
	require.NoError(s.t, err)
	s.check()
}
