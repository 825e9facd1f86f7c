// Package pacer decides when the next request to SQS may start. It lowers the rate of
// requests when SQS throttles, and searches for the highest rate that SQS accepts.
//
// A quota of SQS limits the calls per second, but the answer to a throttled call does not
// contain the limit, and one throttled call does not prove a limit. A Pacer therefore
// changes nothing until clearly more calls are throttled than chance explains. Then it
// searches for the highest rate without throttles and stays just below this rate.
//
// A Pacer does not limit the number of calls in flight. It begins to limit the rate only
// if more than about 3 % of the calls are throttled, or more than half of the calls fail
// for other reasons.
//
// SQS may also throttle single calls at random, without a quota. Many such throttles look
// like a quota, so they make a Pacer slower than necessary. The table shows the rate that
// a Pacer reached in simulations of four networks, as a share of the possible rate, on
// average over the runs for each network:
//
//	one random throttle in 50 calls: 89 to 93 %
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
	// If few calls start, SQS accepts them even if the allowed rate is too high. A period
	// with less than inUse (80 %) of the allowed calls therefore proves nothing, and ends
	// after underusedTime. Without a limit, every period ends after this time.
	inUse         = 0.8
	underusedTime = time.Second

	// After usedTime, a period is long enough to measure how many calls start per second.
	usedTime = 100 * time.Millisecond
)

// These constants decide when to lower the rate. The pacer keeps two sums, one for throttled
// calls and one for calls that fail for other reasons (type `evidence`). Each failed call adds
// 1 to its sum. Each successful call subtracts a credit, a number of at most 1. When a sum
// reaches its limit, the pacer lowers the rate.
const (
	// The limit is reached by four throttled calls in a row, for example, or by five
	// throttled calls with up to 33 successful calls between them (5 - 33*0.03 = 4.01). The
	// pacer takes this as a sign of a quota. If SQS throttles 1 % of the calls at random,
	// this conclusion is wrong about once in 80,000 calls.
	throttleLimit  = 4
	throttleCredit = 0.03

	// A credit of 1 lets one successful call cancel one failed call. The sum thus reaches
	// the limit only if more than half of the calls fail. If fewer calls fail, a lower rate
	// rarely helps.
	troubleLimit  = 32
	troubleCredit = 1

	// After the pacer has lowered the rate, requests sent at the old rate still arrive at
	// SQS for half a round trip. The pacer lets this time pass, at most settleMost: it
	// ignores the answers to all requests that start earlier.
	settleMost = 50 * time.Millisecond
)

// These constants detect random throttles: SQS throttles some calls although there is no
// quota. A lower rate does not reduce the share of random throttles. If there is a quota,
// however, SQS throttles no calls at a very low rate.
//
// So the pacer compares the share of throttled calls at a very low rate and at the
// earlier rate. If the shares are similar, the pacer returns to the earlier rate.
const (
	// The pacer looks for random throttles only after it has lowered the rate very far:
	// below veryLow (15 %) of the calls per second that SQS accepted before.
	veryLow = 0.15
	// A lower rate does not reduce the share of random throttles. The share of throttled
	// calls must therefore be at least similarShare (half) of the share before the rate was
	// lowered.
	similarShare = 0.5
	// If SQS throttles more than randomMost (10 %) of the calls, the throttles do not count
	// as random: other producers may be using the same quota.
	randomMost = 0.1
	// The share of random throttles is an average over about randomFade calls.
	randomFade = 2000

	// If a share s of the calls is throttled at random, the pacer tolerates more throttles.
	// The credit of a successful call is then randomCredit*s, but at least throttleCredit.
	// In the first trial of a higher rate, failShare is replaced by failShare +
	// randomTrial*s.
	randomCredit = 2
	randomTrial  = 1.5
)

// These constants decide how far to lower the rate.
const (
	// If more than heavyShare (75 %) of the calls failed, or if the pacer had no limit yet,
	// the quota may be far below the rate. The new rate is then searchKeep (an eighth) of
	// the rate in use, and the pacer searches upwards from there.
	heavyShare = 0.75
	searchKeep = 0.125

	// In all other cases, the pacer lowers the rate by cutShare times the share of failed
	// calls. For example, it lowers the rate by 8 % if 10 % of the calls failed. If this
	// cut is too small, another cut follows soon. After too large a cut, raising the rate
	// would take longer.
	cutShare = 0.8

	// After the failed trial of a higher rate, the pacer returns to the rate before the
	// trial (safe). If SQS accepted more calls per second during the trial (accepted), the
	// new rate is slightly higher:
	//
	//	safe + trialWeight*max(0, trialKeep*accepted - safe)
	//
	// The weight is small because a trial has few calls. If accepted is at least
	// nearSafe*safe, the pacer uses cutShare instead.
	nearSafe    = 1.5
	trialWeight = 0.25
	trialKeep   = 0.95
)

