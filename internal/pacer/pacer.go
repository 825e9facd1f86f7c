// Package pacer decides when the next request to SQS may start. It lowers the rate of
// requests when SQS throttles, and searches for the highest rate that SQS accepts.
//
// A quota of SQS limits the calls per second, but the answer to a throttled call does not
// contain the limit, and one throttle does not prove a limit. A Pacer therefore changes
// nothing until there are clearly more throttles than chance explains. Then it searches for
// the highest rate without throttles and stays just below this rate.
//
// A Pacer does not limit the number of calls in flight. It lowers the rate only if more
// than about 3 % of the calls are throttled, or if more than half of the calls fail because
// of the service or the connection.
//
// SQS may also throttle single calls at random, without a quota. Such a throttle is called
// stray. Many stray throttles look like a quota, so they make a Pacer slower than
// necessary. The table shows the share of the possible rate that was left in simulations of
// four networks, on average over the runs for each network:
//
//	one stray throttle in 50 calls: 89 to 93 %
//	one in 30: 49 to 86 %, in the worst run 28 %
//	one in 10: 8 to 45 %
package pacer

import (
	"math"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
)

// MaxWait is the longest wait that Wait returns.
const MaxWait = time.Second

const (
	lowestRate  = 10  // calls per second, enough to notice the end of an outage
	highestRate = 1e6 // calls per second; above this rate the limit is dropped, as no queue is faster

	// timerDelay is the time by which a timer may fire late. Wait permits a small burst
	// after a late timer: the calls that could have started during this delay may start
	// together.
	timerDelay = 10 * time.Millisecond

	// A period is the time between two changes of the rate (except by trimKeep). A period
	// is called light if fewer calls start than inUse (80 %) of the allowed calls. A light
	// period does not show whether the rate is too high. It ends after lightTime.
	inUse     = 0.8
	lightTime = time.Second

	// usedTime is the shortest period that the pacer uses to measure how many calls start
	// per second.
	usedTime = 100 * time.Millisecond
)

// These constants decide when to lower the rate. The pacer keeps a sum (type evidence): a
// call that fails adds 1, and a call that succeeds subtracts a credit. When the sum reaches
// a limit, the pacer lowers the rate.
const (
	// Four throttles in a row reach the limit, and are taken as a sign of a quota. If SQS
	// throttles 1 % of the calls at random, without a quota, this happens by mistake about
	// once in 150,000 calls.
	throttleLimit  = 4
	throttleCredit = 0.03

	// With a credit of 1, the sum only grows while more than half of the calls fail. The
	// pacer does not react to a smaller share, because a lower rate rarely helps if a
	// service fails only some calls.
	troubleLimit  = 32
	troubleCredit = 1

	// When the pacer lowers the rate, the requests already on the way still reach the
	// service, for about half of a round trip. They use up the quota of requests that start
	// in this time. The pacer therefore ignores the answers to all requests that started
	// before or during this time. It is at most settleMost, even after a slow answer.
	settleMost = 50 * time.Millisecond
)

// These constants detect stray throttles. Stray throttles do not depend on the rate of the
// calls. A quota, in contrast, throttles no call if the rate is far below the quota. So the
// pacer compares two shares of throttled calls: the share before it lowered the rate, and
// the share at a very low rate. If both are about the same, a lower rate does not help. The
// pacer then restores the earlier rate, and from then on regards this share of throttles as
// normal. It does not do this for a share above strayMost, because other producers that use
// the same quota may also cause throttles that do not depend on the rate of this producer.
const (
	// A rate is very low if it is less than this fraction of an earlier rate: the calls per
	// second that SQS accepted before the rate was lowered.
	strayBelow = 0.15
	// Both shares are about the same if the share at the very low rate is at least this
	// fraction of the earlier share.
	strayAlike = 0.5
	// The largest share of throttled calls that the pacer may regard as stray throttles.
	strayMost = 0.1
	// The share of stray throttles is an average over about this number of calls.
	strayFade = 2000

	// If there are stray throttles, the pacer needs more throttles before it lowers the
	// rate. Each successful call then subtracts at least strayCredit times the share of
	// stray throttles from the sum in evidence. In the first trial of a higher rate, the
	// number of throttles that makes the trial fail grows by strayTrial times this share of
	// the successful calls.
	strayCredit = 2
	strayTrial  = 1.5
)

