// Package pacer decides when the next request may start, given what earlier
// answers said about load.
//
// A quota of SQS limits calls a second, and a throttle does not say what the limit
// is. Nor does one throttle prove that there is a limit. A Pacer therefore changes
// nothing until clearly more answers are throttles than chance explains. Then it
// searches for the highest rate that gets through and stays just below it.
//
// A Pacer does not bound the number of calls in flight, and it does not react while
// fewer than about 3 % of the calls are throttled or half of them fail.
package pacer

import (
	"math"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
)

// MaxWait bounds what Wait returns.
const MaxWait = time.Second

const (
	floor = 10  // calls a second: during an outage they find out when it ends
	top   = 1e6 // calls a second: no queue reaches it, so a higher limit is dropped

	// late is the delay of timers that a small burst makes up for.
	late = 10 * time.Millisecond

	// A rate proves nothing unless this share of it is used. Without that, a period
	// lasts for lightTime.
	inUse     = 0.8
	lightTime = time.Second

	// usedTime is the shortest period that shows how many calls a second start.
	usedTime = 100 * time.Millisecond
)

// When to cut; evidence explains the numbers.
const (
	// A quota shows after four throttles in a row. At 1 % of stray throttles there
	// is a false alarm about once in 150,000 calls.
	throttleLimit  = 4
	throttleCredit = 0.03

	// More than half of the calls have to fail: a lower rate rarely helps a service
	// that fails some of them.
	troubleLimit  = 32
	troubleCredit = 1

	// Requests that started before a cut keep reaching the service for half a round
	// trip and crowd out later ones, so those prove nothing either. A slow answer
	// extends this by at most settleMost.
	settleMost = 50 * time.Millisecond
)

// How far to cut.
const (
	// A throttled share above heavy says only that the quota is much lower. Keep
	// this much of the rate, and double it until the quota shows.
	heavy      = 0.75
	searchKeep = 0.125

	// Otherwise remove this much of the throttled share. Too small a cut is soon
	// followed by another; too large a cut takes longer to notice.
	cutShare = 0.8

	// A trial that failed is over: return to the held rate, unless near times as
	// much got through. Learn from the trial, cautiously as it had few calls: go
	// this share of the way to what got through, times trialKeep.
	near      = 1.5
	learn     = 0.25
	trialKeep = 0.95
)

// When to go up. A trial costs a few throttles, so hold a rate long enough to keep
// them below 1 % of the calls.
const (
	holdCalls = 800
	holdTime  = 10 * time.Second
	holdMost  = 25 * time.Second // enough, whatever the number of calls

	// The first trial goes up by riseFirst, which stands out from chance. Further
	// trials go up by riseNext, and those of a search by riseSearch.
	riseFirst  = 0.25
	riseNext   = 0.5
	riseSearch = 1

	// A trial takes trialCalls/rise². The first one is the longest: it has to use up
	// what a quota with bursts saved while the rate was held.
	trialCalls = 10
	trialTime  = 300 * time.Millisecond
	trialMost  = 6 * time.Second

	// The first trial fails early, as that costs little: after failLeast throttles
	// and failShare of the calls.
	failLeast = 2
	failShare = 0.02

	// A held rate with this share of throttles is slightly too high. Trim it to what
	// got through, times trimKeep.
	trimLeast = 4
	trimShare = 0.005
	trimCalls = 100
	trimKeep  = 0.98
)

// Pacer spaces the starts of requests. The zero value is ready to use and has no
// limit. The time is an argument. A Pacer is not safe for concurrent use.
type Pacer struct {
	rate   float64   // calls a second; 0 means no limit
	tokens float64   // calls that may start now
	at     time.Time // time of tokens

	// The rate equals base while it is held and is above base during a trial.
	base float64 // the rate held last; 0 while searching
	rise float64 // how far the current or next trial goes up

	// The current period, in which the rate does not go up.
	since           time.Time
	started         float64
	lightly         float64 // calls a second in the last period of light use
	passed, refused float64 // answers to requests of this period
	trimmed         bool

	cut       time.Time // requests that began earlier prove nothing
	throttles evidence
	troubles  evidence
}

// Rate returns the calls a second that p allows, or 0 if there is no limit.
func (p *Pacer) Rate() float64 { return p.rate }

// Wait returns how long the next request has to wait: 0 if it may start now, and
// never more than MaxWait.
func (p *Pacer) Wait(now time.Time) time.Duration {
	if p.rate == 0 {
		return 0
	}
	if past := now.Sub(p.at); past > 0 {
		p.tokens = min(1+p.rate*late.Seconds(), p.tokens+p.rate*past.Seconds())
		p.at = now
	}
	if p.tokens >= 1 {
		return 0
	}
	seconds := (1 - p.tokens) / p.rate
	return min(MaxWait, time.Duration(math.Ceil(seconds*float64(time.Second))))
}

