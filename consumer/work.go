package consumer

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"
)

// work receives and handles messages until ctx ends or SQS denies a call. Then it shuts
// the engine down.
func (e *engine) work(ctx context.Context) error {
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	e.base = base
	e.polling, e.stopPolling = context.WithCancel(base)
	defer e.stopPolling()

	beats := make(chan struct{})
	stopBeats := make(chan struct{})
	go func() {
		defer close(beats)
		e.heartbeat(stopBeats)
	}()
	if err := cmp.Or(e.reachable(e.queueURL), e.reachable(e.rules.ParkingQueue)); err != nil {
		e.fail(err)
	} else {
		e.beCautiousAtStart(ctx)
	}
	e.mu.Lock()
	e.addReceiver()
	e.mu.Unlock()

	select {
	case <-ctx.Done():
	case <-e.failed:
	}
	e.mu.Lock()
	e.close()
	e.mu.Unlock()
	incomplete := e.drain()

	close(stopBeats)
	<-beats
	e.mu.Lock()
	e.stopped = true
	e.mu.Unlock()
	cancel()
	e.awaitCalls()
	e.mu.Lock()
	failure := e.failure
	e.mu.Unlock()
	return errors.Join(failure, incomplete)
}

// drain waits until all messages are deleted or visible to other consumers. At the end of
// the shutdown's time it returns a [*ShutdownError].
func (e *engine) drain() error {
	handlers := time.NewTimer(e.stop * 4 / 5)
	defer handlers.Stop()
	end := time.NewTimer(e.stop)
	defer end.Stop()
	for {
		select {
		case <-e.idle:
			e.mu.Lock()
			defer e.mu.Unlock()
			return e.unreleasedError()
		case <-handlers.C:
			e.mu.Lock()
			for r := range e.batches {
				r.cancel(ErrShutdown)
			}
			e.mu.Unlock()
		case <-end.C:
			// After close(e.dead), batches drop their unreleased messages. So e.mu is held
			// until unreleasedError has found these batches.
			e.mu.Lock()
			defer e.mu.Unlock()
			close(e.dead)
			e.cond.Broadcast()
			return e.unreleasedError()
		}
	}
}

// awaitCalls waits for running calls of SQS and of the store, at most a second. A client
// may ignore the end of its context.
func (e *engine) awaitCalls() {
	done := make(chan struct{})
	go func() {
		e.calls.Wait()
		close(done)
	}()
	timer := time.NewTimer(time.Second)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}

// unreleasedError returns a [*ShutdownError], or nil if no handler runs and no group has
// unreleased messages. The caller holds e.mu.
func (e *engine) unreleasedError() error {
	var running, left []string
	for group, until := range e.unreleased {
		if e.clock.Now() < until {
			left = append(left, group)
		}
	}
	for r := range e.batches {
		if r.state == stateHandling {
			running = append(running, r.group)
		} else if len(r.items) > 0 {
			left = append(left, r.group)
		}
	}
	if len(running)+len(left) == 0 {
		return nil
	}
	slices.Sort(running)
	slices.Sort(left)
	return &ShutdownError{Running: running, Unreleased: slices.Compact(left)}
}
