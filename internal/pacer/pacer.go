// Package pacer decides when the next request to SQS may start. It lowers the rate of
// requests when SQS throttles, and searches for the highest rate that SQS accepts.
//
// A quota of SQS limits the calls a second, but the answer to a throttled call does not
// contain the limit, and one throttle does not prove a limit. A Pacer therefore changes
// nothing until clearly more answers are throttles than chance explains. Then it searches
// for the highest rate without throttles and stays just below this rate.
//
// A Pacer does not limit the number of calls in flight. It does not react while less than
// about 3 % of the calls are throttled, or less than half of the calls fail.
//
// A stray throttle is a throttle without a quota. Stray throttles make a Pacer too slow. In
// simulations of four networks, one stray throttle in 50 calls leaves 89 to 93 % of the
// rate on average, one in 30 leaves 49 to 86 %, and one in ten 8 to 45 %. The worst run
// with one in 30 kept 28 %.
package pacer

import (
	"math"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
)

// MaxWait is the longest wait that Wait returns.
const MaxWait = time.Second

const (
	lowestRate  = 10  // calls a second, enough to notice the end of an outage
	highestRate = 1e6 // calls a second; above this rate the limit is dropped, as no queue is faster

	// timerDelay is the time by which a timer may fire late. Calls that could not start
	// during this delay may then start in a small burst, which Wait permits.
	timerDelay = 10 * time.Millisecond

	// A period is the time between two changes of the rate. A period is light if fewer
	// calls start than inUse (80 %) of the allowed calls. A light period does not show
	// whether the rate is too high. It ends after lightTime.
	inUse     = 0.8
	lightTime = time.Second

	// usedTime is the shortest period in which the pacer measures the calls started a
	// second.
	usedTime = 100 * time.Millisecond
)

// These constants decide when to lower the rate. A failed call adds 1 to a sum, and a
// passed call subtracts the credit. When the sum reaches the limit, the pacer lowers the
// rate (see evidence).
const (
	// The pacer takes four throttles in a row as a sign of a quota. At 1 % of stray
	// throttles there is about one false alarm in 150,000 calls.
	throttleLimit  = 4
	throttleCredit = 0.03

	// More than half of the calls must fail before the pacer reacts, because a lower rate
	// rarely helps if a service fails only some calls.
	troubleLimit  = 32
	troubleCredit = 1

	// After a cut of the rate, requests that started before the cut reach the service for
	// another half of a round trip. They use up the quota of later requests, so the
	// answers to requests that start in this time prove nothing. This time is at most
	// settleMost, even after a slow answer.
	settleMost = 50 * time.Millisecond
)

// These constants detect stray throttles, which come at any rate. With a quota, in
// contrast, SQS throttles no call at a rate far below the quota. If SQS throttles about
// the same share of the calls at a very low rate as before, a lower rate does not help.
// The pacer then restores the rate from before the throttles, and treats this share of
// throttles as chance from then on. A share above strayMost is never treated as chance,
// because other producers that use the same quota also cause throttles at any rate.
const (
	strayBelow = 0.15 // a rate is very low below this fraction of the calls a second that passed before the rate was lowered
	strayAlike = 0.5  // two shares are about the same if the later is at least this fraction of the former
	strayMost  = 0.1  // largest share of throttled calls that may be chance
	strayFade  = 2000 // calls over which the stray share is averaged

	// With stray throttles, the pacer needs more throttles for a decision. In the type
	// evidence, the credit of a passed call is at least strayCredit times the stray
	// share. In the first trial of a higher rate, the permitted throttles include
	// strayTrial times the stray share of the passed calls.
	strayCredit = 2
	strayTrial  = 1.5
)