// These constants decide when to raise the rate. The safe rate is a rate that SQS
// accepts, as far as the pacer knows. The pacer keeps the safe rate for some time and
// then tries a higher rate. This trial causes throttles if the higher rate is above the
// quota. The pacer waits long enough between trials to keep these throttles below 1 % of
// the calls.
const (
	// The pacer keeps the safe rate until holdTime has passed and holdCalls calls were
	// successful. After holdMost, it tries a higher rate even after fewer successful
	// calls. These times begin again with each period, so the pacer tries no higher rate
	// while few calls start (see inUse).
	holdCalls = 800
	holdTime  = 10 * time.Second
	holdMost  = 25 * time.Second

	// The first trial raises the safe rate by riseFirst (25 %). If SQS accepts this rate,
	// further trials follow immediately, and each raises the rate by riseNext (50 %). After
	// a cut to an eighth (searchKeep), each trial doubles the rate (riseSearch) until the
	// pacer lowers the rate again.
	riseFirst  = 0.25
	riseNext   = 0.5
	riseSearch = 1

	// A trial that raises the rate by 25 % succeeds after 160 successful calls:
	// trialCalls/r² with r = 0.25. A trial lasts at least trialTime. After trialMost,
	// trialCalls successful calls are enough.
	//
	// The first trial needs the most calls. After slow times, a quota permits a burst of
	// calls above the quota, and only a trial longer than this burst shows that the rate is
	// too high.
	trialCalls = 10
	trialTime  = 300 * time.Millisecond
	trialMost  = 6 * time.Second

	// The first trial of a higher rate fails if SQS throttles failLeast calls plus
	// failShare (2 %) of the number of successful calls. For example, four throttled and
	// 100 successful calls are a failure. If there are random throttles, more are tolerated
	// (randomTrial). A wrong decision costs little, because the pacer only returns to about
	// the safe rate.
	failLeast = 2
	failShare = 0.02

	// The safe rate may be slightly above the quota, so that SQS throttles a few calls. If
	// this happens, the pacer lowers the rate slightly, to trimKeep (98 %) of the accepted
	// calls per second. It needs trimCalls successful calls, and trimLeast throttled calls
	// plus trimShare (0.5 %) of the successful calls.
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
	tokens float64   // number of calls that may start now; negative after calls that started too early
	at     time.Time // time of the last increase of tokens

	// safeRate is a rate that SQS accepts, as far as the pacer knows. While rate is above
	// safeRate, the pacer tries a higher rate: a trial. After a cut to an eighth
	// (searchKeep), safeRate is 0 until the pacer lowers the rate again. It is also 0
	// without a limit.
	safeRate float64
	rise     float64 // the current or next trial raises the rate by this share; 0.25 is 25 %

	// The current period: the pacer counts calls since the last change of the rate (see
	// inUse for the details).
	since           time.Time // start of the period
	started         float64   // number of requests that started
	passed, refused float64   // numbers of successful and of throttled requests
	trimmed         bool      // the rate was slightly lowered in this period (trimKeep)

	previousRate float64 // calls per second in the previous period; used only without a limit

	// The pacer ignores the answers to requests that started at this time or earlier. They
	// say nothing about the current rate (see settleMost).
	ignoreUntil time.Time
	throttles   evidence
	troubles    evidence

	// The alarm at the highest rate so far. An alarm means that SQS throttled more calls
	// than chance explains. If a later alarm at a very low rate has a similar share of
	// throttled calls, the throttles are random (see veryLow).
	alarm struct {
		rate    float64 // calls per second when the alarm occurred; 0 means no alarm
		share   float64 // share of throttled calls
		limited bool    // the pacer limited the rate when the alarm occurred
	}
	// randomShare is the average share of calls that SQS throttles at random, without a
	// quota. Throttles caused by a quota are counted too, so randomShare may not exceed
	// maxRandomShare, the share when the pacer last detected random throttles. Before the
	// first detection, both fields are 0.
	randomShare, maxRandomShare float64
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
		// pacer was trying a higher rate (rate is above safeRate), return to the lower rate.
		if p.safeRate > 0 && p.rate > p.safeRate {
			p.rate /= 1 + p.rise
			p.safeRate, p.rise = p.rate, riseFirst
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
		p.randomShare = min(p.randomShare+1./randomFade, p.maxRandomShare)
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
		p.randomShare -= p.randomShare / randomFade
		p.throttles.addSuccess(max(throttleCredit, randomCredit*p.randomShare))
		p.troubles.addSuccess(troubleCredit)
		if p.rate > 0 && began.After(p.since) {
			p.recordPass(now)
		}
	}
}

