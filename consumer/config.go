package consumer

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// Config describes a [Consumer]. QueueURL, one handler and Failure.Action are required;
// the zero value of each other field is its default.
type Config[T any] struct {
	// QueueURL is the URL of a FIFO queue; it ends in ".fifo". A standard queue is refused,
	// because it has no order.
	QueueURL string

	// Decode reads the body of a message. The default is [sqsfifo.DecodeEnvelope], which
	// accepts the events of every organization. The function [JSON] returns a decoder for
	// bodies without an envelope. The function [SNS] adapts a decoder to bodies inside SNS
	// notifications.
	//
	// A decode error is permanent: another attempt would fail in the same way. But if
	// EnvelopeError.OtherOrganization is true, the event blocks its group, whatever
	// Failure.Action says: the decoder is configured wrongly, and the message is right.
	Decode func(body string) (sqsfifo.Envelope[T], error)

	// Key returns the identity of a message's effect, at most 2,048 bytes. It is unique
	// within the envelope's event source or, without one, within the queue.
	//
	// The default is the envelope's dedupe key or, without one, the MessageId. The
	// deduplication ID of SQS is unsuitable, because a redrive replaces it
	// (sqstest/FACTS.md, F-113).
	Key func(Message[T]) string

	// Handle is called for each message. Set Handle or HandleTx.
	Handle Handler[T]

	// HandleTx writes the handler's effect in a transaction, and must not end the
	// transaction. Claim, effect and record of success commit together, so the effect
	// happens once. HandleTx needs DB, and a Store over DB that implements [TxStore].
	HandleTx TxHandler[T]
	DB       *sql.DB

	// Store remembers handled keys. Without a Store each delivery is handled.
	Store idempotency.Store

	// Guarantee is GuaranteeAtLeastOnce (the default) or GuaranteeAtMostOnce. It decides
	// whether a message is handled again if an earlier attempt may have had its effect: the
	// consumer crashed and left a claim without an outcome in the store, or the handler
	// panicked or returned a [MaybeDone] error. GuaranteeAtMostOnce needs Handle and a Store.
	Guarantee Guarantee

	// Effect names the work of the handler, for example "send-invoice", in 1 to 128
	// printable ASCII characters without a space. The name is part of each key in the
	// store, so consumers that share a store and do different work need different names.
	// The default is "consume".
	Effect string

	// KeepKeys is the store's retention time of keys: at least the message retention of
	// the queue and of its dead-letter queue. The default is 30 days.
	KeepKeys time.Duration

	// Groups is the largest number of handlers that run concurrently. The default is 64.
	Groups int

	// PerReceive is how many messages a receive asks for, 1 to 10. The default is 10.
	PerReceive int

	// Messages and Bytes limit the number and total size of received messages in the
	// consumer. The default of Messages is 10 times Groups, at least 100. The default of
	// Bytes is 128 MiB.
	//
	// A receive reserves 1 MiB for each requested message. So Bytes must be at least
	// PerReceive MiB, and 128 MiB permits 12 concurrent receives of ten messages.
	Messages int
	Bytes    int64

	// Visibility is the visibility timeout, in whole seconds from 6 s to 11 hours. Until a
	// message is deleted or released, the consumer extends the timeout whenever a third of
	// it has passed. The default is 60 s.
	Visibility time.Duration

	// Timeout is the longest time for one call of the handler. The context of a longer call
	// ends with [ErrTimeout], and the call is a failed attempt unless it returns nil. Timeout
	// is at most MaxHold. The default is a third of MaxHold.
	Timeout time.Duration

	// MaxHold is the longest time that the handler may take for one received message, in all
	// its failed calls. The pauses and other calls between them do not count. When the time ends, so
	// does the handler's context, with [ErrHeldTooLong], and the messages of the group become
	// visible to other processes.
	//
	// MaxHold is at least Visibility. The default is 15 min. The maximum is 11 h 55 min. This
	// is also the longest time from the receive of a message to its delete, because SQS
	// allows 12 hours; it includes the pauses, and the time of a blocked group.
	MaxHold time.Duration

	// Wait is the duration of a receive's long poll, in whole seconds from 1 to 20. The
	// default is 20 s. The consumer uses at most a third of Visibility, in whole seconds.
	Wait time.Duration

	// Shutdown bounds the time from the end of [Consumer.Run]'s context to its return.
	// Handlers may use four fifths of Shutdown. The default is 25 s, because Kubernetes
	// kills a pod after 30 s.
	Shutdown time.Duration

	// Failure decides the fate of failed messages.
	Failure Failure

	// Probe reports whether the effect of a message happened. It is called if the store has
	// no outcome after a crash or an [MaybeDone] error. Only [GuaranteeAtMostOnce] permits Probe.
	//
	// If Probe returns an error, it is called again after a back-off. Without Probe,
	// Failure.Unresolved applies.
	Probe func(ctx context.Context, m Message[T]) (happened bool, err error)

	// Telemetry configures OpenTelemetry and the log; nil providers are the global ones.
	Telemetry Telemetry
}

