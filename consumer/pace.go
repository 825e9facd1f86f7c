package consumer

import (
	"context"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/pacer"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/sqscall"
)

// pace waits until p allows another call of SQS: after throttles, p limits the rate of
// calls. pace returns the start of the call. ok is false if ctx ended first.
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
		if !sleep(ctx, wait) {
			return now, false
		}
	}
}

// paced reports to p whether SQS throttled the call that began at the time began.
func (e *engine) paced(p *pacer.Pacer, began time.Time, err error) {
	load := attempt.Passed
	if err != nil {
		code, _ := codeOf(err)
		load = sqscall.LoadOf(code)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	p.Answered(time.Now(), began, load)
}