// These constants decide how far to lower the rate.
const (
	// If a larger share than heavyShare of the calls failed, the quota is much lower, and
	// the share does not show how low. The same holds if the pacer had no limit so far,
	// because a burst may hide a much lower quota. In both cases the pacer keeps the
	// share searchKeep of the rate, and then doubles the rate until SQS throttles calls
	// again.
	heavyShare = 0.75
	searchKeep = 0.125

	// In other cases the pacer lowers the rate by cutShare times the failed share. If a
	// cut is too small, another cut soon follows. A cut that is too large takes longer to
	// correct, so cutShare is below 1.
	cutShare = 0.8

	// These constants apply after a failed trial of a higher rate, if SQS accepted fewer
	// calls a second than nearHeld times the held rate (the rate before the trial). The
	// trial suggests a rate: trialKeep times the accepted calls a second. If this is
	// above the held rate, the pacer raises the held rate by trialWeight (a quarter) of
	// the difference. Otherwise it keeps the held rate. The weight is small, because a
	// trial has few calls.
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
	holdMost  = 25 * time.Second // longest time that a rate is held

	// The first trial raises the rate by the share riseFirst, enough to stand out from
	// chance. Further trials raise the rate by riseNext. While the pacer searches for a
	// quota after a large cut, each trial raises it by riseSearch.
	riseFirst  = 0.25
	riseNext   = 0.5
	riseSearch = 1

	// A trial raises the rate by a share, Pacer.rise. It ends after trialCalls/rise²
	// passed calls, but not before trialTime. After trialMost, trialCalls calls are
	// enough. The first trial is the longest: while the rate was held, the quota has
	// saved up calls for a burst, and the trial must use up these calls.
	trialCalls = 10
	trialTime  = 300 * time.Millisecond
	trialMost  = 6 * time.Second

	// The first trial fails when its throttles reach failLeast plus failShare of its
	// passed calls, plus the allowance for stray throttles. This limit is low, because
	// the rate falls little after a failed trial.
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

	// While the rate is held, rate equals base. During a trial, rate is above base.
	base float64 // last held rate; 0 during the search after a large cut
	rise float64 // share by which the current or next trial raises the rate

	// These fields describe the current period, the time since the last change of the
	// rate.
	since           time.Time
	started         float64
	lightRate       float64 // calls a second in the last light period
	passed, refused float64 // numbers of passed and throttled requests of this period
	trimmed         bool

	cut       time.Time // answers to requests started before cut prove nothing
	throttles evidence
	troubles  evidence

	// An alarm is a sign of a quota: more throttles than chance explains. The field alarm
	// describes the alarm with the highest rate. Its rate is 0 if there was no alarm. The
	// field is reset when the pacer treats the throttles as stray, when it drops the
	// limit, and by an alarm with a share above heavyShare.
	alarm struct {
		rate, share float64
		limited     bool // the rate was limited at the alarm
	}
	// stray is the average share of calls with a throttle by chance. found is the largest
	// permitted value of stray, set when the pacer detects stray throttles.
	stray, found float64
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
		if p.base > 0 && p.rate > p.base { // a trial in a light period proves nothing, so undo it
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

// handleAlarm is called when there are more throttles than chance explains. The cause is a
// quota, or a large share of stray throttles.
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

// restoreAlarmRate returns to the rate at the alarm, because about the same share of calls
// is throttled at a much lower rate: the throttles are stray.
func (p *Pacer) restoreAlarmRate(now time.Time, share float64) {
	back := Pacer{lightRate: p.alarm.rate, stray: share, found: share, cut: now, at: now}
	if p.alarm.limited {
		back.rate, back.base, back.rise = p.alarm.rate, p.alarm.rate, riseFirst
	}
	*p = back
	p.beginPeriod(now)
}

// lowerRate lowers the rate. The parameter share is the share of the recent calls that
// failed, and began is the start of the last failed call.
func (p *Pacer) lowerRate(now, began time.Time, share float64) {
	rate := p.usedRate(now)
	passedRate := rate * (1 - share)
	trial := p.rate > p.base
	switch {
	case p.rate == 0 || share > heavyShare: // a quota may be much lower than the rate
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

// usedRate returns the calls a second that started in the current period, at most the
// allowed rate.
func (p *Pacer) usedRate(now time.Time) float64 {
	age := min(now.Sub(p.since), lightTime) // a period is longer only after a jump of the clock
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
	case p.trimmed: // the rate was lowered once without effect, so the throttles may be chance
		p.beginTrial(now)
	default:
		p.rate = max(lowestRate, p.rate*trimKeep*p.passed/(p.passed+p.refused))
		p.base, p.refused, p.trimmed = p.rate, 0, true
	}
}

// recordPass records a passed call in the current period. After enough calls it ends the
// period and begins a trial.
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

// evidence detects a lasting change by a cumulative sum. Each failure adds 1, and each
// success subtracts a credit; the sum is never below 0. While the share of failures is
// smaller than about the credit, the sum keeps returning to 0. With a larger share the sum
// reaches any limit, and sooner for a larger share.
type evidence struct {
	sum         float64
	failed, all float64 // calls since the sum was 0
}

// addFailure adds a failed call and reports whether the sum has reached the limit.
func (e *evidence) addFailure(limit float64) bool {
	e.sum++
	e.failed++
	e.all++
	return e.sum >= limit
}

// addSuccess adds a passed call: it lowers the sum by the credit, to no less than 0.
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
