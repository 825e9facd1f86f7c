package process_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/memory/process"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
)

// run makes the same random calls to a Memory and to the model, and compares their answers.
// The function `choose`(n) returns a number below n and makes every random decision.
func run(t *testing.T, o process.Options, steps int, choose func(n int) int) {
	clocks := &process.Clocks{}
	mem := process.NewAt(o, clocks)
	m := &model{full: o.MaxKeys, horizon: mem.Horizon, trust: o.AcceptTimes, slots: map[slot]*history{}, highest: map[string]int64{}}
	var actors []*actor
	// Instants at which the Memory's answers about an event change, for example because
	// SQS forgets the event. The run often advances the clocks to about such an instant.
	var boundaries []process.Instant
	ids := 0
	payloads := func(msg message) process.Event {
		var sum [32]byte
		copy(sum[:], msg.attributes)
		return mem.Event(msg.key, msg.group, msg.body, msg.body[:1], sum)
	}
	anyMessage := func() message {
		return message{
			fmt.Sprint("k", choose(3)), fmt.Sprint("g", choose(2)),
			[]string{"a1", "a2", "b1"}[max(choose(5)-2, 0)], []string{"n", "s"}[choose(4)/3],
		}
	}
	pick := func(flying bool) *actor {
		var from []*actor
		for _, a := range actors {
			if (a.try != nil) == flying {
				from = append(from, a)
			}
		}
		if len(from) == 0 {
			return nil
		}
		return from[choose(len(from))]
	}
	oldest := func(now process.Instant) (age time.Duration, flying bool) {
		for _, a := range actors {
			if a.try != nil {
				age, flying = max(age, now.Sub(a.try.start)), true
			}
		}
		return age, flying
	}
	for step := range steps {
		now := mem.Now()
		same := func(want known, got process.Known, what string) {
			if want != knownOf(got) {
				t.Fatalf("step %d, %s: got %+v, want %+v", step, what, knownOf(got), want)
			}
		}
		switch op := choose(24); {
		case op < 3:
			if len(actors) == 14 {
				continue
			}
			a := &actor{message: anyMessage(), made: now}
			a.ev = payloads(a.message)
			actors = append(actors, a)
			mem.Refresh(now, &a.ev, &a.sub)
			own, byKey := m.find(now, a.made, a.message)
			a.capture(now, mem.Horizon(now), own, byKey)
			same(a.known, a.sub.Known, "a new submission")
		case op < 9:
			a := pick(false)
			if a == nil {
				continue
			}
			anyway := choose(3) == 0
			judged := a.sub
			j := mem.Judge(now, &a.ev, &judged)
			v := mem.Admit(now, &a.ev, &a.sub, anyway)
			if !anyway && j != v && kindOf(v) != kindFull {
				t.Fatalf("step %d: judged %+v, then admitted %+v", step, j, v)
			}
			kind, k := m.admit(now, a, anyway, func(s slot) bool {
				live := m.live(mem.Horizon(now))
				if m.slots[s].live(mem.Horizon(now)) {
					live-- // the event can reuse its own slot
				}
				if m.full > 0 && live >= m.full && kindOf(v) != kindFull {
					t.Fatalf("step %d: a full memory admitted", step)
				}
				if kindOf(v) == kindFull && live < m.full && len(m.slots) < m.full {
					t.Fatalf("step %d: refused with %d of %d", step, live, m.full)
				}
				return kindOf(v) == kindFull
			})
			if kind != kindOf(v) {
				t.Fatalf("step %d: got %v, want %v of %+v", step, kindOf(v), kind, a.message)
			}
			same(k, v.Known, kind)
			same(a.known, a.sub.Known, "the submission after "+kind)
		case op < 15:
			a := pick(true)
			if a == nil {
				continue
			}
			var r process.Result
			var ms int64
			if choose(2) == 0 {
				r.Lead.Least = time.Duration(choose(600)-300) * time.Second
			}
			r.Lead.Most = r.Lead.Least
			if choose(2) == 0 {
				r.Lead.Most += time.Duration(choose(20)) * time.Second
			}
			wall := mem.Wall(now).Add(r.Lead.Most) // latest possible time on SQS's clock
			switch choose(10) {
			case 0, 1:
				r.Fate = attempt.FateNotStored
			case 2, 3, 4:
			case 5:
				r.Fate, r.Drops = attempt.FateAltered, choose(2) == 0
			default:
				id := max(ids-choose(6), 0)
				if choose(2) == 0 {
					ids++
					id = ids
				}
				r.Fate, r.MessageID = attempt.FateStored, fmt.Sprint("m", id)
				if choose(4) > 0 {
					ms = wall.Add(-time.Duration(choose(40)) * 10 * time.Second).UnixMilli()
					r.Sequence = sequenceAt(time.UnixMilli(ms), 0)
				}
			}
			got := mem.Record(now, &a.ev, &a.sub, r)
			if want := m.record(now, a, r, ms, wall); got != want {
				t.Fatalf("step %d: duplicate: got %v, want %v: %+v at %d after %d, %+v", step, got, want, r, ms, a.groupHighest, a)
			}
			same(a.known, a.sub.Known, "the submission after "+r.Fate.String())
			boundaries = append(boundaries, a.known.since.Add(window.LastStart), a.known.since.Add(span), a.known.over)
		case op < 17:
			if a := pick(false); a != nil {
				mem.Release(now, &a.ev, &a.sub)
				m.release(now, a)
				mem.Leave()
				actors = slices.DeleteFunc(actors, func(b *actor) bool { return a == b })
			}
		case op < 18:
			for _, a := range actors {
				mem.Refresh(now, &a.ev, &a.sub)
				own, byKey := m.find(now, a.made, a.message)
				a.capture(now, mem.Horizon(now), own, byKey)
				same(a.known, a.sub.Known, "a submission that waits")
			}
		case op < 19:
			if empty := mem.Sweep(now); empty != (m.live(mem.Horizon(now)) == 0) {
				t.Fatalf("step %d: empty %v with %d", step, empty, m.live(mem.Horizon(now)))
			} else if empty {
				clear(m.highest)
			}
			maps.DeleteFunc(m.slots, func(_ slot, h *history) bool { return !h.live(mem.Horizon(now)) })
			if got, want := mem.Len(now), m.live(now); got != want {
				t.Fatalf("step %d: %d events, want %d", step, got, want)
			}
		case op < 20:
			clocks.Step += time.Duration(choose(3)-1) * time.Hour
		default:
			age, flying := oldest(now)
			left := window.Request - age
			d := time.Duration(choose(20)) * time.Second
			if choose(4) == 0 {
				d = time.Duration(choose(8)) * time.Minute
			}
			if n := choose(4); n > 0 && len(boundaries) > 0 {
				boundaries = slices.DeleteFunc(boundaries, func(e process.Instant) bool { return e <= now })
				if len(boundaries) > 0 {
					d = slices.Min(boundaries).Sub(now) + time.Duration(choose(3)-1)
				}
			}
			if flying {
				d = min(d, left)
			}
			if d = max(d, 0); choose(10) == 0 && d >= 50*time.Millisecond {
				clocks.Asleep += d
			} else {
				clocks.Awake += d
			}
		}
		msg := anyMessage()
		own, _ := m.find(now, now, msg)
		ev := payloads(msg)
		same(own.known(now), mem.Look(now, &ev), "a look")
	}
}

func TestAgainstNaiveModel(t *testing.T) {
	seeds := uint64(60)
	if testing.Short() {
		seeds = 6
	}
	for seed := range seeds {
		for _, o := range []process.Options{{}, {AcceptTimes: true}, {MaxKeys: 3}} {
			t.Run(fmt.Sprint(seed, o), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(seed, 1))
				run(t, o, 4000, rng.IntN)
			})
		}
	}
}

func FuzzAgainstNaiveModel(f *testing.F) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 5 {
		seed := make([]byte, 2000)
		for i := range seed {
			seed[i] = byte(rng.Uint32())
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, choices []byte) {
		run(t, process.Options{AcceptTimes: len(choices)%2 == 0}, len(choices)/4, func(n int) int {
			if len(choices) == 0 {
				return 0
			}
			c := int(choices[0])
			choices = choices[1:]
			return c % n
		})
	})
}
