package systemtest

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var (
	seeds = flag.Int("system.seeds", 0, "number of seeds of TestSystem; 0 is a few hundred")
	only  = flag.Int("system.seed", -1, "the only seed of TestSystem")
)

// run lives through one seed and returns the world after it.
func run(t *testing.T, seed uint64, sabotage string) *world {
	w := newWorld(t, seed, sabotage)
	w.storm = time.Now().Add(time.Minute + w.span(40*time.Minute))
	rivals := 1
	if w.rivals {
		rivals = 2
	}
	var actors sync.WaitGroup
	// Each is restarted when it dies, at once or after minutes.
	restarted := func(name string, n uint64, most time.Duration, life func(*process, *rand.Rand)) {
		rng := rand.New(rand.NewPCG(seed, 10+n))
		actors.Go(func() {
			for life1 := 0; !w.finished(); life1++ {
				p := w.newProcess(fmt.Sprintf("%s %d.%d", name, n, life1))
				end := time.AfterFunc(time.Duration(1+rng.IntN(1200))*time.Second, func() {
					if time.Now().Before(w.storm) {
						p.kill("at some time")
					}
				})
				life(p, rng)
				end.Stop()
				p.once.Do(func() { close(p.killed) })
				pause := time.Duration(rng.Int64N(int64(5 * time.Second)))
				if rng.IntN(3) == 0 && time.Now().Before(w.storm) {
					pause = time.Duration(rng.Int64N(int64(most)))
				}
				time.Sleep(pause)
			}
		})
	}
	for n := range rivals {
		restarted("producer", uint64(n), 8*time.Minute, w.produce)
	}
	for n := range 1 + int(w.span(3)) {
		restarted("consumer", uint64(100+n), time.Minute, func(p *process, _ *rand.Rand) { w.consume(p) })
	}
	time.AfterFunc(time.Until(w.storm), func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.calm = true
	})
	actors.Wait()
	time.Sleep(10 * time.Minute) // for requests that are still on their way
	w.check()
	return w
}

// TestSystem runs random systems on virtual time. Two runs of one seed do nearly the
// same: goroutines and the jitter of retries differ.
func TestSystem(t *testing.T) {
	from, to := 0, 300
	switch {
	case *only >= 0:
		from, to = *only, *only+1
	case *seeds > 0:
		to = *seeds
	case testing.Short():
		to = 60
	}
	var mu sync.Mutex
	var sum totals
	t.Run("seeds", func(t *testing.T) {
		for seed := from; seed < to; seed++ {
			t.Run(strconv.Itoa(seed), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					w := run(t, uint64(seed), "")
					w.report()
					mu.Lock()
					defer mu.Unlock()
					sum.add(w.totals)
				})
			})
		}
	})
	t.Logf("%d seeds: %+v", to-from, sum)
	if to-from >= 60 && (sum.crashes == 0 || sum.lost == 0 || sum.storeFaults == 0 || sum.ambiguous == 0 || sum.duplicates == 0 || sum.inDoubt == 0 || sum.settled == 0 || sum.redelivered == 0) {
		t.Errorf("some of it never happened: %+v", sum)
	}
}

// Each promise can be broken, and the simulation notices: without the store, without the
// guard, with a store that grants what is in doubt, and with a network that delivers a
// request after SQS has forgotten the event.
func TestSabotageIsFound(t *testing.T) {
	for _, sabotage := range []string{"no store", "no guard", "generous store", "late network"} {
		t.Run(sabotage, func(t *testing.T) {
			for seed := range 200 {
				found := false
				synctest.Test(t, func(t *testing.T) { found = len(run(t, uint64(seed), sabotage).wrong) > 0 })
				if found {
					t.Logf("found with seed %d", seed)
					return
				}
			}
			t.Error("not found in 200 seeds")
		})
	}
}
