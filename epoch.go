package sqsfifo

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// epoch is the events handed in between two flushes.
type epoch struct {
	events int
	sealed bool // by a flush: no event joins it
	done   chan struct{}
}

// left counts an event out whose outcome is told.
func (s *scheduler) left(p *pending) {
	s.events--
	if p.epoch.events--; p.epoch.events == 0 && p.epoch.sealed {
		close(p.epoch.done)
	}
}

// rest lets close go on when nothing is left.
func (s *scheduler) rest() {
	if !s.closed || s.events > 0 || s.workers > 0 {
		return
	}
	if s.timer != nil {
		s.timer.Stop()
	}
	select {
	case <-s.idle:
	default:
		close(s.idle)
	}
}

// flush waits until each event that was handed in has its outcome.
func (s *scheduler) flush(ctx context.Context) error {
	s.mu.Lock()
	s.urgent++
	waitFor := s.seal()
	s.pump(time.Now())
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.urgent--
	}()
	for _, e := range waitFor {
		select {
		case <-e.done:
		case <-ctx.Done():
			return fmt.Errorf("sqsfifo: events still under way: %w", context.Cause(ctx))
		}
	}
	return nil
}

// seal ends the current epoch and returns those that are not through.
func (s *scheduler) seal() []*epoch {
	s.epochs = slices.DeleteFunc(s.epochs, func(e *epoch) bool { return e.events == 0 })
	if s.current.events > 0 {
		s.current.sealed = true
		s.epochs = append(s.epochs, s.current)
		s.current = &epoch{done: make(chan struct{})}
	}
	return slices.Clone(s.epochs)
}

// close refuses new events and waits for those that it has.
func (s *scheduler) close(ctx context.Context) error {
	s.room.close()
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		s.pump(time.Now())
		s.rest()
	}
	s.mu.Unlock()
	select {
	case <-s.idle:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("sqsfifo: close: events still under way: %w", context.Cause(ctx))
	}
}