// These constants decide how far to lower the rate.
const (
	// If more than heavyShare (75 %) of the calls failed, the quota may be far below the
	// rate, and the number of failures does not show how far. This is also unknown if the
	// pacer had no limit so far: a quota accepts a burst at first, so it may be much lower
	// than the rate. In both cases the pacer lowers the rate to searchKeep (an eighth), and
	// then doubles the rate until SQS throttles calls again.
	heavyShare = 0.75
	searchKeep = 0.125

	// If neither is the case, the pacer lowers the rate in proportion to the share of
	// failed calls. For example, if 10 % of the calls failed, the new rate is 8 % lower,
	// because cutShare is 0.8. If this is too little, the pacer soon lowers the rate again.
	// Too much takes longer to correct, so cutShare is below 1.
	cutShare = 0.8

	// These constants apply after a failed trial of a higher rate. The rate before the
	// trial is called the held rate. If SQS accepted fewer calls per second during the
	// trial than nearHeld (1.5) times the held rate, the pacer returns to about the held
	// rate. It first estimates the best rate: trialKeep times the calls per second that SQS
	// accepted. If the estimate is above the held rate, the pacer raises the held rate by
	// trialWeight (a quarter) of the difference. Otherwise it keeps the held rate. The
	// weight is small, because a trial has few calls.
	nearHeld    = 1.5
	trialWeight = 0.25
	trialKeep   = 0.95
)

// These constants decide when to raise the rate. The pacer keeps (holds) a rate for some
// time and then tries a higher rate. Such a trial costs a few throttles, so the pacer holds
// each rate long enough to keep throttles below 1 % of the calls.
const (
	holdCalls = 800
	holdTime  = 10 * time.Second
	holdMost  = 25 * time.Second // longest time that a rate is held

	// The first trial after a held rate raises the rate by riseFirst (25 %). This is enough
	// to cause clearly more throttles than chance explains, if the higher rate is above the
	// quota. If the first trial succeeds, each further trial raises the rate by riseNext
	// (50 %). After a rate was lowered to searchKeep, each trial raises the rate by
	// riseSearch (100 %) until SQS throttles calls again.
	riseFirst  = 0.25
	riseNext   = 0.5
	riseSearch = 1

	// A trial ends when trialCalls/rise² calls have succeeded, where rise is the share by
	// which the trial raised the rate. For example, a trial with rise 0.25 needs 160 calls.
	// A trial takes at least trialTime. When it has taken trialMost, trialCalls successful
	// calls are enough. The first trial needs the most calls: while the rate was held, the
	// quota has saved up unused calls, and the trial must use up these calls.
	trialCalls = 10
	trialTime  = 300 * time.Millisecond
	trialMost  = 6 * time.Second

	// The first trial fails when the number of throttles reaches failLeast plus failShare
	// (2 %) of the successful calls of the trial, plus the addition for stray throttles
	// (strayTrial). So few throttles are enough, because a wrong decision costs little: the
	// rate only returns to about the rate before the trial.
	failLeast = 2
	failShare = 0.02

	// A held rate (not raised by a trial) is slightly too high if at least trimCalls calls
	// have succeeded, and if the number of throttles reaches trimLeast plus trimShare (0.5
	// %) of the successful calls. The pacer then multiplies the rate by the share of
	// successful calls, and by trimKeep.
	trimLeast = 4
	trimShare = 0.005
	trimCalls = 100
	trimKeep  = 0.98
)

