// Package pacer decides when the next request to SQS may start. It lowers the rate of
// requests when SQS throttles, and searches for the highest rate that SQS accepts.
//
// A quota of SQS limits the calls per second, but the answer to a throttled call does not
// contain the limit, and one throttle does not prove a limit. A Pacer therefore changes
// nothing until there are clearly more throttles than chance explains. Then it searches
// for the highest rate without throttles and stays just below this rate.
//
// A Pacer does not limit the number of calls in flight. It lowers the rate only if more
// than about 3 % of the calls are throttled, or if more than half of the calls fail
// because of the service or the connection.
//
// SQS may also throttle single calls at random, without a quota. Such a throttle is
// called stray. Many stray throttles look like a quota, so they make a Pacer slower than
// necessary. The table shows the rate that a Pacer reached in simulations of four
// networks, as a share of the possible rate, on average over the runs for each network:
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

	// A period begins when the rate changes, except by trimKeep. In a light period, fewer
	// calls start than inUse (80 %) of the allowed calls. Such a period ends after
	// lightTime, because it does not show whether the rate is too high.
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
	// Four throttles with few successful calls between them reach the limit, and count as a
	// sign of a quota. If SQS throttles 1 % of the calls at random, this happens by mistake
	// about once in 150,000 calls.
	throttleLimit  = 4
	throttleCredit = 0.03

	// With a credit of 1, the limit is reached only if more than half of the calls fail. A
	// lower rate rarely helps if a service fails only some calls.
	troubleLimit  = 32
	troubleCredit = 1

	// When the pacer lowers the rate, requests already on the way still use up the quota,
	// for about half of a round trip. The pacer ignores answers to requests started in
	// this time (at most settleMost) or earlier.
	settleMost = 50 * time.Millisecond
)

// These constants detect stray throttles, for which no quota is the cause. Stray throttles
// hit the same share of calls at every rate. So if a very low rate has about the same share
// of throttled calls as the earlier rate, the pacer restores the earlier rate.
//
// A share above strayMost never counts as stray, because producers that share a quota can
// cause such throttles for each other.
const (
	// A rate is very low if it is below this fraction of the calls per second that SQS
	// accepted before the pacer lowered the rate.
	strayBelow = 0.15
	// Throttles are stray only if the share of throttled calls at a very low rate is at
	// least this fraction of the share at the earlier rate.
	strayAlike = 0.5
	// The largest share of throttled calls that the pacer may regard as stray throttles.
	strayMost = 0.1
	// The pacer's estimate of the share of stray throttles is an average over about this
	// number of calls.
	strayFade = 2000

	// With stray throttles, a successful call subtracts strayCredit times their share from
	// the sum (type evidence), or throttleCredit if that is more. The first trial of a
	// higher rate also permits strayTrial times the expected number of stray throttles.
	strayCredit = 2
	strayTrial  = 1.5
)

// These constants decide how far to lower the rate.
const (
	// The pacer lowers the rate to searchKeep (an eighth) if more than heavyShare (75 %) of
	// the calls failed, or if it had no limit yet. The share of failed calls then does not
	// show how low the quota is.
	heavyShare = 0.75
	searchKeep = 0.125

	// In all other cases the pacer lowers the rate by cutShare times the share of failed
	// calls: after failures of 10 % of the calls, by 8 %. It takes longer to correct a rate
	// that is too low.
	cutShare = 0.8

	// These constants apply after a failed trial of a higher rate. The held rate is the
	// rate before the trial. If SQS accepted fewer calls per second than nearHeld (1.5)
	// times the held rate, the pacer returns to the held rate.
	//
	// If trialKeep (0.95) times the accepted calls per second is above the held rate, the
	// pacer adds trialWeight (a quarter) of the difference. A trial has few calls, so the
	// weight is small.
	nearHeld    = 1.5
	trialWeight = 0.25
	trialKeep   = 0.95
)

