package consumer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/observe"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/sink"
)

// Consumer receives and handles events of type T. Create one with [New]. Its methods may
// be called concurrently.
type Consumer[T any] struct {
	config  Config[T]
	engine  *engine
	started atomic.Bool

	attempts chan struct{} // one value for each running call of Attempt
}

// New returns a consumer. The error joins a [*sqsfifo.InvalidError] for each invalid field.
// New does not call SQS: [Consumer.Preflight] checks the queues, and [Consumer.Run] begins
// to receive.
func New[T any](client Client, config Config[T]) (*Consumer[T], error) {
	config.setDefaults()
	err := config.validate()
	if v := reflect.ValueOf(client); client == nil || v.Kind() == reflect.Pointer && v.IsNil() {
		err = errors.Join(fmt.Errorf("consumer: %w", &sqsfifo.InvalidError{Field: "client", Found: "nil", Rule: "pass what sqs.NewFromConfig returned"}), err)
	}
	if err != nil {
		return nil, err
	}
	c := &Consumer[T]{config: config, attempts: make(chan struct{}, config.Groups)}
	t := config.Telemetry
	var e *engine
	watch, err := observe.NewConsumer(observe.ConsumerConfig{
		Meter: t.MeterProvider, Tracer: t.TracerProvider, Propagator: t.Propagator, QueueURL: config.QueueURL, Version: sqsfifo.Version,
		Snapshot: func() observe.ConsumerSnapshot { return observed(e.snapshot()) },
	})
	if err != nil {
		return nil, err
	}
	e = newEngine(settings{
		queueURL: config.QueueURL, groups: config.Groups, perReceive: config.PerReceive, messages: config.Messages, bytes: config.Bytes,
		visibility: config.Visibility, maxHold: config.MaxHold, wait: min(config.Wait, (config.Visibility / 3).Truncate(time.Second)), stop: config.Shutdown,
		rules: config.Failure, showKeys: t.ShowDedupeKeys,
	}, client, c, watch, sink.NewLog(cmp.Or(t.Logger, slog.Default()), "consumer", config.QueueURL))
	c.engine = e
	return c, nil
}

func observed(s Stats) observe.ConsumerSnapshot {
	return observe.ConsumerSnapshot{
		InHand: int64(s.Messages), Bytes: s.Bytes, Running: int64(s.Running), Sleeping: int64(s.Sleeping), Blocked: int64(s.Blocked),
		OldestHead: s.OldestHead.Seconds(), Handled: s.Handled, Duplicates: s.Duplicates, Parked: s.Parked, Skipped: s.Skipped,
		Failures: s.Failures, Lost: s.Lost, Released: s.Released, FailedReceives: s.FailedReceives,
	}
}

// Run receives and handles messages until ctx ends, and then shuts down. It may be called
// once; later calls return [ErrRunning]. Run repeats its work after network errors,
// throttles and outages of the store.
//
// The shutdown takes up to Config.Shutdown:
//
//   - Run stops receiving.
//   - Run releases unhandled messages: it makes them visible to other consumers, the last
//     message of each group first.
//   - Run waits for the running handlers and deletes the handled messages.
//   - After four fifths of the time, the contexts of the remaining handlers end with
//     [ErrShutdown].
//
// Run returns nil after a complete shutdown: all handlers have ended, and all messages were
// deleted, released or lost. Otherwise it returns a [*ShutdownError], a [*DeniedError] if
// SQS permanently refuses a necessary call, or both, joined. If the client's settings cannot
// reach a queue, Run returns a [*QueueError] at once.
func (c *Consumer[T]) Run(ctx context.Context) error {
	if c.started.Swap(true) {
		return ErrRunning
	}
	defer c.engine.watch.Close()
	defer c.engine.flushLog()
	return c.engine.work(ctx)
}

// Stats returns the counts so far and the present state.
func (c *Consumer[T]) Stats() Stats { return c.engine.snapshot() }

// Blocked returns the groups in this process whose first message has failed, ordered by
// [BlockedGroup].Since. [BlockedGroup].Blocked distinguishes groups that wait for an
// operator from groups that wait for their next attempt.
func (c *Consumer[T]) Blocked() []BlockedGroup { return c.engine.blocked() }

// Health returns nil, or an error if the last receive has failed. After an error of Run it
// returns this error. A program may serve it as its health check.
func (c *Consumer[T]) Health() error { return c.engine.health() }

// WaitIdle returns nil after a period d in which no message arrived, no message was in hand
// and no receive failed. Messages of groups that wait for an operator do not count. WaitIdle
// does not see messages that are in flight at other consumers or hidden.
//
// If all receives fail for the period d, and for at least 15 s, WaitIdle returns the error of
// [Consumer.Health]. If ctx ends first, it returns the cause of ctx.
func (c *Consumer[T]) WaitIdle(ctx context.Context, d time.Duration) error {
	return c.engine.waitIdle(ctx, d)
}

// ParkHead parks the first message of a sleeping or blocked group (see [Consumer.Retry]).
// It waits until the message is parked or ctx ends. The group then continues. ParkHead
// needs Failure.ParkingQueue.
//
// Two errors leave the group unchanged: [ErrNotBlocked] if the group is not, or no longer,
// sleeping or blocked in this process, and [ErrNotHead] if the first message has another ID
// than messageID.
//
// If this process must give up the group while it parks the message, ParkHead returns the
// reason: [ErrLost], [ErrHeldTooLong] or [ErrShutdown].
func (c *Consumer[T]) ParkHead(ctx context.Context, group, messageID string) error {
	return c.engine.parkHead(ctx, group, messageID)
}

// Pause stops receiving. Messages of earlier and running receives are still handled.
func (c *Consumer[T]) Pause() { c.engine.pause(true) }

// Resume ends a pause.
func (c *Consumer[T]) Resume() { c.engine.pause(false) }
