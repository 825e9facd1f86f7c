// Package pacer decides when the next request may start, from the load in earlier
// answers.
//
// A quota of SQS limits calls a second, but a throttle does not report the limit, and
// one throttle does not prove a limit. A Pacer therefore changes nothing until clearly
// more answers are throttles than chance explains. Then it searches for the highest
// rate without throttles and stays just below this rate.
//
// A Pacer does not limit the number of calls in flight. It does not react while less
// than about 3 % of the calls are throttled, or less than half of the calls fail.
//
// Stray throttles come without a quota. In simulations of four networks, one stray
// throttle in 50 calls leaves 89 to 93 % of the rate on average, one in 30 leaves 49 to
// 86 %, and one in ten 8 to 45 %. The worst run with one in 30 kept 28 %.
package pacer

import (
	"math"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
)

// MaxWait is the longest wait returned by Wait.
const MaxWait = time.Second

const (
	lowestRate  = 10  // calls a second, enough to notice the end of an outage
	highestRate = 1e6 // calls a second; no queue reaches top, so a higher limit is dropped

	// timerDelay is the delay of timers; a small burst compensates for the delay.
	timerDelay = 10 * time.Millisecond

	// If fewer calls start in a period than this share of the allowed calls, the period
	// proves nothing about the rate. Such a period ends after lightTime.
	inUse     = 0.8
	lightTime = time.Second

	// usedTime is the shortest period for a measurement of started calls a second.
	usedTime = 100 * time.Millisecond
)

// When to cut. The comment on evidence explains the numbers.
const (
	// The pacer takes four throttles in a row as a sign of a quota. At 1 % of stray
	// throttles there is about one false alarm in 150,000 calls.
	throttleLimit  = 4
	throttleCredit = 0.03

	// More than half of the calls must fail before the pacer reacts, because a lower rate
	// rarely helps a service that fails only some calls.
	troubleLimit  = 32
	troubleCredit = 1

	// Requests that started before a cut of the rate reach the service for another half of
	// a round trip. They use the quota of later requests, so the answers to the later
	// requests prove nothing either. A slow answer extends this time by at most settleMost.
	settleMost = 50 * time.Millisecond
)

// These constants detect stray throttles, which come at any rate. A quota throttles
// nothing at a rate far below the accepted calls a second. If SQS throttles about the
// same share of the calls at such a low rate as before, a lower rate does not help. The
// pacer then returns to the former rate, and from then on the share counts as chance. A
// share above strayMost never counts as chance, because other producers that use the same
// quota cause throttles at any rate too.
const (
	strayBelow = 0.15 // of the calls that got through
	strayAlike = 0.5  // of the former share, at least
	strayMost  = 0.1  // of the calls
	strayFade  = 2000 // calls over which the stray share is averaged

	// Both constants are factors of the stray share. strayCredit gives the credit of a
	// passed call in evidence, and strayTrial the additional throttled share that does
	// not fail a first trial.
	strayCredit = 2
	strayTrial  = 1.5
)

// How far to cut.
const (
	// A failed share above heavy shows only that the quota is much lower. Without a
	// limit, a burst may hide a much lower quota. In both cases the pacer keeps
	// searchKeep of the rate, and then doubles the rate until SQS throttles calls again.
	heavyShare = 0.75
	searchKeep = 0.125

	// In other cases the pacer reduces the rate by cutShare of the failed share. It soon
	// corrects a cut that is too small by another cut, but notices later that a cut was
	// too large.
	cutShare = 0.8

	// If the passed rate of a failed trial is below near times the held rate, the pacer
	// returns to the held rate. It adds the share learn of the distance to trialKeep
	// times the passed rate. The share is small, because a trial has few calls.
	nearHeld    = 1.5
	trialWeight = 0.25
	trialKeep   = 0.95
)

// These constants decide when to raise the rate. A trial of a higher rate costs a few
// throttles, so the pacer holds a rate long enough to keep throttles below 1 % of the
// calls.
const (
	holdCalls = 800
	holdTime  = 10 * time.Second
	holdMost  = 25 * time.Second // enough for any number of calls

	// The first trial raises the rate by riseFirst, enough to stand out from chance.
	// Further trials raise it by riseNext. While the pacer searches for a quota (heavy),
	// each trial raises it by riseSearch.
	riseFirst  = 0.25
	riseNext   = 0.5
	riseSearch = 1

	// A trial takes trialCalls/rise² calls. The first trial is the longest, because it
	// must use up the burst that a quota saved while the rate was held.
	trialCalls = 10
	trialTime  = 300 * time.Millisecond
	trialMost  = 6 * time.Second

	// The first trial ends as failed when its throttles reach failLeast plus failShare of
	// its passed calls, plus the tolerance for stray throttles. The limit is low, because
	// a failed trial costs little.
	failLeast = 2
	failShare = 0.02

	// A held rate is slightly too high if at least trimCalls calls have passed and the
	// throttles reach trimLeast plus trimShare of the passed calls. The pacer then
	// multiplies the rate by the passed share and by trimKeep.
	trimLeast = 4
	trimShare = 0.005
	trimCalls = 100
	trimKeep  = 0.98
)

