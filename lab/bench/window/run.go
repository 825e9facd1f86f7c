package main

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
	"github.com/kansas-frontier-matrix/sqsfifo/lab/bench/internal/meter"
)

var epoch = time.Date(2025, 12, 4, 0, 0, 0, 0, time.UTC)

// command makes a worker run a phase of the measurement with a number of IDs.
type command struct {
	Phase string // one of phases
	Count int
}

// phases are the parts of the measurement, in order. The phase "again" claims each new ID
// twice. The phase "inside" looks up the oldest remembered IDs, and "outside" the most
// recently expired IDs.
var phases = []string{"fill", "insert", "again", "inside", "outside", "hit", "miss", "stall", "memory", "gc"}

// report is the result of a worker for one command.
type report struct {
	PerOp float64       // processor time in ns for one ID
	Asked int           // number of IDs that were claimed or looked up
	Wrong int           // number of wrong answers
	Bytes uint64        // heap bytes that the measured implementation needs for its IDs
	GC    time.Duration // processor time of one garbage collection

	// Stall is the processor time of the slowest claim. Floor is the processor time of the
	// slowest run of a computation that normally takes about as long as a claim, for
	// comparison. Both times include interrupts.
	Stall, Floor time.Duration
}

// worker measures one of the compared implementations. Each worker runs in its own process,
// so that the heap of one implementation does not slow down the others.
type worker struct {
	memory memory
	step   time.Duration // simulated time between two claims: five minutes divided by n
	n      int
	next   uint64
	random uint64
	text   [16]byte
	empty  uint64
}

func work(side string, n int, in io.Reader, out io.Writer) error {
	debug.SetGCPercent(50)
	runtime.GOMAXPROCS(1)
	w := &worker{n: n, step: window.Interval / time.Duration(n), random: 1, empty: heap()}
	w.memory = sides[side]()
	commands, reports := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var o command
		if err := commands.Decode(&o); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if err := reports.Encode(w.do(o)); err != nil {
			return err
		}
	}
}

// id returns the ID with the number n. The worker computes IDs before it measures, so this
// time is not part of the results.
func (w *worker) id(n uint64) id {
	binary.BigEndian.PutUint64(w.text[:], n)
	return sha256.Sum256(w.text[:])
}

// live returns the number of IDs that are claimed less than five minutes before the newest
// ID.
func (w *worker) live() uint64 { return uint64((window.Interval - 1) / w.step) }

func (w *worker) now() time.Time { return epoch.Add(time.Duration(w.next) * w.step) }

func (w *worker) rand() uint64 { // splitmix64
	w.random += 0x9e3779b97f4a7c15
	z := w.random
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func (w *worker) do(o command) (r report) {
	ids := make([]id, min(o.Count, 1<<14))
	for done := 0; done < o.Count; done += len(ids) {
		ids = ids[:min(len(ids), o.Count-done)]
		for i := range ids {
			switch o.Phase {
			case "hit":
				ids[i] = w.id(w.next - w.rand()%uint64(w.n*9/10))
			case "inside":
				ids[i] = w.id(w.next - w.live() + w.rand()%uint64(w.n/100))
			case "outside":
				ids[i] = w.id(w.next - w.live() - 1 - w.rand()%uint64(w.n/100))
			case "miss":
				ids[i] = w.id(1<<63 | w.rand())
			default:
				ids[i] = w.id(w.next + uint64(i) + 1)
			}
		}
		r.Asked += len(ids)
		start := processorTime()
		switch o.Phase {
		case "fill", "insert":
			for i := range ids {
				w.next++
				if w.memory.claim(w.now(), &ids[i], answer{sequence: w.next}) {
					r.Wrong++
				}
			}
		case "again":
			for i := range ids {
				w.next++
				w.memory.claim(w.now(), &ids[i], answer{sequence: w.next})
				if !w.memory.claim(w.now(), &ids[i], answer{sequence: w.next}) {
					r.Wrong++
				}
			}
		case "hit", "inside", "miss", "outside":
			live := o.Phase == "hit" || o.Phase == "inside"
			for i := range ids {
				if w.memory.known(w.now(), &ids[i]) != live {
					r.Wrong++
				}
			}
		case "stall":
			stall, floor := w.stall(ids)
			r.Stall, r.Floor = max(r.Stall, stall), max(r.Floor, floor)
		}
		r.PerOp += float64(processorTime() - start)
	}
	r.PerOp /= float64(max(o.Count, 1))
	switch o.Phase {
	case "memory":
		r.Bytes = heap() - w.empty
	case "gc":
		start := processorTime()
		runtime.GC()
		r.GC = processorTime() - start
	}
	return r
}

// stall claims the IDs. The result `slowest` is the thread's processor time for the slowest
// claim. This time includes interrupts. stall then runs a computation once for each ID. The
// computation normally takes about as long as a claim. The result `floor` is the thread's
// processor time for the slowest computation, and shows how long interrupts take.
func (w *worker) stall(ids []id) (slowest, floor time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := threadTime()
	for i := range ids {
		w.next++
		w.memory.claim(w.now(), &ids[i], answer{sequence: w.next})
		after := threadTime()
		slowest, before = max(slowest, after-before), after
	}
	for range ids {
		for range 50 { // 50 random numbers take about as long as a claim
			w.rand()
		}
		after := threadTime()
		floor, before = max(floor, after-before), after
	}
	return slowest, floor
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func processorTime() time.Duration { return read(unix.CLOCK_PROCESS_CPUTIME_ID) }

func threadTime() time.Duration { return read(unix.CLOCK_THREAD_CPUTIME_ID) }

// read returns the time of a processor clock. It does not use getrusage, whose times of a
// thread may lag by a kernel tick of 4 ms.
func read(clock int32) time.Duration {
	var t unix.Timespec
	meter.Check(unix.ClockGettime(clock, &t))
	return time.Duration(t.Nano())
}

// process is the parent's connection to a worker.
type process struct {
	*meter.Process
	name string
	got  map[string][]report
}

func start(side string, n int) (*process, error) {
	p, err := meter.Start(nil, "-n", fmt.Sprint(n), "-work", side)
	return &process{p, side, map[string][]report{}}, err
}

func (p *process) do(o command) error {
	var r report
	if err := p.Do(o, &r); err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	p.got[o.Phase] = append(p.got[o.Phase], r)
	return nil
}
