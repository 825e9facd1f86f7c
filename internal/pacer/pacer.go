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

	// A timer may fire late by up to timerDelay. The missed calls may then start
	// together.
	timerDelay = 10 * time.Millisecond

	// A new period begins with each change of the rate, except the small change trimKeep.
	// If fewer than inUse (80 %) of the allowed calls start in a period, the period proves
	// nothing about the rate. Such a period ends after underusedTime. While the rate is
	// unlimited, every period ends after underusedTime.
	inUse         = 0.8
	underusedTime = time.Second

	// After usedTime, a period is long enough to measure how many calls start per second.
	usedTime = 100 * time.Millisecond
)

// These constants decide when to lower the rate. The pacer keeps two sums (type `evidence`),
// one for throttled calls and one for other failures. A failed call adds 1 to its sum. A
// successful call subtracts a credit from each sum. When a sum reaches its limit, the pacer
// normally lowers the rate (see handleAlarm).
const (
	// Four throttled calls in a row reach the limit, or five among up to 33 successful
	// calls (5 - 33*0.03 = 4.01). With 1 % random throttles, this wrongly happens about
	// once in 80,000 calls.
	throttleLimit  = 4
	throttleCredit = 0.03

	// The sum for failures other than throttles reaches its limit only if more than half of
	// the calls fail. If fewer calls fail, a lower rate rarely helps.
	troubleLimit  = 32
	troubleCredit = 1

	// After the rate was lowered, requests sent at the old rate still arrive at SQS for
	// half a round trip, and may cause throttles. The pacer ignores the answers to requests
	// that start before the end of this time, which is at most settleMost.
	settleMost = 50 * time.Millisecond
)

// These constants detect random throttles, which are not caused by a quota. At a very low
// rate, a quota causes no throttles. But if throttles are random, SQS throttles a similar
// share of the calls as at the earlier, higher rate.
const (
	// A rate counts as very low if it is below 15 % of the calls per second that SQS
	// accepted before.
	veryLow = 0.15
	// Throttles count as random only if the share of throttled calls at the very low rate
	// is at least half of the share at the earlier, higher rate.
	similarShare = 0.5
	// If more than randomMost (10 %) of the calls are throttled, this does not count as
	// random: other producers may be using the same quota.
	randomMost = 0.1
	// The share of random throttles is an average over about randomFade calls.
	randomFade = 2000

	// If a share s of the calls is throttled at random, the pacer tolerates more throttles.
	// A successful call then subtracts randomCredit*s instead of throttleCredit, if that is
	// more. In the first trial, failShare+randomTrial*s replaces failShare.
	randomCredit = 2
	randomTrial  = 1.5
)

// These constants decide how far to lower the rate.
const (
	// If more than heavyShare (75 %) of the calls failed, or if there was no limit, the
	// rate is cut to searchKeep (an eighth) of the rate in use.
	heavyShare = 0.75
	searchKeep = 0.125

	// Otherwise the rate is lowered by cutShare times the share of failed calls. Cuts are
	// small, because another cut is quicker than raising the rate again.
	cutShare = 0.8

	// After a failed trial of a higher rate, the new rate depends on the rate before (safe)
	// and on the calls per second that SQS accepted in the trial (accepted):
	//
	//	safe + trialWeight*max(0, trialKeep*accepted - safe)
	//
	// If accepted is at least nearSafe*safe, the pacer uses cutShare instead.
	nearSafe    = 1.5
	trialWeight = 0.25
	trialKeep   = 0.95
)