// Handler handles one message. Several goroutines call the handler, never for two messages
// of one group concurrently. The handler must return when ctx ends.
//
// A nil error says that the effect is durable.
//
// [Permanent], [Defer], [NotDone] and [MaybeDone] wrap an error to say more about the
// outcome. After any other error the message is attempted again.
//
// A panic is an error of type [*PanicError].
type Handler[T any] func(ctx context.Context, m Message[T]) error

// TxHandler is a [Handler] that makes its effect in tx.
type TxHandler[T any] func(ctx context.Context, tx *sql.Tx, m Message[T]) error

// TxStore is the part of a store that HandleTx needs. The Store of package
// idempotency/sqlstore implements it.
type TxStore interface {
	ClaimTx(ctx context.Context, tx *sql.Tx, c idempotency.Claim) (idempotency.Outcome, error)
	CompleteTx(ctx context.Context, tx *sql.Tx, ref idempotency.Ref, result idempotency.Result) error
}

// Guarantee decides whether a message is handled again if an earlier attempt may have had its
// effect, for example because the consumer crashed during the attempt.
type Guarantee uint8

const (
	// GuaranteeAtLeastOnce handles the message again: an effect may happen twice.
	GuaranteeAtLeastOnce Guarantee = iota

	// GuaranteeAtMostOnce does not handle the message again, so an effect happens at most once.
	// [Config].Probe or [Failure].Unresolved decides about the message.
	GuaranteeAtMostOnce
)

// Action is the fate of an unhandled message. The zero value is invalid.
type Action uint8

const (
	// ActionPark sends the message to the parking queue and deletes it. The group
	// continues.
	ActionPark Action = iota + 1

	// ActionBlock keeps the failed message and its group, without further attempts, until a
	// call of [Consumer.Retry] or [Consumer.ParkHead]. SQS ends each hold after 12 hours. If
	// this process receives the message again, it blocks it at once. Another process does
	// not know of the failures, and makes attempts of its own.
	ActionBlock

	// ActionSkip logs and deletes the message. The group continues.
	ActionSkip
)

// String returns "park", "block" or "skip".
func (a Action) String() string {
	switch a {
	case ActionPark:
		return "park"
	case ActionBlock:
		return "block"
	case ActionSkip:
		return "skip"
	default:
		return fmt.Sprintf("Action(%d)", uint8(a))
	}
}

// Failure decides the fate of failed messages.
type Failure struct {
	// Action is the fate of a message after a permanent failure or after its last attempt.
	// It is required, because no default suits every program.
	//
	// ActionPark and ActionSkip let the group continue without the message, which breaks
	// its order. ActionBlock stops the group.
	Action Action

	// ParkingQueue is the URL of a FIFO queue. ActionPark and [Consumer.ParkHead] need it.
	//
	// A parked message keeps its group, body and attributes. Its deduplication ID is the
	// MessageId. The consumer adds the attributes parked_reason, parked_key, parked_from
	// and parked_attempts, as far as they fit the limits of SQS: ten attributes and 1 MiB.
	ParkingQueue string

	// Attempts is the maximum number of handler calls for one message. After a failure of
	// the last call, the Action applies. The default is 5.
	Attempts int

	// Deliveries is the largest receive count with which a message is handled. If the
	// receive count is larger, Action applies without a handler call. This ends the crash
	// loop of a handler that kills its process. 0, the default, means no limit.
	//
	// A receive does not prove a crash: a graceful shutdown during the handler call raises
	// the count, and it goes along to a dead-letter queue (sqstest/FACTS.md, F-150). So
	// ActionSkip excludes Deliveries. Receives after which this process gave the message up
	// do not count.
	//
	// The limit applies only to the first message of a group in each receive. A crash also
	// raises the receive counts of the later messages, although no handler was called for
	// them.
	Deliveries int

	// FirstBackoff is the longest random wait after the first failed attempt. The longest
	// wait doubles with each failure, up to MaxBackoff. The defaults are 1 s and 1 min.
	FirstBackoff, MaxBackoff time.Duration

	// Backoff, if set, returns the wait after a failed attempt, at least a millisecond. The
	// parameter attempts is the number of failed calls for the message, and err is the error
	// of the last one. FirstBackoff and MaxBackoff apply to all other waits, and if Backoff
	// panics.
	Backoff func(attempts int, err error) time.Duration

	// Unresolved is the action for a message whose effect may have happened (only with
	// [GuaranteeAtMostOnce]). The default is ActionBlock, because the other actions break the order.
	Unresolved Action
}