// Start counts a request that starts now.
func (p *Pacer) Start(now time.Time) {
	age := now.Sub(p.since)
	if age > lightTime && (p.rate == 0 || p.started < inUse*p.rate*age.Seconds()) {
		if p.base > 0 && p.rate > p.base { // the trial proves nothing, so undo it
			p.rate /= 1 + p.rise
			p.base, p.rise = p.rate, riseFirst
		}
		p.lightly = p.started / age.Seconds()
		p.begin(now)
	}
	p.started++
	if p.rate > 0 {
		p.tokens = max(p.tokens-1, -p.rate)
	}
}

// Answered records the answer to a request that began at the given time. Call it
// exactly once for each request that was started, in any order.
func (p *Pacer) Answered(now, began time.Time, load attempt.Load) {
	if !began.After(p.cut) {
		return
	}
	switch load {
	case attempt.Throttled:
		if p.throttles.against(throttleLimit) {
			p.slow(now, began, p.throttles.share())
		} else if p.rate > 0 && began.After(p.since) {
			p.refuse(now, began)
		}
	case attempt.Troubled:
		if p.troubles.against(troubleLimit) {
			p.slow(now, began, p.troubles.share())
		}
	default:
		p.throttles.inFavor(throttleCredit)
		p.troubles.inFavor(troubleCredit)
		if p.rate > 0 && began.After(p.since) {
			p.pass(now)
		}
	}
}

// slow brings the rate down, as this share of the recent calls failed.
func (p *Pacer) slow(now, began time.Time, share float64) {
	rate := p.used(now)
	through := rate * (1 - share)
	trial := p.rate > p.base
	switch {
	case p.rate == 0 || share > heavy: // a burst may hide how low the quota is
		rate *= searchKeep
		p.base, p.rise = 0, riseSearch
	case trial && through < near*p.base:
		rate = p.base + learn*max(0, trialKeep*through-p.base)
		p.base, p.rise = rate, riseFirst
	default:
		rate = max(rate*(1-cutShare*share), floor)
		if trial {
			rate = max(rate, p.base)
		}
		p.base, p.rise = rate, riseFirst
	}
	p.rate = max(rate, floor)
	p.cut = now.Add(min(now.Sub(began)/2, settleMost))
	p.at, p.tokens = now, 0
	p.throttles, p.troubles = evidence{}, evidence{}
	p.begin(now)
}

// used returns the calls a second that started lately, at most the limit.
func (p *Pacer) used(now time.Time) float64 {
	age := min(now.Sub(p.since), lightTime) // it is more only if the clock jumped
	if p.rate == 0 {
		return max(p.lightly, p.started/max(age, late).Seconds())
	}
	if age < usedTime { // too short to say
		return p.rate
	}
	return min(p.rate, p.started/age.Seconds())
}

// refuse records a throttle in the current period.
func (p *Pacer) refuse(now, began time.Time) {
	p.refused++
	switch {
	case p.rate > p.base:
		if p.rise == riseFirst && p.refused >= failLeast+failShare*p.passed {
			p.slow(now, began, p.refused/(p.passed+p.refused))
		}
	case p.passed < trimCalls || p.refused < trimLeast+trimShare*p.passed:
	case p.trimmed: // a lower rate did not help, so this may be chance
		p.try(now)
	default:
		p.rate = max(floor, p.rate*trimKeep*p.passed/(p.passed+p.refused))
		p.base, p.refused, p.trimmed = p.rate, 0, true
	}
}

// pass records a call that got through in the current period, and ends the period
// if it has shown enough.
func (p *Pacer) pass(now time.Time) {
	p.passed++
	age := now.Sub(p.since)
	if p.rate > p.base {
		enough := p.passed >= trialCalls/(p.rise*p.rise) || p.passed >= trialCalls && age >= trialMost
		if enough && age >= trialTime {
			p.rate *= p.passed / (p.passed + p.refused)
			if p.base > 0 {
				p.rise = riseNext
			}
			p.try(now)
		}
	} else if p.passed >= holdCalls && age >= holdTime || age >= holdMost {
		p.try(now)
	}
}

// try begins a trial of a higher rate.
func (p *Pacer) try(now time.Time) {
	p.rate = max(p.rate*(1+p.rise), floor)
	p.begin(now)
	if p.rate > top {
		*p = Pacer{cut: p.cut}
	}
}

// begin begins a period.
func (p *Pacer) begin(now time.Time) {
	p.since, p.started, p.passed, p.refused, p.trimmed = now, 0, 0, 0, false
}

// evidence distinguishes a lasting change from chance with a cumulative sum. Each failure
// adds 1 and each success takes a credit off, down to 0. While the failures are a
// smaller share than about the credit, the sum keeps returning to 0. With a larger
// share it reaches any limit, and the sooner the larger the share is.
type evidence struct {
	sum         float64
	failed, all float64 // calls since the sum was 0
}

// against adds a failure and reports whether the sum has reached the limit.
func (e *evidence) against(limit float64) bool {
	e.sum++
	e.failed++
	e.all++
	return e.sum >= limit
}

// inFavor adds a success.
func (e *evidence) inFavor(credit float64) {
	e.sum -= credit
	e.all++
	if e.sum <= 0 {
		*e = evidence{}
	}
}

// share returns the failed share of the calls since the sum was 0. It leaves out
// the first call, which always failed.
func (e *evidence) share() float64 { return (e.failed - 1) / max(e.all-1, 1) }
