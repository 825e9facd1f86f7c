// Package pacer decides when the next request to SQS may start. It lowers the rate of
// requests when SQS throttles, and searches for the highest rate that SQS accepts.
//
// A quota of SQS limits the calls per second, but the answer to a throttled call does not
// contain the limit, and one throttle does not prove a limit. A Pacer therefore changes
// nothing until there are clearly more throttles than chance explains. Then it searches
// for the highest rate without throttles and stays just below this rate.
//
// A Pacer does not limit the number of calls in flight. It begins to limit the rate only if
// more than about 3 % of the calls are throttled, or more than half of the calls fail for
// other reasons.
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

	// A timer may fire late by up to timerDelay. Wait permits a small burst then: the calls
	// that could have started during the delay may start together.
	timerDelay = 10 * time.Millisecond

	// The pacer counts calls in periods. A new period begins with each change of the rate,
	// except for the small correction by trimKeep.
	//
	// If fewer than inUse (80 %) of the allowed calls start, a period does not show whether
	// SQS accepts the rate. Such a period ends after underusedTime. Without a limit, every
	// period ends after this time.
	inUse         = 0.8
	underusedTime = time.Second

	// After usedTime, a period is long enough to measure how many calls start per second.
	usedTime = 100 * time.Millisecond
)

// These constants decide when to lower the rate. The pacer keeps two sums, one for throttled
// calls and one for calls that fail for other reasons (type evidence). Each failed call adds
// 1 to its sum. Each successful call subtracts a credit, a number of at most 1. When a sum
// reaches its limit, the pacer lowers the rate.
const (
	// Four throttles in a row reach the limit, or five throttles with at most 33 successful
	// calls between them. The pacer takes this as a sign of a quota. If SQS throttles 1 % of
	// the calls at random, this conclusion is wrong about once in 80,000 calls.
	throttleLimit  = 4
	throttleCredit = 0.03

	// With a credit of 1, the sum reaches the limit only if more than half of the calls
	// fail. If fewer calls fail, a lower rate rarely helps.
	troubleLimit  = 32
	troubleCredit = 1

	// After lowering the rate, the pacer ignores the answers to all earlier requests, and to
	// the requests of the next half round trip (at most settleMost). For so long, requests
	// sent at the old rate still arrive at SQS and use up the quota.
	settleMost = 50 * time.Millisecond
)

// These constants detect stray throttles: SQS throttles some calls at random, without a
// quota. The share of stray throttles is the same at every rate, but a quota has no throttles
// at a very low rate. So if the pacer has lowered the rate very far, and the share of
// throttled calls is still about the same, the throttles are stray. The pacer then returns
// to the earlier rate.
const (
	// The pacer looks for stray throttles only at a very low rate. The rate must be below
	// strayBelow times the number of calls per second that SQS accepted at the earlier rate.
	strayBelow = 0.15
	// Throttles are stray only if the share of throttled calls at the very low rate is at
	// least strayAlike (half) of the share at the earlier rate.
	strayAlike = 0.5
	// If the share of throttled calls is above strayMost, the throttles do not count as
	// stray: other producers with the same quota may be the cause.
	strayMost = 0.1
	// The pacer knows the share of stray throttles as an average over about strayFade calls.
	strayFade = 2000

	// After the pacer has recognised stray throttles, it tolerates more throttles. The
	// credit of a successful call is then strayCredit times the share of stray throttles,
	// but at least throttleCredit. In the first trial of a higher rate, the pacer adds
	// strayTrial times this share to failShare.
	strayCredit = 2
	strayTrial  = 1.5
)

