package pacer_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/pacer"
)

const (
	ms     = time.Millisecond
	second = time.Second
)

// nets are combinations of round trips and calls in flight.
var nets = []scenario{
	{inFlight: 1, fastest: 1 * ms, slowest: 2 * ms},
	{inFlight: 16, fastest: 1 * ms, slowest: 3 * ms},
	{inFlight: 64, fastest: 5 * ms, slowest: 15 * ms},
	{inFlight: 64, fastest: 10 * ms, slowest: 50 * ms},
}

// seeds returns the number of runs of each simulation. Each run has a different seed.
func seeds() uint64 {
	if testing.Short() {
		return 1
	}
	return 5
}

func (s scenario) String() string {
	return fmt.Sprintf("%d in flight, %v to %v", s.inFlight, s.fastest, s.slowest)
}

func constant(x float64) func(time.Duration) float64 {
	return func(time.Duration) float64 { return x }
}

// pacedShare simulates the scenario twice, with and without a pacer. It returns the number of
// calls that the service accepts with the pacer, divided by the number without the pacer.
func pacedShare(s scenario) float64 {
	paced := s.run().all().passed
	s.unpaced = true
	return paced / s.run().all().passed
}

func TestRandomThrottlesCostLittle(t *testing.T) {
	for _, row := range []struct{ chance, least float64 }{{0.001, 0.95}, {0.01, 0.85}, {0.02, 0.75}, {1. / 30, 0.45}} {
		for _, s := range nets {
			t.Run(fmt.Sprintf("%.1f %%, %v", 100*row.chance, s), func(t *testing.T) {
				worst := 1.0
				for s.seed = range seeds() {
					s.length, s.throttleChance = 30*second, row.chance
					worst = min(worst, pacedShare(s))
				}
				t.Logf("at least %.3f of the calls that pass without a pacer", worst)
				assert.Greater(t, worst, row.least)
			})
		}
	}
}

func TestOneThrottleBeforeABurst(t *testing.T) {
	for _, s := range nets {
		t.Run(s.String(), func(t *testing.T) {
			took := func(unpaced bool) time.Duration {
				first := true
				s.length, s.limit, s.unpaced = time.Hour, 5000, unpaced
				s.outage = func(time.Duration) attempt.Load {
					if first {
						first = false
						return attempt.LoadThrottled
					}
					return attempt.LoadPassed
				}
				return s.run().end
			}
			cost := took(false).Seconds() / took(true).Seconds()
			t.Logf("takes %.2f times as long", cost)
			assert.Less(t, cost, 2.0)
		})
	}
}

func TestTroubleByChanceCostsLittle(t *testing.T) {
	for _, share := range []float64{0.1, 0.25, 0.4} {
		for _, s := range nets {
			t.Run(fmt.Sprintf("%.0f %%, %v", 100*share, s), func(t *testing.T) {
				worst := 1.0
				for s.seed = range seeds() {
					s.length, s.troubled = 20*second, constant(share)
					worst = min(worst, pacedShare(s))
				}
				t.Logf("at least %.3f of the calls that pass without a pacer", worst)
				assert.Greater(t, worst, 0.9)
			})
		}
	}
}