// Pacer spaces the starts of requests. The zero value is ready to use and has no limit.
// The caller passes the time. A Pacer is not safe for concurrent use.
type Pacer struct {
	rate   float64   // calls a second; 0 means no limit
	tokens float64   // calls that may start now
	at     time.Time // time of the last change of tokens

	// The rate equals base while it is held and is above base during a trial.
	base float64 // last held rate; 0 while searching
	rise float64 // relative increase of the current or next trial

	// The current period: no increase of the rate within it.
	since           time.Time
	started         float64
	lightRate       float64 // calls a second in the last period of light use
	passed, refused float64 // answers to requests of this period
	trimmed         bool

	cut       time.Time // requests started earlier prove nothing
	throttles evidence
	troubles  evidence

	// alarm describes the alarm with the highest rate since the last reset. Its rate is 0
	// without an alarm. A call of forgive, the end of the limit, and an alarm with a
	// share above heavy reset it.
	alarm struct {
		rate, share float64
		limited     bool // the rate was a limit
	}
	stray, found float64 // throttled share that is chance, and its value when it was found
}

// Rate returns the calls a second allowed by p, or 0 without a limit.
func (p *Pacer) Rate() float64 { return p.rate }

// Wait returns the wait before the next request: 0 if it may start now, and at most
// MaxWait.
func (p *Pacer) Wait(now time.Time) time.Duration {
	if p.rate == 0 {
		return 0
	}
	if past := now.Sub(p.at); past > 0 {
		p.tokens = min(1+p.rate*timerDelay.Seconds(), p.tokens+p.rate*past.Seconds())
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
		if p.base > 0 && p.rate > p.base { // the trial proves nothing: undo it
			p.rate /= 1 + p.rise
			p.base, p.rise = p.rate, riseFirst
		}
		p.lightRate = p.started / age.Seconds()
		p.beginPeriod(now)
	}
	p.started++
	if p.rate > 0 {
		p.tokens = max(p.tokens-1, -p.rate)
	}
}

// Answered records the answer to a request started at began. Call Answered exactly once
// for each started request, in any order.
func (p *Pacer) Answered(now, began time.Time, load attempt.Load) {
	if !began.After(p.cut) {
		return
	}
	switch load {
	case attempt.Throttled:
		p.stray = min(p.stray+1./strayFade, p.found)
		if p.throttles.addFailure(throttleLimit) {
			p.handleAlarm(now, began, p.throttles.share())
		} else if p.rate > 0 && began.After(p.since) {
			p.recordThrottle(now, began)
		}
	case attempt.Troubled:
		if p.troubles.addFailure(troubleLimit) {
			p.lowerRate(now, began, p.troubles.share())
		}
	default:
		p.stray -= p.stray / strayFade
		p.throttles.addSuccess(max(throttleCredit, strayCredit*p.stray))
		p.troubles.addSuccess(troubleCredit)
		if p.rate > 0 && began.After(p.since) {
			p.recordPass(now)
		}
	}
}

// handleAlarm handles more throttles than chance explains: a quota, or stray throttles.
func (p *Pacer) handleAlarm(now, began time.Time, share float64) {
	rate, a := p.usedRate(now), &p.alarm
	if a.rate > 0 && rate < strayBelow*a.rate*(1-a.share) && share <= strayMost && share >= strayAlike*a.share {
		p.restoreAlarmRate(now, share)
		return
	}
	if share > heavyShare {
		a.rate = 0
	} else if rate > a.rate {
		a.rate, a.share, a.limited = rate, share, p.rate > 0
	}
	p.lowerRate(now, began, share)
}

// restoreAlarmRate returns to the rate at the alarm, because the throttled share is about the
// same at a lower rate.
func (p *Pacer) restoreAlarmRate(now time.Time, share float64) {
	back := Pacer{lightRate: p.alarm.rate, stray: share, found: share, cut: now, at: now}
	if p.alarm.limited {
		back.rate, back.base, back.rise = p.alarm.rate, p.alarm.rate, riseFirst
	}
	*p = back
	p.beginPeriod(now)
}

