package consumer

import (
	"context"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/clock"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/pacer"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/sqscall"
)

// pace waits until the pacer p permits another SQS call, and returns the current time. If
// ctx ends first, ok is false. After throttles, p lowers the rate of calls.
func (e *engine) pace(ctx context.Context, p *pacer.Pacer) (began time.Time, ok bool) {
	for {
		now := time.Now()
		e.mu.Lock()
		wait := p.Wait(now)
		if wait == 0 {
			p.Start(now)
		}
		e.mu.Unlock()
		if wait == 0 {
			return now, true
		}
		if clock.Sleep(ctx, wait) != nil {
			return now, false
		}
	}
}

// reportCall reports to the pacer p whether an SQS call passed, was throttled or failed
// otherwise, because p slows down after throttles. The parameter `err` is the error of
// the call, or nil. The parameter `began` is the call's start time, as returned by the
// method `pace`.
func (e *engine) reportCall(p *pacer.Pacer, began time.Time, err error) {
	load := attempt.LoadPassed
	if err != nil {
		code, _ := codeOf(err)
		load = sqscall.LoadOf(code)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	p.Answered(time.Now(), began, load)
}