func TestQuotaIsUsedAndKept(t *testing.T) {
	for _, quota := range []float64{30, 300, 3000} {
		for _, burst := range []float64{1, 0.1} {
			for _, s := range nets {
				if float64(s.inFlight)/(s.fastest+s.slowest).Seconds()*2 < 1.2*quota {
					continue // the scenario is too slow to reach the quota
				}
				t.Run(fmt.Sprintf("%v calls/s, burst %v s, %v", quota, burst, s), func(t *testing.T) {
					s.quota, s.burst, s.length = constant(quota), burst, 150*second
					var all tally
					used, throttled, first := 1.0, 0.0, 0.0
					for s.seed = range seeds() {
						o := s.run()
						later := o.between(30*second, s.length)
						all.add(later)
						used = min(used, later.passed/(quota*120))
						throttled = max(throttled, later.throttle())
						first = max(first, o.between(0, 40*second).throttle())
					}
					t.Logf("%.3f used, %.2f %% throttled; in the worst run %.3f, %.2f %%, and %.2f %% in the first 40 s",
						all.passed/(quota*120*float64(seeds())), 100*all.throttle(), used, 100*throttled, 100*first)
					assert.Greater(t, all.passed, 0.95*quota*120*float64(seeds()))
					assert.Greater(t, used, 0.92)
					assert.Less(t, all.throttle(), 0.01)
					assert.Less(t, throttled, 0.015)
					if quota > 100 {
						assert.Less(t, first, 0.035, "with what it takes to find the quota")
					}
				})
			}
		}
	}
}

func TestQuotaChanges(t *testing.T) {
	for _, burst := range []float64{1, 0.1} {
		for _, s := range nets {
			if s.inFlight == 1 {
				// With one call at a time (about 670 per second), a quota of 600 has
				// little effect.
				continue
			}
			t.Run(fmt.Sprintf("burst %v s, %v", burst, s), func(t *testing.T) {
				s.length, s.burst = 90*second, burst
				s.quota = func(at time.Duration) float64 {
					switch {
					case at < 30*second:
						return 300
					case at < 60*second:
						return 100
					default:
						return 600
					}
				}
				lower, higher, mean, throttled := 1.0, 1.0, 0.0, 0.0
				for s.seed = range seeds() {
					o := s.run()
					lower = min(lower, o.passing(35*second, 60*second)/100)
					found := o.passing(75*second, 90*second) / 600
					higher, mean = min(higher, found), mean+found/float64(seeds())
					throttled = max(throttled, o.all().throttle())
				}
				t.Logf("at least %.3f of 100 after 5 s, %.3f (mean %.3f) of 600 after 15 s; at most %.2f %% throttled", lower, higher, mean, 100*throttled)
				assert.Greater(t, lower, 0.93)
				assert.Greater(t, higher, 0.85)
				assert.Greater(t, mean, 0.93)
				assert.Less(t, throttled, 0.025)
			})
		}
	}
}

func TestOutageSlowsCallsUntilItEnds(t *testing.T) {
	for _, load := range []attempt.Load{attempt.LoadTroubled, attempt.LoadThrottled} {
		for _, quota := range []float64{300, 1e9} {
			for _, s := range nets {
				t.Run(fmt.Sprintf("load %v, quota %v, %v", load, quota, s), func(t *testing.T) {
					const from, to = 20 * second, 200 * second
					s.length, s.burst, s.quota = to+15*second, 1, constant(quota)
					s.outage = func(at time.Duration) attempt.Load {
						if at < from || at >= to {
							return attempt.LoadPassed
						}
						return load
					}
					for s.seed = range seeds() {
						o := s.run()
						before := o.passing(10*second, from)
						during := o.between(from+10*second, to).calls() / (to - from - 10*second).Seconds()
						after := o.passing(to+5*second, s.length)
						if s.seed == 0 {
							t.Logf("%.0f/s before, %.1f/s during, %.0f/s 5 s after it", before, during, after)
						}
						assert.InDelta(t, 11, during, 3)
						assert.Greater(t, after, 0.85*before)
					}
				})
			}
		}
	}
}

