package pacer_test

import (
	"math/rand/v2"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/pacer"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// scenario is a simulation of producers that call one service. Time is virtual.
type scenario struct {
	length time.Duration
	seed   uint64

	// producers is the number of producers; 0 means 1. Except in idle times, each producer
	// starts calls as fast as its pacer permits, with at most inFlight calls under way.
	producers int
	inFlight  int
	idle      func(at time.Duration) bool
	joins     func(producer int) time.Duration
	unpaced   bool
	limit     int // number of calls, 0 if unlimited

	// A round trip takes a time between fastest and slowest, half of it on the way to
	// the service.
	fastest, slowest time.Duration

	// quota returns the allowed calls per second; nil means no quota. Unused calls add up
	// for at most burst seconds (a token bucket).
	quota func(at time.Duration) float64
	burst float64

	// throttleChance is the probability that the service throttles a call at random.
	throttleChance float64
	// troubled returns the probability that a call fails in the service or the connection.
	troubled func(at time.Duration) float64
	// outage returns the result of all calls at the given time; attempt.LoadPassed means no
	// outage.
	outage func(at time.Duration) attempt.Load
}

// tally counts the successful, throttled and failed calls.
type tally struct{ passed, throttled, troubled float64 }

func (t tally) calls() float64    { return t.passed + t.throttled + t.troubled }
func (t tally) throttle() float64 { return t.throttled / max(1, t.calls()) }
func (t *tally) add(u tally) {
	t.passed += u.passed
	t.throttled += u.throttled
	t.troubled += u.troubled
}

const bin = 100 * time.Millisecond

// outcome is the result of a simulation.
type outcome struct {
	// bins[p][i] counts the answers to producer p in the time from i*bin to (i+1)*bin.
	bins   [][]tally
	pacers []*pacer.Pacer
	end    time.Duration // time of the last answer
}

// between returns the number of answers of each kind between two times, of all producers.
func (o outcome) between(from, to time.Duration) (sum tally) {
	for i := range o.bins {
		sum.add(o.producer(i, from, to))
	}
	return sum
}

func (o outcome) producer(i int, from, to time.Duration) (sum tally) {
	for b := from / bin; b < min(to/bin, time.Duration(len(o.bins[i]))); b++ {
		sum.add(o.bins[i][b])
	}
	return sum
}

func (o outcome) all() tally { return o.between(0, 1<<62) }

// passing returns the number of calls per second that the service accepted between two
// times.
func (o outcome) passing(from, to time.Duration) float64 {
	return o.between(from, to).passed / (to - from).Seconds()
}

type event struct {
	at       time.Duration
	seq      int
	producer int
	kind     eventKind
	began    time.Duration
	trip     time.Duration
	load     attempt.Load
}

type eventKind uint8

const (
	wake eventKind = iota
	arrive
	answer
)

// queue is a heap of the simulation's events, ordered by time.
type queue []event

func (q queue) less(i, j int) bool {
	if q[i].at != q[j].at {
		return q[i].at < q[j].at
	}
	return q[i].seq < q[j].seq
}

func (q *queue) push(e event) {
	*q = append(*q, e)
	h := *q
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if !h.less(i, up) {
			break
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
}

func (q *queue) pop() event {
	h := *q
	first, last := h[0], len(h)-1
	h[0] = h[last]
	h = h[:last]
	for i := 0; ; {
		least := i
		for down := 2*i + 1; down <= 2*i+2 && down < last; down++ {
			if h.less(down, least) {
				least = down
			}
		}
		if least == i {
			break
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
	*q = h
	return first
}

// run simulates s.
func (s scenario) run() outcome {
	rnd := rand.New(rand.NewPCG(s.seed, 1))
	producers := max(1, s.producers)
	out := outcome{bins: make([][]tally, producers), pacers: make([]*pacer.Pacer, producers)}
	inFlight := make([]int, producers)
	waking := make([]bool, producers)
	var q queue
	seq, started := 0, 0
	push := func(e event) {
		e.seq = seq
		seq++
		q.push(e)
	}
	for i := range producers {
		out.pacers[i] = &pacer.Pacer{}
		joins := time.Duration(0)
		if s.joins != nil {
			joins = s.joins(i)
		}
		waking[i] = true
		push(event{at: joins, producer: i, kind: wake})
	}
	tokens, refilled := 0.0, time.Duration(0)
	if s.quota != nil {
		tokens = max(1, s.quota(0)*s.burst)
	}
	serve := func(at time.Duration) attempt.Load {
		if s.outage != nil {
			if load := s.outage(at); load != attempt.LoadPassed {
				return load
			}
		}
		if s.troubled != nil && rnd.Float64() < s.troubled(at) {
			return attempt.LoadTroubled
		}
		if s.throttleChance > 0 && rnd.Float64() < s.throttleChance {
			return attempt.LoadThrottled
		}
		if s.quota == nil {
			return attempt.LoadPassed
		}
		quota := s.quota(at)
		tokens = min(max(1, quota*s.burst), tokens+quota*(at-refilled).Seconds())
		refilled = at
		if tokens < 1 {
			return attempt.LoadThrottled
		}
		tokens--
		return attempt.LoadPassed
	}
	fill := func(i int, now time.Duration) {
		if waking[i] {
			return
		}
		for inFlight[i] < s.inFlight && now < s.length && (s.limit == 0 || started < s.limit) {
			if s.idle != nil && s.idle(now) {
				waking[i] = true
				push(event{at: now + 10*time.Millisecond, producer: i, kind: wake})
				return
			}
			at := epoch.Add(now)
			if !s.unpaced {
				if wait := out.pacers[i].Wait(at); wait > 0 {
					late := time.Duration(rnd.Int64N(int64(time.Millisecond)))
					waking[i] = true
					push(event{at: now + wait + late, producer: i, kind: wake})
					return
				}
				out.pacers[i].Start(at)
			}
			inFlight[i]++
			started++
			trip := s.fastest + time.Duration(rnd.Int64N(int64(s.slowest-s.fastest)+1))
			push(event{at: now + trip/2, producer: i, kind: arrive, began: now, trip: trip})
		}
	}
	for len(q) > 0 {
		e := q.pop()
		switch e.kind {
		case wake:
			waking[e.producer] = false
		case arrive:
			e.load, e.kind, e.at = serve(e.at), answer, e.began+e.trip
			push(e)
			continue
		case answer:
			inFlight[e.producer]--
			if !s.unpaced {
				out.pacers[e.producer].Answered(epoch.Add(e.at), epoch.Add(e.began), e.load)
			}
			b := int(e.at / bin)
			for len(out.bins[e.producer]) <= b {
				out.bins[e.producer] = append(out.bins[e.producer], tally{})
			}
			t := &out.bins[e.producer][b]
			switch e.load {
			case attempt.LoadThrottled:
				t.throttled++
			case attempt.LoadTroubled:
				t.troubled++
			default:
				t.passed++
			}
			out.end = e.at
		}
		fill(e.producer, e.at)
	}
	return out
}