// Pacer spaces the starts of requests. The zero value is ready to use and has no limit.
// The caller passes the time. A Pacer is not safe for concurrent use.
type Pacer struct {
	rate   float64   // calls per second; 0 means no limit
	tokens float64   // calls that may start now
	at     time.Time // time at which tokens was last filled up

	// The pacer holds a rate for some time, and then tries a higher rate. While it holds a
	// rate, rate equals heldRate. During a trial of a higher rate, rate is above heldRate.
	heldRate float64 // last held rate; 0 while the pacer searches for a much lower quota
	rise     float64 // share by which the current or next trial raises the rate; 0.25 means by 25 %

	// These fields describe the current period. A new period begins when the rate changes
	// (except by trimKeep), and when a light period ends.
	since   time.Time // start of the period
	started float64   // number of requests started in this period
	// lightRate is the number of calls per second in the last light period, in which fewer
	// calls started than inUse (80 %) of the allowed calls.
	lightRate       float64
	passed, refused float64 // numbers of successful and throttled requests of this period
	trimmed         bool    // the rate was trimmed in this period (trimKeep)

	// Answers to requests that started before or at this time are ignored (see settleMost).
	ignoreUntil time.Time
	throttles   evidence
	troubles    evidence

	// An alarm is a sign of a quota: SQS throttled more calls than chance explains. The
	// field alarm describes the alarm at the highest rate: this rate and the share of
	// throttled calls. The rate is 0 if there was no alarm. The pacer clears the field when
	// it regards the throttles as stray, when it drops the limit, and at an alarm with a
	// share of throttled calls above heavyShare.
	alarm struct {
		rate, share float64
		limited     bool // the pacer had a limit when the alarm occurred
	}
	// stray is the average share of calls that SQS throttles without a quota (stray
	// throttles). It is at most mostStray, which is the share when the pacer last detected
	// stray throttles. Both are 0 before the first detection.
	stray, mostStray float64
}