func TestProducersShareAQuota(t *testing.T) {
	for _, n := range []int{2, 4, 8} {
		for _, burst := range []float64{1, 0.1} {
			t.Run(fmt.Sprintf("%d producers, burst %v s", n, burst), func(t *testing.T) {
				s := nets[2]
				s.producers, s.burst, s.quota, s.length = n, burst, constant(300), 360*second
				s.joins = func(i int) time.Duration { return time.Duration(i) * 5 * second }
				for s.seed = range seeds() {
					o := s.run()
					var sum, squares float64
					var each []int
					for i := range n {
						x := o.producer(i, 60*second, s.length).passed / 300
						sum, squares, each = sum+x, squares+x*x, append(each, int(x))
					}
					fair := sum * sum / squares / float64(n) // Jain's index: 1/n to 1
					all := o.between(60*second, s.length)
					t.Logf("%v calls/s, fairness %.2f, %.3f used, %.2f %% throttled", each, fair, sum/300, 100*all.throttle())
					assert.Greater(t, fair, 0.6)
					assert.Greater(t, sum, 0.95*300)
					assert.Less(t, all.throttle(), 0.04)
				}
			})
		}
	}
}

func TestIdleMinuteForgetsNothing(t *testing.T) {
	for _, s := range nets {
		t.Run(s.String(), func(t *testing.T) {
			s.length, s.burst, s.quota = 120*second, 0.1, constant(300)
			s.idle = func(at time.Duration) bool { return at > 40*second && at < 100*second }
			for s.seed = range seeds() {
				o := s.run()
				first := o.between(100*second, 101*second)
				used := o.passing(102*second, 119*second) / 300
				if s.seed == 0 {
					t.Logf("%.0f calls in the first second, then %.3f used", first.calls(), used)
				}
				assert.Less(t, first.calls(), 1.3*300, "no burst")
				assert.Greater(t, first.passed, 0.9*300, "no search")
				assert.Greater(t, used, 0.9)
			}
		})
	}
}

// limited returns a pacer that has found a limit, and the current time of the simulation.
func limited(t *testing.T) (*pacer.Pacer, time.Time) {
	p := &pacer.Pacer{}
	now := epoch
	for n := 0; n < 20_000; n++ {
		if wait := p.Wait(now); wait > 0 {
			now = now.Add(wait)
		}
		p.Start(now)
		load := attempt.LoadPassed
		if n > 1000 && n < 1100 {
			load = attempt.LoadThrottled
		}
		now = now.Add(ms)
		p.Answered(now, now.Add(-ms), load)
		if n > 1100 && p.Rate() > 300 {
			break
		}
	}
	require.Greater(t, p.Rate(), 300.0)
	return p, now
}

func TestOneCutForAllThatWasInFlight(t *testing.T) {
	p := &pacer.Pacer{}
	for range 64 {
		require.Zero(t, p.Wait(epoch))
		p.Start(epoch)
	}
	rates := map[float64]bool{}
	for i := range 64 {
		p.Answered(epoch.Add(time.Duration(i)*ms), epoch, attempt.LoadThrottled)
		rates[p.Rate()] = true
	}
	assert.Len(t, rates, 2, "no limit, then one cut")
	assert.Positive(t, p.Rate())
}

func TestCutRightAfterARiseIsNoFall(t *testing.T) {
	p, now := limited(t)
	// Make calls until the pacer raises the rate. The loop then returns.
	for began := now; ; began = now {
		rate := p.Rate()
		now = now.Add(p.Wait(now))
		p.Start(now)
		p.Answered(now.Add(ms), now, attempt.LoadPassed)
		if now = now.Add(ms); p.Rate() > rate {
			for range 4 { // requests that started just before the rate was raised
				p.Answered(now, began, attempt.LoadThrottled)
			}
			assert.GreaterOrEqual(t, p.Rate(), rate/10)
			return
		}
	}
}

// Far too many calls start at once. Wait still returns at most MaxWait (one second), although
// the limit permits so many calls only in a much longer time.
func TestDebtIsBounded(t *testing.T) {
	p, now := limited(t)
	p.Wait(now)
	for range 100_000 {
		p.Start(now)
	}
	assert.Equal(t, pacer.MaxWait, p.Wait(now))
	assert.Zero(t, p.Wait(now.Add(2*second)))
}