// These constants decide when to try a higher rate than the safe rate, which SQS accepts
// as far as the pacer knows. The waits between trials keep the throttles caused by trials
// below 1 % of the calls.
const (
	// The pacer keeps the safe rate for holdTime and holdCalls successful calls, or for
	// holdMost, counted from the start of the period (see inUse).
	holdCalls = 800
	holdTime  = 10 * time.Second
	holdMost  = 25 * time.Second

	// The first trial raises the safe rate by riseFirst (25 %). After its success, each
	// further trial raises the rate by riseNext (50 %). After the rate was cut to an eighth
	// (searchKeep), each trial doubles the rate (riseSearch), until the pacer lowers the
	// rate again.
	riseFirst  = 0.25
	riseNext   = 0.5
	riseSearch = 1

	// A trial that raises the rate by the share r succeeds after trialCalls/r² successful
	// calls. If it has lasted for trialMost, trialCalls are enough. It does not succeed
	// before trialTime. The first trial has the smallest r and needs the most calls. It
	// must outlast the burst that a quota permits after slow times.
	trialCalls = 10
	trialTime  = 300 * time.Millisecond
	trialMost  = 6 * time.Second

	// The first trial fails if SQS throttles failLeast calls plus 2 % (failShare) of the
	// number of successful calls. With random throttles, more throttled calls are permitted
	// (randomTrial).
	failLeast = 2
	failShare = 0.02

	// SQS may throttle a few calls at the safe rate. If it throttles trimLeast calls plus
	// trimShare (0.5 %) of the successful calls, the safe rate is slightly too high. The
	// pacer then lowers it to trimKeep (98 %) of the accepted calls per second, at most
	// once in a period (see recordThrottle). The pacer checks this only after trimCalls
	// successful calls.
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

	// safeRate is a rate that SQS accepts, as far as known; a higher rate is a trial. The
	// safe rate is 0 while the rate is unlimited. It is also unknown, and 0, after a cut to
	// an eighth (searchKeep), until the pacer lowers the rate again.
	safeRate float64
	rise     float64 // the current or next trial raises the rate by this share; 0.25 is 25 %

	// The current period: the pacer counts calls since the last change of the rate (see
	// inUse for the details).
	since           time.Time // start of the period
	started         float64   // number of requests that started
	passed, refused float64   // numbers of successful and of throttled requests
	trimmed         bool      // the rate was slightly lowered in this period (trimKeep)

	previousRate float64 // calls per second in the previous period; used only without a limit

	// The pacer ignores answers to requests that started at this time or earlier (see
	// settleMost).
	ignoreUntil time.Time
	throttles   evidence
	troubles    evidence

	// An alarm means more throttles than chance explains. This is the alarm at the highest
	// rate so far, for comparison with a later alarm at a very low rate (see veryLow).
	alarm struct {
		rate    float64 // calls per second when the alarm occurred; 0 means no alarm
		share   float64 // share of throttled calls
		limited bool    // the pacer limited the rate when the alarm occurred
	}
	// randomShare estimates the share of calls that are throttled at random: it is the
	// average share of throttled calls, over recent calls. Throttles by a quota would make
	// it too high, so it is at most maxRandomShare, the share when random throttles were
	// last detected. Both fields are 0 until random throttles are detected.
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
		// So few calls do not prove that SQS accepts the rate. If this was a trial, and the
		// safe rate is known, return to the earlier rate.
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

// Answered records the answer to a request. The parameter `began` is the start of the
// request. Call Answered exactly once for each started request, in any order.
func (p *Pacer) Answered(now, began time.Time, load attempt.Load) {
	if !began.After(p.ignoreUntil) {
		return
	}
	switch load {
	case attempt.LoadThrottled:
		p.randomShare = min(p.randomShare+1./randomFade, p.maxRandomShare)
		if p.throttles.addFailure(throttleLimit) {
			p.handleAlarm(now, began, p.throttles.share())
		} else if p.rate > 0 && began.After(p.since) {
			p.recordThrottle(now, began)
		}
	case attempt.LoadTroubled:
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

// handleAlarm is called when the sum for throttled calls reaches its limit. It lowers the
// rate. But if the throttles turn out to be random (see veryLow), a lower rate does not
// help, and handleAlarm returns to the earlier, higher rate.
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
// failed. The parameter `began` is the start of the last failed call.
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
	// Limit the age, because the clock may jump forward. For a period longer than the
	// limit, the result is too high, but at most the allowed rate. This error is small: in
	// such a period, at least 80 % of the allowed calls have started (see inUse).
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
		// The small cut of the rate (trimKeep) did not stop the throttles. They may be
		// random, so a lower rate would not help: try a higher rate.
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

// evidence detects that too many calls fail. A failed call adds 1 to the sum. A
// successful call subtracts a credit, so that rare failures do not make the sum grow.
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