// Telemetry configures the instruments, spans and log of a consumer.
type Telemetry struct {
	MeterProvider  metric.MeterProvider
	TracerProvider trace.TracerProvider
	Propagator     propagation.TextMapPropagator

	// Logger receives log records for operators: failed attempts, blocked groups, parked,
	// skipped and lost messages. Its slog.Handler may be slow: at most 1,000 records wait,
	// and further records are dropped. Nil means slog.Default.
	Logger *slog.Logger

	// ShowDedupeKeys adds the key of the message ([Config].Key) to log records. Leave it
	// off where keys hold personal data.
	ShowDedupeKeys bool
}

// invalid returns the error for a field of [Config] that breaks a rule.
func invalid(field, rule string, args ...any) error {
	return fmt.Errorf("consumer: %w", &sqsfifo.InvalidError{Field: "Config." + field, Rule: fmt.Sprintf(rule, args...)})
}

const (
	mib            = 1 << 20
	longestHold    = 12*time.Hour - 5*time.Minute
	defaultHold    = 15 * time.Minute
	leastVisible   = 6 * time.Second
	mostVisible    = 11 * time.Hour
	defaultKeep    = 30 * 24 * time.Hour
	queueRetention = 14 * 24 * time.Hour // the longest retention period of SQS
)

func or[V comparable](v *V, otherwise V) { *v = cmp.Or(*v, otherwise) }

func (c *Config[T]) setDefaults() {
	if c.Decode == nil {
		c.Decode = sqsfifo.DecodeEnvelope[T]
	}
	or(&c.Effect, "consume")
	or(&c.KeepKeys, defaultKeep)
	or(&c.Groups, 64)
	or(&c.PerReceive, 10)
	or(&c.Messages, max(100, 10*c.Groups))
	or(&c.Bytes, 128*mib)
	or(&c.Visibility, time.Minute)
	or(&c.MaxHold, max(defaultHold, c.Visibility))
	or(&c.Timeout, c.MaxHold/3)
	or(&c.Wait, 20*time.Second)
	or(&c.Shutdown, 25*time.Second)
	or(&c.Failure.Attempts, 5)
	or(&c.Failure.FirstBackoff, time.Second)
	or(&c.Failure.MaxBackoff, max(time.Minute, c.Failure.FirstBackoff))
	or(&c.Failure.Unresolved, ActionBlock)
}

