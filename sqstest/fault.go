package sqstest

// Deviations from AWS in this file: answers to throttled and failed calls may differ from
// AWS's, because no such answer from a FIFO queue on AWS was recorded. Codes and statuses
// follow the service model. With [FailEntries], the test chooses the code.

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/clock"
)

// Action is one kind of call to a queue, such as sends. SQS has a separate quota for each
// action.
type Action uint8

const (
	ActionSend       Action = iota // SendMessage, SendMessageBatch
	ActionReceive                  // ReceiveMessage
	ActionDelete                   // DeleteMessage, DeleteMessageBatch
	ActionVisibility               // ChangeMessageVisibility, ChangeMessageVisibilityBatch

	numberOfActions
)

// Fault is a fault for one or more calls of a queue: for sends, unless [Fault.On] selects
// another kind of call. The same Fault may be injected into any number of queues.
//
// The zero Fault lets a call pass. To fail only the third call, inject the zero Fault for two
// calls, and then the fault for one call.
type Fault struct {
	on Action

	early error // error returned before any check
	late  error // error returned after the call has taken effect

	delay    time.Duration // delay of the answer
	truncate bool          // the answer is cut off in the middle

	choose  func(position int, e types.SendMessageBatchRequestEntry) bool
	failure *apiError

	// The HTTP control endpoint shows kind and entryIDs in its list of faults.
	kind     string   // empty if the fault lets the call pass
	entryIDs []string // the batch entries to fail, if the fault was injected over HTTP
}

// On returns a copy of f for calls of the given kind. A Fault without On is for sends.
func (f Fault) On(action Action) Fault {
	f.on = action
	return f
}

// LoseAnswer lets the queue do the call and breaks the connection before the answer. The
// sender cannot know whether its messages are stored.
//
// In process the error is the SDK's error for a broken connection and matches
// io.ErrUnexpectedEOF. Over HTTP the connection closes without a response.
func LoseAnswer() Fault {
	return Fault{late: &connectionError{io.ErrUnexpectedEOF}, kind: faultLoseAnswer}
}

// DropRequest breaks the connection before the queue sees the call. Nothing is stored.
// The sender gets the same error as from [LoseAnswer].
func DropRequest() Fault {
	return Fault{early: &connectionError{io.ErrUnexpectedEOF}, kind: faultDropRequest}
}

// ResetConnection is [DropRequest] with another error: the peer resets the connection,
// and the error matches syscall.ECONNRESET. Nothing is stored.
func ResetConnection() Fault {
	return Fault{early: &connectionError{syscall.ECONNRESET}, kind: faultResetConnection}
}

// TruncateAnswer lets the queue do the call and breaks the connection in the middle of
// the answer's body. The sender gets the status of the answer and half of the body,
// but no result.
func TruncateAnswer() Fault { return Fault{truncate: true, kind: faultTruncateAnswer} }

// DelayAnswer lets the queue do the call and delays the answer by d, in virtual time inside
// a testing/synctest bubble. A sender whose context ends first does not get the answer.
func DelayAnswer(d time.Duration) Fault { return Fault{delay: d, kind: faultDelayAnswer} }

// Throttle refuses the call with RequestThrottled, status 403. The SDK's retryers treat
// this code as throttling. Nothing is stored.
func Throttle() Fault {
	return Fault{early: requestThrottled.because("Request is throttled."), kind: faultThrottle}
}

// ServerError refuses the call with InternalFailure, status 500, before
// anything is stored.
func ServerError() Fault {
	return Fault{early: internalFailure.because("We encountered an internal error. Please try again."), kind: faultServerError}
}

// FailEntries fails some valid entries of a batch with the given code. The other entries
// succeed. The function `choose` returns true for an entry to fail; a nil `choose` fails every
// entry.
//
// SenderFault in the answer is true if the parameter `fault` is smithy.FaultClient, otherwise
// false.
//
// A single call counts as a batch of one entry without an Id. If `choose` returns true, the
// call fails with the code. The status is 400 for smithy.FaultClient, otherwise 500.
//
// With [ActionDelete] and [ActionVisibility], `choose` gets entries without any values except
// the Id. With [ActionReceive], FailEntries has no effect.
func FailEntries(code string, fault smithy.ErrorFault, choose func(position int, e types.SendMessageBatchRequestEntry) bool) Fault {
	c := &errorClass{status: http.StatusInternalServerError, query: code, shape: frameworkShape + code, fault: smithy.FaultServer}
	if fault == smithy.FaultClient {
		c.status, c.fault = http.StatusBadRequest, fault
	}
	if choose == nil {
		choose = func(int, types.SendMessageBatchRequestEntry) bool { return true }
	}
	return Fault{choose: choose, failure: c.because("The entry was chosen to fail."), kind: faultFailEntries}
}

type scripted struct {
	id    uint64
	fault Fault
	calls int
}

// faultIDs numbers the injected faults for the control endpoint.
var faultIDs atomic.Uint64

// Inject adds the fault f to the end of the queue's script, which is a list of faults for
// the next calls. Each call takes one fault; when the script is empty, calls pass. The
// parameter `calls` is the number of calls that will take f. Below one, Inject adds nothing.
//
// By default f is for SendMessage and SendMessageBatch, over HTTP or by a method of [Queue].
// Receives, deletes and changes of visibility have separate scripts; see [Fault.On].
//
// If an SDK client retries a call, each attempt takes a fault.
func (q *Queue) Inject(f Fault, calls int) {
	q.inject(f, calls)
}

