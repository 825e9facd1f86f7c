// Package systemtest simulates a whole system in virtual time: producers, a fake queue
// and consumers, with crashes and other faults. The random choices depend on a seed. The
// store is in memory, or in a database that each process opens separately.
//
// Producers send the events of sources, which survive crashes, to the queue. Consumers of
// package consumer handle the events. Producers and consumers have a store. Processes
// crash at any step. Requests and answers are lost or late. The store fails before and
// after its commits, and its clock differs from the clocks of the processes.
//
// After each run the package checks the promises of the library. The effect of each event
// has happened exactly once. The effects have the order of the message group, unless two
// producer processes used one source simultaneously. SQS has stored each event once, and
// each receipt names the message in the queue. If the storage has a ledger, the ledger is
// valid and contains each head (hash of the last seal) saved during the run. Each change
// confirmed by the store is in the ledger once and in order, even if the process died
// before the confirmation arrived.
//
// If a check fails, the package prints the history of the event concerned and the seed.
package systemtest

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/seedtest"
)

var seeds = seedtest.Flags("system", "TestSystem")

// worldStorage keeps the store's records of one simulated world, in memory or in a database.
// Make it inside the world's synctest bubble, so both share the virtual time.
type worldStorage struct {
	// Open opens the store for one process. A store with a method Close() error is
	// closed after its process has ended.
	Open func() (idempotency.Store, error)

	// Ledger is the store's list of all changes of its records, or nil.
	Ledger Ledger
}

// newStorage returns new storage with its own clock, which differs from the processes'
// clocks. newStorage closes resources in t.Cleanup.
type newStorage func(t *testing.T, now func() time.Time) worldStorage

// runSeeds runs the simulation for each seed and checks each run. The number of seeds is
// seedCount, or shortCount with go test -short. The flag -system.seeds sets another
// number.
//
// With shortCount seeds or more, runSeeds also checks that each kind of fault happened in at
// least one run.
func runSeeds(t *testing.T, seedCount, shortCount int, storage newStorage) {
	var mu sync.Mutex
	var sum totals
	n := seeds.Run(t, seedCount, shortCount, func(t *testing.T, seed uint64) {
		w := run(t, seed, "", storage)
		w.report()
		mu.Lock()
		defer mu.Unlock()
		sum.add(w.totals)
	})
	t.Logf("%d seeds: %+v", n, sum)
	if n >= shortCount && (sum.crashes == 0 || sum.lost == 0 || sum.storeFaults == 0 || sum.ambiguous == 0 || sum.duplicates == 0 || sum.inDoubt == 0 || sum.resolved == 0 || sum.redelivered == 0) {
		t.Errorf("some of it never happened: %+v", sum)
	}
}

// mustFind runs the simulation with a sabotage, a deliberate fault of one part, for the given
// number of seeds. The test fails unless the checks detect the sabotage in at least one
// run.
func mustFind(t *testing.T, sabotage string, seeds int, storage newStorage) {
	for seed := range seeds {
		found := ""
		synctest.Test(t, func(t *testing.T) {
			if wrong := run(t, uint64(seed), sabotage, storage).wrong; len(wrong) > 0 {
				found = wrong[0]
			}
		})
		if found != "" {
			t.Logf("found with seed %d: %q", seed, found)
			return
		}
	}
	t.Errorf("not found in %d seeds", seeds)
}

// run runs the simulation of one seed and returns the world as it is at the end.
func run(t *testing.T, seed uint64, sabotage string, open newStorage) *world {
	w := newWorld(t, seed, sabotage, open)
	defer w.disconnect(w.store)
	w.faultsUntil = time.Now().Add(time.Minute + w.span(40*time.Minute))
	producers := 1
	if w.twoProducers {
		producers = 2
	}
	var actors sync.WaitGroup
	// keepRunning restarts an ended process after less than five seconds, or sometimes up
	// to the parameter `most`.
	keepRunning := func(name string, n uint64, most time.Duration, life func(*process, *rand.Rand)) {
		rng := rand.New(rand.NewPCG(seed, 10+n))
		actors.Go(func() {
			for lifeNumber := 0; !w.finished(); lifeNumber++ {
				p := w.newProcess(fmt.Sprintf("%s %d.%d", name, n, lifeNumber))
				end := time.AfterFunc(time.Duration(1+rng.IntN(1200))*time.Second, func() {
					if time.Now().Before(w.faultsUntil) {
						p.kill("at some time")
					}
				})
				life(p, rng)
				end.Stop()
				p.end()
				pause := time.Duration(rng.Int64N(int64(5 * time.Second)))
				if rng.IntN(3) == 0 && time.Now().Before(w.faultsUntil) {
					pause = time.Duration(rng.Int64N(int64(most)))
				}
				time.Sleep(pause)
			}
		})
	}
	for n := range producers {
		keepRunning("producer", uint64(n), 8*time.Minute, w.produce)
	}
	for n := range 1 + int(w.span(3)) {
		keepRunning("consumer", uint64(100+n), time.Minute, func(p *process, _ *rand.Rand) { w.consume(p) })
	}
	time.AfterFunc(time.Until(w.faultsUntil), func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.faultsOver = true
	})
	actors.Wait()
	time.Sleep(10 * time.Minute) // until requests that are still under way have arrived
	w.check()
	return w
}