// lowerRate lowers the rate, because the given share of the recent calls failed.
func (p *Pacer) lowerRate(now, began time.Time, share float64) {
	rate := p.usedRate(now)
	passedRate := rate * (1 - share)
	trial := p.rate > p.base
	switch {
	case p.rate == 0 || share > heavyShare: // a burst may hide a much lower quota
		rate *= searchKeep
		p.base, p.rise = 0, riseSearch
	case trial && passedRate < nearHeld*p.base:
		rate = p.base + trialWeight*max(0, trialKeep*passedRate-p.base)
		p.base, p.rise = rate, riseFirst
	default:
		rate = max(rate*(1-cutShare*share), lowestRate)
		if trial {
			rate = max(rate, p.base)
		}
		p.base, p.rise = rate, riseFirst
	}
	p.rate = max(rate, lowestRate)
	p.cut = now.Add(min(now.Sub(began)/2, settleMost))
	p.at, p.tokens = now, 0
	p.throttles, p.troubles = evidence{}, evidence{}
	p.beginPeriod(now)
}

// usedRate returns the calls a second that started recently, at most the limit.
func (p *Pacer) usedRate(now time.Time) float64 {
	age := min(now.Sub(p.since), lightTime) // longer only after a jump of the clock
	if p.rate == 0 {
		return max(p.lightRate, p.started/max(age, timerDelay).Seconds())
	}
	if age < usedTime { // too short for a measurement
		return p.rate
	}
	return min(p.rate, p.started/age.Seconds())
}

// recordThrottle records a throttle in the current period.
func (p *Pacer) recordThrottle(now, began time.Time) {
	p.refused++
	switch {
	case p.rate > p.base:
		if p.rise == riseFirst && p.refused >= failLeast+(failShare+strayTrial*p.stray)*p.passed {
			p.lowerRate(now, began, p.refused/(p.passed+p.refused))
		}
	case p.passed < trimCalls || p.refused < trimLeast+trimShare*p.passed:
	case p.trimmed: // a lower rate did not help: possibly chance
		p.beginTrial(now)
	default:
		p.rate = max(lowestRate, p.rate*trimKeep*p.passed/(p.passed+p.refused))
		p.base, p.refused, p.trimmed = p.rate, 0, true
	}
}

// recordPass records a passed call in the current period, and ends the period after enough
// calls.
func (p *Pacer) recordPass(now time.Time) {
	p.passed++
	age := now.Sub(p.since)
	if p.rate > p.base {
		enough := p.passed >= trialCalls/(p.rise*p.rise) || p.passed >= trialCalls && age >= trialMost
		if enough && age >= trialTime {
			p.rate *= p.passed / (p.passed + p.refused)
			if p.base > 0 {
				p.rise = riseNext
			}
			p.beginTrial(now)
		}
	} else if p.passed >= holdCalls && age >= holdTime || age >= holdMost {
		p.beginTrial(now)
	}
}

// beginTrial begins a trial of a higher rate.
func (p *Pacer) beginTrial(now time.Time) {
	p.rate = max(p.rate*(1+p.rise), lowestRate)
	p.beginPeriod(now)
	if p.rate > highestRate {
		*p = Pacer{cut: p.cut, stray: p.stray, found: p.found}
	}
}

// beginPeriod begins a period.
func (p *Pacer) beginPeriod(now time.Time) {
	p.since, p.started, p.passed, p.refused, p.trimmed = now, 0, 0, 0, false
}

// evidence distinguishes a lasting change from chance with a cumulative sum. Each
// failure adds 1, and each success subtracts a credit, down to 0. While the failures
// are a smaller share than about the credit, the sum keeps returning to 0. With a
// larger share the sum reaches any limit, sooner for larger shares.
type evidence struct {
	sum         float64
	failed, all float64 // calls since the sum was 0
}

// addFailure adds a failure and reports whether the sum has reached the limit.
func (e *evidence) addFailure(limit float64) bool {
	e.sum++
	e.failed++
	e.all++
	return e.sum >= limit
}

// addSuccess adds a success.
func (e *evidence) addSuccess(credit float64) {
	e.sum -= credit
	e.all++
	if e.sum <= 0 {
		*e = evidence{}
	}
}

// share returns the failed share of the calls since the sum was 0. It leaves out
// the first call, which always failed.
func (e *evidence) share() float64 { return (e.failed - 1) / max(e.all-1, 1) }