func TestClock(t *testing.T) {
	t.Run("stands still", func(t *testing.T) {
		p, now := limited(t)
		for range 1000 {
			if p.Wait(now) == 0 {
				p.Start(now)
			}
			p.Answered(now, now, attempt.LoadThrottled)
		}
		assert.Positive(t, p.Wait(now))
		now = now.Add(second)
		assert.Zero(t, p.Wait(now))
	})
	t.Run("jumps forward", func(t *testing.T) {
		p, began := limited(t)
		rate := p.Rate()
		now := began.Add(1000 * time.Hour)
		burst := 0
		for ; p.Wait(now) == 0; burst++ {
			p.Start(now)
		}
		assert.LessOrEqual(t, float64(burst), 2+rate/100)
		for range 10 {
			p.Answered(now, now, attempt.LoadTroubled)
		}
		assert.InDelta(t, rate, p.Rate(), 0.6*rate)
	})
	t.Run("jumps forward, then a cut", func(t *testing.T) {
		p, began := limited(t)
		rate := p.Rate()
		for range 200 {
			began = began.Add(p.Wait(began))
			p.Start(began)
		}
		now := began.Add(1000 * time.Hour)
		for range 4 {
			p.Answered(now, began, attempt.LoadThrottled)
		}
		assert.GreaterOrEqual(t, p.Rate(), rate/25, "200 calls in a second or less")
	})
	t.Run("goes back", func(t *testing.T) {
		p, now := limited(t)
		now = now.Add(-time.Hour)
		for range 100 {
			assert.LessOrEqual(t, p.Wait(now), pacer.MaxWait)
			p.Start(now)
			p.Answered(now, now, attempt.LoadPassed)
		}
	})
}

func FuzzPacer(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 255, 254, 3, 3, 3, 3, 3, 3})
	f.Add([]byte{1, 10, 1, 10, 1, 10, 1, 10, 1, 10, 1, 10, 1, 10, 1, 10, 7, 200, 0, 0})
	f.Fuzz(func(t *testing.T, steps []byte) {
		p := &pacer.Pacer{}
		now := epoch
		var began []time.Time
		for _, step := range steps {
			amount := time.Duration(step >> 3)
			switch step & 7 {
			case 0: // time passes
				now = now.Add(amount * ms)
			case 1: // much time passes
				now = now.Add(amount * amount * amount * second)
			case 2: // the clock goes back
				now = now.Add(-amount * second)
			case 3, 4: // requests start; this caller of the pacer ignores Wait
				for range amount + 1 {
					p.Start(now)
					began = append(began, now)
				}
			default:
				for n := amount; n > 0 && len(began) > 0; n-- {
					i := int(n) % len(began)
					p.Answered(now, began[i], attempt.Load(step&7-5))
					began = append(began[:i], began[i+1:]...)
				}
			}
			wait, rate := p.Wait(now), p.Rate()
			if wait < 0 || wait > pacer.MaxWait {
				t.Fatalf("Wait: got %v", wait)
			}
			if math.IsNaN(rate) || rate != 0 && rate < 10 || rate > 2e6 {
				t.Fatalf("Rate: got %v", rate)
			}
			if rate == 0 && wait > 0 {
				t.Fatalf("Wait: got %v without a limit", wait)
			}
		}
	})
}

func TestNoAllocations(t *testing.T) {
	p, now := limited(t)
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		now = now.Add(p.Wait(now))
		p.Start(now)
		p.Answered(now, now, attempt.LoadPassed)
	}))
}

func BenchmarkPacer(b *testing.B) {
	for _, row := range []struct {
		name     string
		throttle int
	}{{"no limit", 0}, {"limited", 100}} {
		b.Run(row.name, func(b *testing.B) {
			b.ReportAllocs()
			p := &pacer.Pacer{}
			now, n := epoch, 0
			for b.Loop() {
				now = now.Add(p.Wait(now))
				p.Start(now)
				load := attempt.LoadPassed
				if n++; n < row.throttle {
					load = attempt.LoadThrottled
				}
				p.Answered(now.Add(ms), now, load)
			}
		})
	}
}