// Rate returns the calls per second allowed by p, or 0 without a limit.
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
		// If a trial of a higher rate was running, too few calls started to show whether
		// SQS accepts this rate. Undo the trial.
		if p.heldRate > 0 && p.rate > p.heldRate {
			p.rate /= 1 + p.rise
			p.heldRate, p.rise = p.rate, riseFirst
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
	if !began.After(p.ignoreUntil) {
		return
	}
	switch load {
	case attempt.Throttled:
		p.stray = min(p.stray+1./strayFade, p.mostStray)
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

// handleAlarm is called when SQS throttled more calls than chance explains. The cause is a
// quota, or many throttles at random (stray throttles). For a quota, handleAlarm lowers the
// rate. For stray throttles, it returns to the earlier rate.
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

// restoreAlarmRate returns to the rate that the pacer had at its alarm. It is called when
// the rate is much lower than at the alarm, and about the same share of calls is still
// throttled. This shows that the throttles are stray: they do not depend on the rate.
func (p *Pacer) restoreAlarmRate(now time.Time, share float64) {
	back := Pacer{lightRate: p.alarm.rate, stray: share, mostStray: share, ignoreUntil: now, at: now}
	if p.alarm.limited {
		back.rate, back.heldRate, back.rise = p.alarm.rate, p.alarm.rate, riseFirst
	}
	*p = back
	p.beginPeriod(now)
}

// lowerRate lowers the rate. The parameter share is the share of the recent calls that
// failed, and began is the start of the last failed call.
func (p *Pacer) lowerRate(now, began time.Time, share float64) {
	rate := p.usedRate(now)
	passedRate := rate * (1 - share)
	trial := p.rate > p.heldRate
	switch {
	case p.rate == 0 || share > heavyShare:
		// The quota may be much lower than the rate, so begin far below the rate.
		rate *= searchKeep
		p.heldRate, p.rise = 0, riseSearch
	case trial && passedRate < nearHeld*p.heldRate:
		rate = p.heldRate + trialWeight*max(0, trialKeep*passedRate-p.heldRate)
		p.heldRate, p.rise = rate, riseFirst
	default:
		rate = max(rate*(1-cutShare*share), lowestRate)
		if trial {
			rate = max(rate, p.heldRate)
		}
		p.heldRate, p.rise = rate, riseFirst
	}
	p.rate = max(rate, lowestRate)
	p.ignoreUntil = now.Add(min(now.Sub(began)/2, settleMost))
	p.at, p.tokens = now, 0
	p.throttles, p.troubles = evidence{}, evidence{}
	p.beginPeriod(now)
}

// usedRate returns the calls per second that started in the current period, at most the
// allowed rate. If the period is shorter than usedTime, usedRate returns the allowed rate.
// If there is no allowed rate, the result is at least the rate of the last light period.
func (p *Pacer) usedRate(now time.Time) float64 {
	// Start ends a light period after lightTime. In a longer period, most of the allowed
	// calls have started, and the result is then the allowed rate.
	age := min(now.Sub(p.since), lightTime)
	if p.rate == 0 {
		return max(p.lightRate, p.started/max(age, timerDelay).Seconds())
	}
	if age < usedTime { // the period is too short to measure a rate
		return p.rate
	}
	return min(p.rate, p.started/age.Seconds())
}

// recordThrottle counts a throttled call in the current period, and lowers the rate if
// there are too many.
func (p *Pacer) recordThrottle(now, began time.Time) {
	p.refused++
	switch {
	case p.rate > p.heldRate:
		if p.rise == riseFirst && p.refused >= failLeast+(failShare+strayTrial*p.stray)*p.passed {
			p.lowerRate(now, began, p.refused/(p.passed+p.refused))
		}
	case p.passed < trimCalls || p.refused < trimLeast+trimShare*p.passed:
	case p.trimmed:
		// The rate was trimmed in this period, but SQS still throttles. The throttles may
		// be stray, so try a higher rate.
		p.beginTrial(now)
	default:
		p.rate = max(lowestRate, p.rate*trimKeep*p.passed/(p.passed+p.refused))
		p.heldRate, p.refused, p.trimmed = p.rate, 0, true
	}
}

// recordPass counts a successful call in the current period. When the period has enough
// calls, recordPass begins a trial of a higher rate. This ends the period.
func (p *Pacer) recordPass(now time.Time) {
	p.passed++
	age := now.Sub(p.since)
	if p.rate > p.heldRate {
		enough := p.passed >= trialCalls/(p.rise*p.rise) || p.passed >= trialCalls && age >= trialMost
		if enough && age >= trialTime {
			p.rate *= p.passed / (p.passed + p.refused)
			if p.heldRate > 0 {
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
		*p = Pacer{ignoreUntil: p.ignoreUntil, stray: p.stray, mostStray: p.mostStray}
	}
}

// beginPeriod begins a period.
func (p *Pacer) beginPeriod(now time.Time) {
	p.since, p.started, p.passed, p.refused, p.trimmed = now, 0, 0, 0, false
}

// evidence detects that too many calls fail. It keeps a sum: each failed call adds 1, and
// each successful call subtracts a number called the credit; the sum is never below 0.
// While the share of failed calls is below about the credit, the sum keeps returning to 0.
// While the share is higher, the sum grows, and it grows faster for a higher share.
type evidence struct {
	sum           float64
	failed, calls float64 // numbers of failed calls and of all calls since the sum was last 0
}

// addFailure adds a failed call and reports whether the sum has reached the limit.
func (e *evidence) addFailure(limit float64) bool {
	e.sum++
	e.failed++
	e.calls++
	return e.sum >= limit
}

// addSuccess adds a successful call: it subtracts the credit from the sum. The sum does not
// fall below 0.
func (e *evidence) addSuccess(credit float64) {
	e.sum -= credit
	e.calls++
	if e.sum <= 0 {
		*e = evidence{}
	}
}

// share returns the share of failed calls since the sum was last 0. It leaves out the first
// of these calls: this call always failed, because only a failed call makes the sum
// positive.
func (e *evidence) share() float64 { return (e.failed - 1) / max(e.calls-1, 1) }