// handleAlarm is called when SQS throttled more calls than chance explains. The usual
// cause is a quota, so handleAlarm lowers the rate. But if an earlier alarm occurred at a
// much higher rate with a similar share of throttled calls, the throttles are random (see
// veryLow). A lower rate does not help then, and handleAlarm returns to the higher rate.
func (p *Pacer) handleAlarm(now, began time.Time, share float64) {
	rate, a := p.usedRate(now), &p.alarm
	if a.rate > 0 && rate < veryLow*a.rate*(1-a.share) && share <= randomMost && share >= similarShare*a.share {
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

// restoreAlarmRate restores the rate from before the last alarm (the field `alarm`), because
// the throttles turned out to be random. If there was no limit before the alarm,
// restoreAlarmRate removes the limit. The parameter `share` is the share of random throttles.
func (p *Pacer) restoreAlarmRate(now time.Time, share float64) {
	back := Pacer{previousRate: p.alarm.rate, randomShare: share, maxRandomShare: share, ignoreUntil: now, at: now}
	if p.alarm.limited {
		back.rate, back.safeRate, back.rise = p.alarm.rate, p.alarm.rate, riseFirst
	}
	*p = back
	p.beginPeriod(now)
}

// lowerRate lowers the rate. The parameter `share` is the share of the recent calls that
// failed, and began is the start of the last failed call.
func (p *Pacer) lowerRate(now, began time.Time, share float64) {
	rate := p.usedRate(now)
	passedRate := rate * (1 - share)
	trial := p.rate > p.safeRate
	switch {
	case p.rate == 0 || share > heavyShare:
		// The quota may be far below the rate: cut the rate to an eighth, then search
		// upwards.
		rate *= searchKeep
		p.safeRate, p.rise = 0, riseSearch
	case trial && passedRate < nearSafe*p.safeRate:
		rate = p.safeRate + trialWeight*max(0, trialKeep*passedRate-p.safeRate)
		p.safeRate, p.rise = rate, riseFirst
	default:
		rate = max(rate*(1-cutShare*share), lowestRate)
		if trial {
			rate = max(rate, p.safeRate)
		}
		p.safeRate, p.rise = rate, riseFirst
	}
	p.rate = max(rate, lowestRate)
	p.ignoreUntil = now.Add(min(now.Sub(began)/2, settleMost))
	p.at, p.tokens = now, 0
	p.throttles, p.troubles = evidence{}, evidence{}
	p.beginPeriod(now)
}

// usedRate returns the number of calls per second that started in the current period, but
// at most the allowed rate.
func (p *Pacer) usedRate(now time.Time) float64 {
	// Limit the age of the period, because the result would be far too low if the clock
	// jumps forward. This is harmless: in a period longer than underusedTime, at least 80 %
	// of the allowed calls have started (see inUse).
	age := min(now.Sub(p.since), underusedTime)
	if p.rate == 0 { // no limit
		return max(p.previousRate, p.started/max(age, timerDelay).Seconds())
	}
	if age < usedTime { // too short to measure a rate
		return p.rate
	}
	return min(p.rate, p.started/age.Seconds())
}

// recordThrottle counts a throttled call in the current period, and lowers the rate if
// there are too many.
func (p *Pacer) recordThrottle(now, began time.Time) {
	p.refused++
	switch {
	case p.rate > p.safeRate:
		if p.rise == riseFirst && p.refused >= failLeast+(failShare+randomTrial*p.randomShare)*p.passed {
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
		p.safeRate, p.refused, p.trimmed = p.rate, 0, true
	}
}

// recordPass counts a successful call in the current period. When the current rate has had
// enough successful calls, recordPass begins a trial of a higher rate.
func (p *Pacer) recordPass(now time.Time) {
	p.passed++
	age := now.Sub(p.since)
	if p.rate > p.safeRate {
		enough := p.passed >= trialCalls/(p.rise*p.rise) || p.passed >= trialCalls && age >= trialMost
		if enough && age >= trialTime {
			p.rate *= p.passed / (p.passed + p.refused)
			if p.safeRate > 0 {
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
		*p = Pacer{ignoreUntil: p.ignoreUntil, randomShare: p.randomShare, maxRandomShare: p.maxRandomShare}
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

// share estimates the share of calls that fail. Counting always begins with a failed
// call. This call would make the estimate too high, so share leaves it out.
func (e *evidence) share() float64 { return (e.failed - 1) / max(e.calls-1, 1) }