func (q *Queue) inject(f Fault, calls int) (id uint64) {
	if calls < 1 {
		return 0
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	id = faultIDs.Add(1)
	q.script = append(q.script, scripted{id, f, calls})
	return id
}

// PendingFaults returns the number of calls that the scripts will still affect. Zero at
// the end of a test means that each injected fault affected a call.
func (q *Queue) PendingFaults() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for _, s := range q.script {
		n += s.calls
	}
	return n
}

// InjectRandomly makes later calls fail at random: each call has the fault f with the
// probability `rate`, from 0 to 1. It affects sends, or the kind of call given to [Fault.On].
//
// The same seed and the same calls in the same order give the same faults. A call with a
// fault from [Queue.Inject] gets no random fault.
//
// A call has at most one random fault: the queue tries the faults in the order of their
// InjectRandomly calls until one applies.
func (q *Queue) InjectRandomly(f Fault, rate float64, seed uint64) { q.injectRandomly(f, rate, seed) }

func (q *Queue) injectRandomly(f Fault, rate float64, seed uint64) (id uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	id = faultIDs.Add(1)
	// #nosec G404 -- for tests: the same seed gives the same numbers
	q.chances = append(q.chances, chance{id, f, rate, seed, rand.New(rand.NewPCG(seed, seed))})
	return id
}

// SetQuota limits the rate of calls to callsPerSecond, by the queue's clock. Zero ends the
// quota. A call above the rate gets the error of [Throttle]. A batch counts as one call.
//
// The quota is for the given kinds of calls, by default for sends. Each kind has a separate
// allowance, like each action in SQS.
//
// The allowance starts full. Unused calls accumulate, up to the calls of one second.
func (q *Queue) SetQuota(callsPerSecond int, on ...Action) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(on) == 0 {
		on = []Action{ActionSend}
	}
	for _, calls := range on {
		q.quotas[calls] = quota{perSecond: float64(callsPerSecond), left: float64(callsPerSecond), at: q.now()}
	}
}

// ClearFaults removes the scripts, the random faults and the quotas.
func (q *Queue) ClearFaults() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.faults = faults{}
}

type faults struct {
	script  []scripted
	chances []chance
	quotas  [numberOfActions]quota
}

type chance struct {
	id    uint64
	fault Fault
	rate  float64
	seed  uint64
	rng   *rand.Rand
}

type quota struct {
	perSecond, left float64
	at              time.Time
}

// spend uses up one call of the allowance. It returns false if no call was left.
func (a *quota) spend(now time.Time) bool {
	if a.perSecond == 0 {
		return true
	}
	a.left = min(a.perSecond, a.left+now.Sub(a.at).Seconds()*a.perSecond)
	a.at = now
	if a.left < 1 {
		return false
	}
	a.left--
	return true
}

// nextFault returns the fault of the next call of the kind. The zero Fault lets the
// call pass.
func (q *Queue) nextFault(calls Action) Fault {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.quotas[calls].spend(q.now()) {
		return Throttle()
	}
	for i := range q.script {
		s := &q.script[i]
		if s.fault.on != calls {
			continue
		}
		f := s.fault
		if s.calls--; s.calls == 0 {
			q.script = slices.Delete(q.script, i, i+1)
		}
		return f
	}
	for _, c := range q.chances {
		if c.fault.on == calls && c.rng.Float64() < c.rate {
			return c.fault
		}
	}
	return Fault{}
}

// faulty runs a call of the given kind, with the next injected fault of this kind.
func faulty[O any](ctx context.Context, q *Queue, calls Action, run func(Fault) (*O, error)) (*O, error) {
	fault := q.nextFault(calls)
	if fault.early != nil {
		return nil, fault.early
	}
	out, err := run(fault)
	return answer(ctx, fault, out, err)
}

// answer applies the part of the fault f that concerns the answer: it replaces the
// result of a call by an error, or delays it.
func answer[O any](ctx context.Context, f Fault, out *O, err error) (*O, error) {
	switch {
	case f.late != nil:
		return nil, f.late
	case err != nil:
		return nil, err
	case f.truncate:
		return nil, &truncatedError{out}
	case f.delay > 0 && clock.Sleep(ctx, f.delay) != nil:
		return nil, ctx.Err()
	}
	return out, nil
}

// truncatedError is the result of a call whose answer is cut off in the middle.
type truncatedError struct{ out any }

func (e *truncatedError) Error() string { return "connection broken in the middle of the answer" }
func (e *truncatedError) Unwrap() error { return io.ErrUnexpectedEOF }

// entryErrorByID is like entryError, for an entry of a delete or a change of visibility. The
// parameter `id` is nil outside a batch.
func (f Fault) entryErrorByID(position int, id *string) *apiError {
	return f.entryError(position, types.SendMessageBatchRequestEntry{Id: id})
}

// entryError returns the injected error for an entry that [FailEntries] chooses to fail,
// otherwise nil.
func (f Fault) entryError(position int, e types.SendMessageBatchRequestEntry) *apiError {
	if f.choose != nil && f.choose(position, e) {
		return f.failure
	}
	return nil
}
