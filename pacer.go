package sqsfifo

import (
	"math"
	"time"
)

// pacer spaces the starts of requests while SQS refuses some for their rate. A
// quota is on calls a second and not on how many are under way, so it is the rate
// that has to come down. It knows no rate until SQS has throttled once.
//
// The time is an argument. It is not safe for concurrent use; the scheduler locks.
type pacer struct {
	rate   float64   // calls a second; 0 while there is no limit
	tokens float64   // calls that may start now
	at     time.Time // of tokens

	cut, raised time.Time // when the rate last came down and went up
	ceiling     float64   // the rate at which it came down

	// What got through since a while, and what SQS had trouble with.
	passed, troubled float64
	since            time.Time
}

const (
	paceStep  = 200 * time.Millisecond // at most one change of the rate
	paceRise  = 1.02
	paceProbe = 1.01 // above the rate that was too much
	paceCut   = 0.9  // of what got through
	paceLess  = 0.7  // of the rate, at the most, while a cut has not helped yet
	paceFall  = 0.2  // at the least
	paceFloor = 10   // calls a second
	paceTop   = 1e6  // more than any queue takes: there is no limit any more

	// paceTrouble is the share of calls that end in a fault of the service or a
	// broken connection from which on they are taken for overload, not for chance.
	paceTrouble = 0.2
)

// wait returns how long the next request has to wait, 0 if it may start.
func (p *pacer) wait(now time.Time) time.Duration {
	if p.rate == 0 {
		return 0
	}
	for now.Sub(p.raised) >= paceStep {
		if p.rate < p.ceiling {
			p.rate *= paceRise
		} else {
			p.rate *= paceProbe
		}
		p.raised = p.raised.Add(paceStep)
		if now.Sub(p.raised) > time.Minute { // idle since
			p.raised = now
		}
	}
	if p.rate > paceTop {
		p.rate = 0
		return 0
	}
	// Timers are late: what they cost is made good, as long as it is little.
	most := max(1, p.rate/100)
	p.tokens = min(most, p.tokens+now.Sub(p.at).Seconds()*p.rate)
	p.at = now
	if p.tokens >= 1 {
		return 0
	}
	return time.Duration((1 - p.tokens) / p.rate * float64(time.Second))
}

// start counts a request that starts now.
func (p *pacer) start() {
	if p.rate > 0 {
		p.tokens--
	}
}

// pace is what the answer to a request says about the rate.
type pace uint8

const (
	passedPace   pace = iota
	troubledPace      // a fault of the service or of the connection
	throttledPace
)

// answered tells the end of a request that began at the given time.
func (p *pacer) answered(now, began time.Time, what pace) {
	if p.since.IsZero() {
		p.since = began
	}
	switch what {
	case passedPace:
		p.passed++
	case troubledPace:
		p.troubled++
	case throttledPace:
	}
	// The younger half of the last two seconds is what counts.
	if past := now.Sub(p.since); past > 2*time.Second {
		p.passed, p.troubled = p.passed/2, p.troubled/2
		p.since = now.Add(-past / 2)
		if past > 4*time.Second {
			p.passed, p.troubled, p.since = 0, 0, began
		}
	}
	chance := p.troubled < 5 || p.troubled < paceTrouble*(p.passed+p.troubled)
	if what == passedPace || what == troubledPace && chance {
		return
	}
	if !began.After(p.cut) {
		return // it started before the last cut and says nothing of it
	}
	rate := paceCut * p.passed / max(now.Sub(p.since), time.Millisecond).Seconds()
	p.ceiling = p.rate
	switch {
	case p.rate == 0:
		p.ceiling = math.Inf(1)
		rate /= 4 // what got through was, in part, what SQS lets through at first
	case now.Sub(p.cut) < paceStep: // the cut was too small: only now the quota shows
		rate = min(max(rate, paceFall*p.rate), paceLess*p.rate)
	}
	p.rate = max(rate, paceFloor)
	p.cut, p.raised, p.at, p.tokens = now, now, now, 0
	p.passed, p.troubled, p.since = 0, 0, now
}