// These constants decide how far to lower the rate.
const (
	// If more than heavyShare (75 %) of the calls failed, or if the pacer had no limit yet,
	// the quota may be far below the rate. The new rate is then searchKeep (an eighth) of
	// the rate in use, and the pacer searches upwards from there.
	heavyShare = 0.75
	searchKeep = 0.125

	// In all other cases, the pacer lowers the rate by cutShare times the share of failed
	// calls. For example, it lowers the rate by 8 % if 10 % of the calls failed. The new
	// rate is rather too high than too low, because raising the rate takes longer.
	cutShare = 0.8

	// These constants apply after the failed trial of a higher rate. The pacer then compares
	// the held rate (the rate before the trial) with the accepted rate (the number of calls
	// per second that SQS accepted during the trial).
	//
	// If the accepted rate is below nearHeld times the held rate, the new rate is
	//
	//	held + trialWeight*(trialKeep*accepted - held)
	//
	// but not less than the held rate. The new rate is thus at most slightly above the held
	// rate. The weight is small because a trial has few calls.
	nearHeld    = 1.5
	trialWeight = 0.25
	trialKeep   = 0.95
)

// These constants decide when to raise the rate. The pacer holds a rate, that is, it keeps
// the rate for some time. Then it tries a higher rate. A trial of a rate above the quota
// causes throttles. The pacer holds each rate long enough to keep these throttles below 1 %
// of the calls.
const (
	// The pacer holds a rate for at least holdTime and for holdCalls successful calls, but
	// not longer than holdMost.
	holdCalls = 800
	holdTime  = 10 * time.Second
	holdMost  = 25 * time.Second

	// The first trial raises the held rate by riseFirst (25 %). If SQS accepts this rate,
	// further trials follow immediately, and each raises the rate by riseNext (50 %). After
	// a cut to an eighth (searchKeep), each trial doubles the rate (riseSearch) until the
	// pacer lowers the rate again.
	riseFirst  = 0.25
	riseNext   = 0.5
	riseSearch = 1

	// A trial that raises the rate by the share r succeeds after trialCalls/r² successful
	// calls, for example after 160 calls if r is 0.25. A trial lasts at least trialTime.
	// After trialMost, trialCalls successful calls are enough.
	//
	// A quota permits a burst of calls if SQS accepted fewer calls before. The first trial
	// needs the most calls, because it must use up this burst before throttles show that
	// the rate is too high.
	trialCalls = 10
	trialTime  = 300 * time.Millisecond
	trialMost  = 6 * time.Second

	// The first trial of a higher rate fails after failLeast throttles, plus failShare (2 %)
	// of the number of successful calls. Stray throttles raise this limit (strayTrial). The
	// limit is low because a wrong decision costs little: the pacer only returns to about
	// the held rate.
	failLeast = 2
	failShare = 0.02

	// A held rate may be slightly above the quota and so cause a few throttles. The pacer
	// corrects the rate after at least trimCalls successful calls of the period, if the
	// number of throttles reaches trimLeast plus trimShare (0.5 %) of the successful calls.
	// The new rate is trimKeep (98 %) of the accepted calls per second.
	trimLeast = 4
	trimShare = 0.005
	trimCalls = 100
	trimKeep  = 0.98
)