// validate returns an error for each field that breaks a rule. The caller has called
// setDefaults before.
func (c *Config[T]) validate() error {
	var errs []error
	check := func(ok bool, field, rule string, args ...any) {
		if !ok {
			errs = append(errs, invalid(field, rule, args...))
		}
	}
	check(isFIFO(c.QueueURL), "QueueURL", "%q does not end in .fifo; a standard queue keeps no order", c.QueueURL)
	switch {
	case c.Handle == nil && c.HandleTx == nil:
		check(false, "Handle", "nil; set Handle or HandleTx")
	case c.Handle != nil && c.HandleTx != nil:
		check(false, "Handle", "set beside HandleTx; set one of them")
	case c.HandleTx != nil:
		_, tx := c.Store.(TxStore)
		check(c.DB != nil, "DB", "nil; HandleTx needs the database of the effect")
		check(tx, "Store", "%T does not implement TxStore; HandleTx needs a store over DB, for example one of package sqlstore", c.Store)
		check(c.Guarantee == GuaranteeAtLeastOnce, "Guarantee", "AtMostOnce beside HandleTx; a transaction leaves no claim without an outcome")
	default:
		check(c.DB == nil, "DB", "set without HandleTx")
	}
	check(c.Guarantee <= GuaranteeAtMostOnce, "Guarantee", "unknown value; use GuaranteeAtLeastOnce or GuaranteeAtMostOnce")
	check(c.Guarantee == GuaranteeAtLeastOnce || c.Store != nil, "Guarantee", "AtMostOnce without a Store; set Store")
	if err := (idempotency.Key{Scope: "x", Operation: c.Effect, Value: "x"}).Check(); err != nil {
		check(false, "Effect", "%v", err)
	}
	check(c.KeepKeys >= queueRetention, "KeepKeys", "%v, want at least 14 days, the longest time that SQS keeps a message", c.KeepKeys)
	check(c.Groups >= 1, "Groups", "%d, want at least 1", c.Groups)
	check(c.PerReceive >= 1 && c.PerReceive <= 10, "PerReceive", "%d, want 1 to 10", c.PerReceive)
	check(c.Messages >= c.PerReceive, "Messages", "%d, want at least PerReceive = %d", c.Messages, c.PerReceive)
	check(c.Bytes >= int64(c.PerReceive)*mib, "Bytes", "%d, want at least 1 MiB for each of PerReceive = %d messages", c.Bytes, c.PerReceive)
	check(c.Visibility >= leastVisible && c.Visibility <= mostVisible && c.Visibility%time.Second == 0, "Visibility", "%v, want whole seconds from %v to %v", c.Visibility, leastVisible, mostVisible)
	check(c.MaxHold >= c.Visibility && c.MaxHold <= longestHold, "MaxHold", "%v, want Visibility to %v", c.MaxHold, longestHold)
	check(c.Timeout > 0 && c.Timeout <= c.MaxHold, "Timeout", "%v, want more than 0 and at most MaxHold = %v", c.Timeout, c.MaxHold)
	check(c.Wait >= time.Second && c.Wait <= 20*time.Second && c.Wait%time.Second == 0, "Wait", "%v, want whole seconds from 1s to 20s", c.Wait)
	check(c.Shutdown >= time.Second, "Shutdown", "%v, want at least 1s", c.Shutdown)
	check(c.Probe == nil || c.Guarantee == GuaranteeAtMostOnce, "Probe", "set without GuaranteeAtMostOnce; no other message is unresolved")
	errs = append(errs, c.Failure.validate(c.QueueURL)...)
	return errors.Join(errs...)
}

func (f *Failure) validate(queueURL string) (errs []error) {
	check := func(ok bool, field, rule string, args ...any) {
		if !ok {
			errs = append(errs, invalid("Failure."+field, rule, args...))
		}
	}
	check(f.Action >= ActionPark && f.Action <= ActionSkip, "Action", "not set; choose ActionPark, ActionBlock or ActionSkip for messages whose attempts are used up")
	check(f.Unresolved <= ActionSkip, "Unresolved", "unknown value; use ActionPark, ActionBlock or ActionSkip")
	if f.Action == ActionPark || f.Unresolved == ActionPark || f.ParkingQueue != "" {
		check(isFIFO(f.ParkingQueue), "ParkingQueue", "%q does not end in .fifo; parked messages keep their groups", f.ParkingQueue)
		check(f.ParkingQueue != queueURL, "ParkingQueue", "the consumer's queue; use another queue")
	}
	check(f.Attempts >= 1, "Attempts", "%d, want at least 1", f.Attempts)
	check(f.Deliveries >= 0, "Deliveries", "%d, want at least 0", f.Deliveries)
	check(f.Deliveries == 0 || f.Action != ActionSkip, "Deliveries", "set with ActionSkip; a receive count alone must not delete a message")
	check(f.FirstBackoff > 0 && f.MaxBackoff >= f.FirstBackoff, "FirstBackoff", "%v with MaxBackoff = %v, want 0 < FirstBackoff <= MaxBackoff", f.FirstBackoff, f.MaxBackoff)
	return errs
}

func isFIFO(queueURL string) bool { return strings.HasSuffix(queueURL, ".fifo") }

// queueName returns the last element of a queue's URL.
func queueName(queueURL string) string { return queueURL[strings.LastIndexByte(queueURL, '/')+1:] }
