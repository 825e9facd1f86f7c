package model

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing/synctest"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/clock"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// modelMachine simulates the computer of the processes. While it is suspended, the
// virtual time of package synctest stands still, but the time of SQS, the store and the
// network goes on. The method `now` returns this outside time.
type modelMachine struct {
	q     *sqstest.Queue
	start time.Time

	suspends, setsClock bool
	deaf                float64 // chance that a client ignores the context of its request

	mu           sync.Mutex
	asleep       time.Duration
	clockChanges []modelClockChange // oldest first; the first entry is the correct time at start
	flights      map[*modelFlight]struct{}
	history      []string // suspensions and clock changes, with the time since the start
}

// modelClockChange is one change of the machine's wall clock.
type modelClockChange struct {
	at   time.Time     // true time of the change
	lead time.Duration // wall clock minus true time, after the change
}

// modelFlight is a request on its way to SQS.
type modelFlight struct {
	at    time.Time
	timer *time.Timer
	f     func()
}

func newModelMachine(seed uint64, q *sqstest.Queue) *modelMachine {
	rng := rand.New(rand.NewPCG(seed, 29))
	m := &modelMachine{q: q, start: time.Now(), flights: map[*modelFlight]struct{}{}}
	m.clockChanges = []modelClockChange{{m.start, 0}}
	m.suspends, m.setsClock = rng.IntN(3) == 0, rng.IntN(3) == 0
	m.deaf = []float64{0, 0, 0.01, 0.05}[rng.IntN(4)]
	return m
}

// now returns the true time: the time outside of the machine, for example in SQS. The true
// time includes the machine's suspensions and does not depend on its wall clock.
func (m *modelMachine) now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.nowLocked()
}

// nowLocked returns the true time, like the method `now`. The caller holds mu.
func (m *modelMachine) nowLocked() time.Time { return time.Now().Add(m.asleep) }

// wall returns the time of the wall clock.
func (m *modelMachine) wall() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.nowLocked().Add(m.clockChanges[len(m.clockChanges)-1].lead)
}

// holdsAtTrueTime converts a reading of the wall clock to the true time (see the method
// `now`) and returns f of the true time. The clock was read between the times `earliest`
// and `latest`. If the clock was changed in between, several true times are possible:
// holdsAtTrueTime returns true if f is true for at least one time.
func (m *modelMachine) holdsAtTrueTime(reading, earliest, latest time.Time, f func(time.Time) bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, s := range m.clockChanges {
		if s.at.After(latest) || i+1 < len(m.clockChanges) && m.clockChanges[i+1].at.Before(earliest) {
			continue
		}
		if f(reading.Add(-s.lead)) {
			return true
		}
	}
	return false
}

// newClock returns the clock of a new process.
func (m *modelMachine) newClock() *clock.Clock {
	start := time.Now()
	return clock.Simulated(func() clock.Reading {
		m.mu.Lock()
		defer m.mu.Unlock()
		return clock.Reading{Awake: time.Since(start), Asleep: m.asleep, Wall: m.nowLocked().Add(m.clockChanges[len(m.clockChanges)-1].lead).Round(0)}
	})
}

// fly calls f after d, the travel time of a message. A suspension of the machine does not
// stop the travel.
func (m *modelMachine) fly(d time.Duration, f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	flight := &modelFlight{at: m.nowLocked().Add(d), f: f}
	m.flights[flight] = struct{}{}
	flight.timer = time.AfterFunc(d, func() { m.land(flight) })
}

func (m *modelMachine) land(flight *modelFlight) {
	m.mu.Lock()
	_, flies := m.flights[flight]
	delete(m.flights, flight)
	m.mu.Unlock()
	if flies {
		flight.f()
	}
}

// suspend advances the time of SQS, store and network, but not of this machine. All
// goroutines of the bubble must be blocked.
func (m *modelMachine) suspend(d time.Duration) {
	m.mu.Lock()
	end := m.nowLocked().Add(d)
	m.history = append(m.history, fmt.Sprintf("%.3f s: suspended for %v", m.nowLocked().Sub(m.start).Seconds(), d))
	flights := make([]*modelFlight, 0, len(m.flights))
	for f := range m.flights {
		flights = append(flights, f)
	}
	m.mu.Unlock()
	slices.SortFunc(flights, func(a, b *modelFlight) int { return a.at.Compare(b.at) })
	for _, f := range flights {
		if f.at.After(end) {
			f.timer.Reset(f.at.Sub(end))
			continue
		}
		m.pass(f.at)
		m.land(f)
	}
	m.pass(end)
}

// pass lets time pass until the given time.
func (m *modelMachine) pass(until time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if d := until.Sub(m.nowLocked()); d > 0 {
		m.asleep += d
		m.q.Advance(d)
	}
}

// setClock sets the wall clock to the true time plus lead.
func (m *modelMachine) setClock(lead time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clockChanges = append(m.clockChanges, modelClockChange{m.nowLocked(), lead})
	m.history = append(m.history, fmt.Sprintf("%.3f s: the wall clock is %v ahead", m.nowLocked().Sub(m.start).Seconds(), lead))
}

// run suspends the machine, sets its clock and calls the function `restart`, at random
// times until the result `stop` is called. Nothing else may call synctest.Wait meanwhile.
// The function `stop` waits for the last restart.
func (m *modelMachine) run(rng *rand.Rand, restart func()) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { m.loop(ctx, rng, restart) })
	return func() {
		cancel()
		all.Wait()
	}
}

func (m *modelMachine) loop(ctx context.Context, rng *rand.Rand, restart func()) {
	for {
		pause := time.NewTimer(time.Duration(rng.Int64N(int64(cmp.Or(rng.IntN(4), 1)) * int64(time.Minute))))
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return
		}
		synctest.Wait()
		switch what := rng.IntN(4); {
		case what == 0 && m.setsClock:
			m.setClock(time.Duration(rng.Int64N(int64(4*time.Hour))) - 2*time.Hour)
		case what == 1:
			restart()
		case m.suspends:
			most := []time.Duration{30 * time.Second, 6 * time.Minute, time.Hour}[rng.IntN(3)]
			m.suspend(time.Second + time.Duration(rng.Int64N(int64(most))))
		}
	}
}

// deafFor returns the minimum duration of a request whose client ignores the context, or
// zero for a client that obeys the context.
func (m *modelMachine) deafFor(rng *rand.Rand) time.Duration {
	if rng.Float64() >= m.deaf {
		return 0
	}
	return time.Duration(rng.Int64N(int64([]time.Duration{time.Minute, modelLongestRequest}[rng.IntN(2)])))
}

// modelLongestRequest is the longest duration of a request if the client ignores the
// context.
const modelLongestRequest = 10 * time.Minute
