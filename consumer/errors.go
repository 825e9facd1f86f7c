package consumer

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/snsbody"
)

// These errors are the causes with which a handler's context ends. context.Cause returns
// them.
var (
	// ErrLost: SQS has given the message to another consumer, or may do so soon.
	ErrLost = errors.New("consumer: the message is lost: its visibility timeout ended or was changed elsewhere")

	// ErrTimeout: the call of the handler has taken Config.Timeout.
	ErrTimeout = errors.New("consumer: the call of the handler took longer than Config.Timeout")

	// ErrHeldTooLong: the calls of the handler for the message have taken Config.MaxHold, or
	// the consumer has held the message for 11 h 55 min.
	ErrHeldTooLong = errors.New("consumer: the message was held for the longest allowed time")

	// ErrShutdown: the consumer shuts down, and the time for handlers has passed. This time
	// is four fifths of Config.Shutdown.
	ErrShutdown = errors.New("consumer: shutting down")
)

var (
	// ErrNotBlocked: this process does not have a blocked or sleeping group with the given
	// name. A blocked group waits for an operator; a sleeping group waits for its next
	// attempt.
	ErrNotBlocked = errors.New("consumer: the group is not blocked in this process")

	// ErrNotHead: the first message of the group in this process has another message ID.
	ErrNotHead = errors.New("consumer: the message is not the head of its group in this process")

	// ErrRunning: Run was called twice.
	ErrRunning = errors.New("consumer: Run was called before; create a new consumer")
)

// Permanent wraps an error that every further attempt would return. Failure.Action applies
// to the message immediately, without a further attempt. Permanent returns nil for a nil
// error.
func Permanent(err error) error { return wrap(err, failedForGood, 0) }

// NotDone wraps an error to say that the handler had no effect. The call of the handler
// counts as an attempt. NotDone returns nil for a nil error.
func NotDone(err error) error { return wrap(err, failed, 0) }

// MaybeDone wraps a handler error to say that the handler's effect may have happened, for
// example after the timeout of a payment. MaybeDone returns nil for a nil error.
//
// With [GuaranteeAtMostOnce], the handler is not called again: see Config.Probe and
// Failure.Unresolved. With [GuaranteeAtLeastOnce], the handler is called again, as after an
// unwrapped error.
func MaybeDone(err error) error { return wrap(err, unresolved, 0) }

// Defer wraps a handler error that must not count as an attempt. The group pauses for the
// duration d, at least a millisecond, before the next call. Defer returns nil for a nil
// error.
//
// Use Defer for causes outside the message, for example a closed service or a reached
// limit.
func Defer(err error, d time.Duration) error { return wrap(err, deferred, max(d, time.Millisecond)) }

// kind is the outcome of an attempt.
type kind uint8

const (
	handled       kind = iota
	duplicate          // the store has a recorded success of the key
	failed             // counts as an attempt
	failedForGood      // no other attempt can succeed
	deferred           // the handler called Defer
	busy               // the store does not answer, or another consumer has the key
	unresolved         // the effect may have happened
	misconfigured      // the consumer is configured for other events
)

// wrappedError is an error of a handler, together with the outcome of the attempt.
type wrappedError struct {
	err   error
	kind  kind
	after time.Duration
}

func (q *wrappedError) Error() string { return q.err.Error() }
func (q *wrappedError) Unwrap() error { return q.err }

func wrap(err error, k kind, after time.Duration) error {
	if err == nil {
		return nil
	}
	return &wrappedError{err, k, after}
}

// PanicError is a panic of a function of [Config], of a store or of the client. The consumer
// treats the panic of a handler like an error wrapped by [MaybeDone]. A handler's error whose
// method Error panics, such as a nil pointer in an interface, is a PanicError, too.
type PanicError struct {
	Value string
	Stack string
}

func (e *PanicError) Error() string { return "consumer: panic: " + e.Value }

// errExited: a function of the caller ended its goroutine, as t.FailNow does.
var errExited = errors.New("consumer: a function of the caller called runtime.Goexit")

// notificationError is the error of a decoder for the body of an SNS notification.
type notificationError struct{ err error }

func (e *notificationError) Error() string { return "consumer: " + snsbody.Advice }
func (e *notificationError) Unwrap() error { return e.err }

// isOtherOrganization reports whether the decoder is configured for another organization
// than the body's: a mistake of the configuration, which must not delete messages.
func isOtherOrganization(err error) bool {
	var e *sqsfifo.EnvelopeError
	return errors.As(err, &e) && e.OtherOrganization
}

// DeniedError is returned by Run if SQS permanently refuses a call that the consumer needs.
// Without the right to delete, for example, SQS would deliver handled messages again.
type DeniedError struct {
	Operation string // of the API, for example "DeleteMessageBatch"
	Code      string
	Err       error
}

func (e *DeniedError) Error() string {
	return fmt.Sprintf("consumer: SQS refuses %s (%s); check the queue and the permissions: %v", e.Operation, e.Code, e.Err)
}
func (e *DeniedError) Unwrap() error { return e.Err }

// QueueError says why a queue does not fit a consumer.
type QueueError struct {
	QueueURL string
	Problems []string // what is wrong, and how to correct it
}

func (e *QueueError) Error() string {
	return fmt.Sprintf("consumer: queue %s does not fit: %s", e.QueueURL, strings.Join(e.Problems, "; "))
}

// ShutdownError reports an incomplete shutdown. The fields Running and Unreleased name
// groups with undeleted messages. SQS delivers these messages again when their visibility
// timeouts have ended.
type ShutdownError struct {
	// Running are the groups whose handlers have not returned, sorted.
	Running []string

	// Unreleased are the groups, sorted, with messages that the consumer neither deleted
	// nor made visible again.
	Unreleased []string
}

func (e *ShutdownError) Error() string {
	var parts []string
	if len(e.Running) > 0 {
		parts = append(parts, fmt.Sprintf("handlers still run for the groups %q", e.Running))
	}
	if len(e.Unreleased) > 0 {
		parts = append(parts, fmt.Sprintf("messages of the groups %q come back after their visibility timeout", e.Unreleased))
	}
	return "consumer: shutdown incomplete: " + strings.Join(parts, "; ")
}
