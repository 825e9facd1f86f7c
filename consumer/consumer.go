package consumer

import (
	"context"
	"errors"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/observe"
)

// Consumer receives and handles events of type T. Create one with [New]. Its methods may
// be called concurrently.
type Consumer[T any] struct {
	config  Config[T]
	engine  *engine
	started atomic.Bool
}

// New returns a consumer. It receives nothing until [Consumer.Run] is called. The error
// joins a [*ConfigError] for each field that breaks a rule. No call is made;
// [Consumer.Preflight] asks the queues.
func New[T any](client Client, config Config[T]) (*Consumer[T], error) {
	config.setDefaults()
	err := config.validate()
	if v := reflect.ValueOf(client); client == nil || v.Kind() == reflect.Pointer && v.IsNil() {
		err = errors.Join(&ConfigError{"client", "nil; use sqs.NewFromConfig"}, err)
	}
	if err != nil {
		return nil, err
	}
	c := &Consumer[T]{config: config}
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
	}, client, c, watch, newLog(t.Logger, config.QueueURL))
	c.engine = e
	return c, nil
}

func observed(s Stats) observe.ConsumerSnapshot {
	return observe.ConsumerSnapshot{
		InHand: int64(s.InHand), Bytes: s.Bytes, Running: int64(s.Running), Sleeping: int64(s.Sleeping), Blocked: int64(s.Blocked),
		OldestHead: s.OldestHead.Seconds(), Handled: s.Handled, Duplicates: s.Duplicates, Parked: s.Parked, Skipped: s.Skipped,
		Failures: s.Failures, Lost: s.Lost, Released: s.Released,
	}
}

// Run receives and handles messages until ctx ends, and shuts down. It may be called
// once; later calls return [ErrRunning].
//
// The shutdown takes up to Config.Shutdown. Run stops receiving, releases the messages
// that were not begun, the last ones of each group first, waits for handlers, and
// deletes the handled messages. After four fifths of the time the contexts of the
// remaining handlers end with [ErrShutdown].
//
// Run returns nil after a complete shutdown: all handlers and calls have ended, and all
// messages were deleted or released. Otherwise it returns a [*ShutdownError], a [*DeniedError] if SQS
// refuses to let the consumer work, or both, joined. Network errors, throttles and
// outages of the store are retried.
func (c *Consumer[T]) Run(ctx context.Context) error {
	if c.started.Swap(true) {
		return ErrRunning
	}
	defer c.engine.watch.Close()
	defer c.engine.log.flush()
	return c.engine.work(ctx)
}

// Stats returns the counts so far and the present state.
func (c *Consumer[T]) Stats() Stats { return c.engine.snapshot() }

// Blocked returns the groups in hand with failed heads, the oldest first: groups asleep
// before another attempt and groups waiting for an operator. SQS does not report the groups
// of other processes.
func (c *Consumer[T]) Blocked() []BlockedGroup { return c.engine.blocked() }

// WaitIdle waits for a period d without a new message, a running handler or a sleeping
// group. Groups waiting for an operator count as idle. WaitIdle returns the cause of ctx if
// ctx ends first.
func (c *Consumer[T]) WaitIdle(ctx context.Context, d time.Duration) error {
	return c.engine.waitIdle(ctx, d)
}

// Retry calls the handler for the first message of a sleeping or blocked group
// immediately. For a blocked group, the count of attempts starts again. Retry returns
// [ErrNotBlocked] if the group is neither sleeping nor blocked in this process.
func (c *Consumer[T]) Retry(group string) error { return c.engine.retry(group) }

// ParkHead parks the head of a sleeping or blocked group if it is the given message, and
// waits until it is parked or ctx ends. The group continues. ParkHead returns [ErrNotBlocked] or
// [ErrNotHead] if there is nothing to park.
func (c *Consumer[T]) ParkHead(ctx context.Context, group, messageID string) error {
	return c.engine.parkHead(ctx, group, messageID)
}

// Pause stops receiving; messages in hand are handled. Receives under way bring their
// messages.
func (c *Consumer[T]) Pause() { c.engine.pause(true) }

// Resume ends a pause.
func (c *Consumer[T]) Resume() { c.engine.pause(false) }