// Pacer limits the rate at which requests start. The zero value is ready to use and has no
// limit. A Pacer does not read the clock: the caller passes the current time to each method.
// A Pacer is not safe for concurrent use.
type Pacer struct {
	rate   float64   // calls per second; 0 means no limit
	tokens float64   // number of calls that may start now; negative after calls that did not wait
	at     time.Time // time of the last increase of tokens

	// heldRate is the rate that SQS accepts, as far as the pacer knows. A trial of a higher
	// rate is under way while rate is above heldRate. The value is 0 without a limit. It is
	// also 0 after a cut to an eighth (searchKeep), while the pacer searches for such a rate.
	heldRate float64
	rise     float64 // the current or next trial raises the rate by this share; 0.25 is 25 %

	// The current period: the pacer counts calls since the last change of the rate (see
	// inUse for the details).
	since           time.Time // start of the period
	started         float64   // number of requests that started
	passed, refused float64   // numbers of successful and of throttled requests
	trimmed         bool      // the pacer has corrected the rate in this period (trimKeep)

	previousRate float64 // calls per second before this period; used only without a limit

	// The pacer ignores the answers to requests that started at this time or earlier. They
	// say nothing about the current rate (see settleMost).
	ignoreUntil time.Time
	throttles   evidence
	troubles    evidence

	// An alarm means that SQS throttled more calls than chance explains: a sign of a quota.
	// The pacer remembers the alarm that occurred at the highest rate, for a comparison with
	// later alarms at a very low rate (see strayBelow).
	alarm struct {
		rate    float64 // calls per second when the alarm occurred; 0 means no alarm
		share   float64 // share of throttled calls
		limited bool    // the pacer limited the rate when the alarm occurred
	}
	// SQS may throttle calls at random, without a quota. The field stray is the average
	// share of such calls. The field mostStray is an upper limit for stray: the share when
	// the pacer last recognised random throttles. Before that time, both fields are 0.
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
	if age > underusedTime && (p.rate == 0 || p.started < inUse*p.rate*age.Seconds()) {
		// Too few calls started in this period to show whether SQS accepts the rate. If the
		// pacer was trying a higher rate (rate is above heldRate), return to the lower rate.
		if p.heldRate > 0 && p.rate > p.heldRate {
			p.rate /= 1 + p.rise
			p.heldRate, p.rise = p.rate, riseFirst
		}
		p.previousRate = p.started / age.Seconds()
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

// handleAlarm is called when SQS throttled more calls than expected. The usual cause is a
// quota, so handleAlarm lowers the rate. But if an earlier alarm occurred at a much higher
// rate with about the same share of throttled calls, the throttles are random (see
// strayBelow). A lower rate does not help then, and handleAlarm returns to the higher rate.
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

// restoreAlarmRate returns to the rate at which the field alarm was set, before the pacer
// lowered the rate. If the pacer had no limit at that time, restoreAlarmRate removes the
// limit. The parameter share is the share of stray throttles.
func (p *Pacer) restoreAlarmRate(now time.Time, share float64) {
	back := Pacer{previousRate: p.alarm.rate, stray: share, mostStray: share, ignoreUntil: now, at: now}
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

// usedRate returns the number of calls per second that started in the current period, but
// not more than the allowed rate. At the start of a period, before usedTime, it returns the
// allowed rate. Without a limit, it returns at least the rate of the previous period.
func (p *Pacer) usedRate(now time.Time) float64 {
	// Without this upper limit for the age, the result would be far too low if the clock
	// jumps forward. In longer periods, at least 80 % of the allowed calls have started,
	// because Start ends all other periods after underusedTime.
	age := min(now.Sub(p.since), underusedTime)
	if p.rate == 0 {
		return max(p.previousRate, p.started/max(age, timerDelay).Seconds())
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
		// The pacer has already corrected the rate in this period, but SQS still throttles
		// calls. The throttles may be random. A lower rate would then not help, so try a
		// higher rate.
		p.beginTrial(now)
	default:
		p.rate = max(lowestRate, p.rate*trimKeep*p.passed/(p.passed+p.refused))
		p.heldRate, p.refused, p.trimmed = p.rate, 0, true
	}
}

// recordPass counts a successful call in the current period. When the current rate has had
// enough successful calls, recordPass begins a trial of a higher rate.
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

// evidence detects that too many calls fail. It keeps a sum: each failed call adds 1, and
// each successful call subtracts a number, the credit. The sum is never below 0. Because of
// the credit, a few failures among many successful calls do not make the sum grow.
type evidence struct {
	sum float64

	// The number of failed calls and the number of all calls, counted since the sum was
	// last 0.
	failed, calls float64
}

// addFailure counts a failed call: it adds 1 to the sum. It reports whether the sum has
// reached the limit.
func (e *evidence) addFailure(limit float64) bool {
	e.sum++
	e.failed++
	e.calls++
	return e.sum >= limit
}

// addSuccess counts a successful call: it subtracts the credit from the sum. The sum does
// not fall below 0.
func (e *evidence) addSuccess(credit float64) {
	e.sum -= credit
	e.calls++
	if e.sum <= 0 {
		*e = evidence{}
	}
}

// share returns the share of failed calls since the field sum was last 0. It leaves out the
// first of these calls, because this call always failed: the sum is 0 until a call fails.
func (e *evidence) share() float64 { return (e.failed - 1) / max(e.calls-1, 1) }