// These constants decide when to raise the rate. The pacer holds a rate for some time and
// then tries a higher rate. It holds each rate long enough to keep the throttles of such
// trials below 1 % of the calls.
const (
	holdCalls = 800
	holdTime  = 10 * time.Second
	holdMost  = 25 * time.Second // longest time that a rate is held

	// After the pacer has held a rate, the first trial raises it by riseFirst (25 %), and
	// each further trial by riseNext (50 %). After the rate was cut to an eighth
	// (searchKeep), each trial doubles it (riseSearch) until SQS throttles calls again.
	riseFirst  = 0.25
	riseNext   = 0.5
	riseSearch = 1

	// A trial succeeds after trialCalls/rise² successful calls (160 calls with a rise of
	// 0.25), and at least trialTime. After trialMost (6 s), trialCalls successful calls are
	// enough.
	//
	// The first trial needs the most calls, because it must use up the calls of the quota
	// that SQS saved up while the rate was held.
	trialCalls = 10
	trialTime  = 300 * time.Millisecond
	trialMost  = 6 * time.Second

	// The first trial fails when the number of throttles reaches failLeast + failShare *
	// (number of successful calls), or more with stray throttles (strayTrial). The limit is
	// low, because the rate then only returns to about the held rate.
	failLeast = 2
	failShare = 0.02

	// A held rate may be slightly too high. After trimCalls successful calls, the pacer
	// lowers it when the throttles of the period reach trimLeast plus trimShare (0.5 %) of
	// the successful calls.
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

	// While the pacer holds a rate, heldRate equals rate. During a trial of a higher rate,
	// heldRate is below rate. heldRate is 0 without a limit, and after a cut to an eighth
	// (searchKeep) until SQS throttles calls again.
	heldRate float64
	rise     float64 // share by which the current or the next trial raises the rate; 0.25 means by 25 %

	// These fields describe the current period (see inUse). Without a limit, a period ends
	// after lightTime.
	since   time.Time // start of the period
	started float64   // number of requests started in this period
	// lightRate is the number of calls per second in the last period that ended after
	// lightTime.
	lightRate       float64
	passed, refused float64 // numbers of successful and throttled requests of this period
	trimmed         bool    // the rate was already corrected in this period (trimKeep)

	// Answers to requests that started before or at this time are ignored (see settleMost).
	ignoreUntil time.Time
	throttles   evidence
	troubles    evidence

	// An alarm means that SQS throttled more calls than chance explains: a sign of a quota.
	// This field has the alarm with the highest rate so far, and the share of throttled
	// calls then. A rate of 0 means no alarm.
	alarm struct {
		rate, share float64
		limited     bool // the pacer limited the rate when the alarm occurred
	}
	// stray is the average share of calls that SQS throttles at random, without a quota.
	// mostStray is this share when the pacer last recognised such throttles; stray never
	// exceeds mostStray. Both are 0 until the pacer first recognises such throttles.
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
		// In this period too few calls started to show whether SQS accepts the rate. If
		// the period is a trial of a higher rate, undo the trial.
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

// handleAlarm is called when SQS throttled more calls than expected. The cause is a quota
// or stray throttles (see the constants strayBelow to strayTrial). For a quota,
// handleAlarm lowers the rate. For stray throttles, it returns to the earlier rate.
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

// restoreAlarmRate restores the rate from before the alarm, or removes the limit if there
// was none then. It is called when SQS throttles about the same share of calls at a much
// lower rate.
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
		// The quota may be far below the rate: cut the rate to an eighth, then search
		// upwards.
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
// allowed rate. In a period shorter than usedTime, it returns the allowed rate. Without a
// limit, it returns at least lightRate.
func (p *Pacer) usedRate(now time.Time) float64 {
	// After lightTime, the result is 80 % to 100 % of the allowed rate, because Start ends
	// a light period.
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
		// The rate was already corrected in this period, but SQS still throttles calls.
		// These throttles may be random, so that a lower rate does not help: try a higher
		// rate.
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

func (p *Pacer) beginTrial(now time.Time) {
	p.rate = max(p.rate*(1+p.rise), lowestRate)
	p.beginPeriod(now)
	if p.rate > highestRate {
		*p = Pacer{ignoreUntil: p.ignoreUntil, stray: p.stray, mostStray: p.mostStray}
	}
}

func (p *Pacer) beginPeriod(now time.Time) {
	p.since, p.started, p.passed, p.refused, p.trimmed = now, 0, 0, 0, false
}

// evidence detects that too many calls fail. It keeps a sum, which is never below 0. Each
// failed call adds 1, and each successful call subtracts a credit. The sum grows only while
// the share of failed calls is above about the credit.
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

// share returns the share of failed calls since the sum was last 0. It leaves out the
// first call, which always failed: only a failed call makes the sum positive.
func (e *evidence) share() float64 { return (e.failed - 1) / max(e.calls-1, 1) }
