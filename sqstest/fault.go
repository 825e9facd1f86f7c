package sqstest

// Deviations from AWS in this file: what AWS answers while it throttles or fails
// was not recorded for FIFO sends; codes and statuses are those of the service
// model, and an injected failure of an entry takes the code that the test gives it.

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
)

// Fault is one way in which a send goes wrong. The zero value lets the call
// pass, which a script needs for "the third call fails". A Fault is a value: it
// may be injected into any number of queues.
type Fault struct {
	early error // before anything is looked at or stored
	late  error // after everything is stored

	delay    time.Duration // of the answer
	truncate bool          // the answer

	choose  func(position int, e types.SendMessageBatchRequestEntry) bool
	failure *apiError

	// kind and entryIDs describe the fault over HTTP; a call that passes has no kind.
	kind     string
	entryIDs []string
}

// LoseAnswer lets the queue do the call and breaks the connection before the
// answer: the sender cannot know that its messages are stored. In process the
// error is the SDK's for a broken connection and matches io.ErrUnexpectedEOF;
// over HTTP the connection closes without a response.
func LoseAnswer() Fault {
	return Fault{late: &connectionError{io.ErrUnexpectedEOF}, kind: faultLoseAnswer}
}

// DropRequest breaks the connection before the queue sees the call. The sender
// cannot distinguish it from [LoseAnswer], but nothing is stored.
func DropRequest() Fault {
	return Fault{early: &connectionError{io.ErrUnexpectedEOF}, kind: faultDropRequest}
}

// ResetConnection is [DropRequest] with another end: the peer resets the
// connection, which matches syscall.ECONNRESET. Nothing is stored.
func ResetConnection() Fault {
	return Fault{early: &connectionError{syscall.ECONNRESET}, kind: faultResetConnection}
}

// TruncateAnswer lets the queue do the call and breaks the connection in the
// middle of the answer's body. The sender has a status and no result.
func TruncateAnswer() Fault { return Fault{truncate: true, kind: faultTruncateAnswer} }

// DelayAnswer lets the queue do the call and holds the answer back for d, in real
// or, inside a bubble, virtual time. A sender whose context ends first does not
// get it.
func DelayAnswer(d time.Duration) Fault { return Fault{delay: d, kind: faultDelayAnswer} }

// Throttle refuses the call with RequestThrottled, status 403, a code that the
// SDK's retryers know as throttling. Nothing is stored.
func Throttle() Fault {
	return Fault{early: requestThrottled.because("Request is throttled."), kind: faultThrottle}
}

// ServerError refuses the call with InternalFailure, status 500, before
// anything is stored.
func ServerError() Fault {
	return Fault{early: internalFailure.because("We encountered an internal error. Please try again."), kind: faultServerError}
}

// FailEntries fails the valid entries that choose picks, each with the given
// code, and lets the others through. fault says who is to blame, as SenderFault
// shows it: smithy.FaultClient for the sender, anything else for the service. A
// choose of nil picks every entry.
//
// A SendMessage counts as a batch of one entry without an Id: if it is picked,
// the call fails with the code, status 400 or 500.
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

// faultIDs numbers what is injected, for the control endpoint.
var faultIDs atomic.Uint64

// Inject adds f to the end of the queue's script, for the given number of
// calls. Each SendMessage and SendMessageBatch that names the queue takes the next
// step of the script in the order of arrival, whichever API it uses;
// after the last step calls pass again. An SDK client with a retryer takes a step
// for each attempt. A count below one adds nothing.
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

// PendingFaults returns the number of calls that the script still holds a step
// for. Zero at the end of a test shows that each fault met a call.
func (q *Queue) PendingFaults() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for _, s := range q.script {
		n += s.calls
	}
	return n
}

// InjectRandomly gives each later send call that meets no step of the script
// the fault f with the probability rate, 0 to 1. The same seed and the same calls
// in the same order meet the same faults. Faults that were injected earlier are
// tried first; a call meets at most one.
func (q *Queue) InjectRandomly(f Fault, rate float64, seed uint64) { q.injectRandomly(f, rate, seed) }

func (q *Queue) injectRandomly(f Fault, rate float64, seed uint64) (id uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	id = faultIDs.Add(1)
	// #nosec G404 -- chance for tests, the same each time
	q.chances = append(q.chances, chance{id, f, rate, seed, rand.New(rand.NewPCG(seed, seed))})
	return id
}

// SetQuota refuses send calls beyond so many a second on the queue's clock, as
// [Throttle] does, whether they hold one message or ten. The allowance of one
// second is there at the start and never grows above it. Zero ends the quota.
func (q *Queue) SetQuota(callsPerSecond int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.quota = quota{perSecond: float64(callsPerSecond), left: float64(callsPerSecond), at: q.now()}
}

// ClearFaults ends every fault: the script, the random ones and the quota.
func (q *Queue) ClearFaults() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.faults = faults{}
}

// faults is what a queue does wrong.
type faults struct {
	script  []scripted
	chances []chance
	quota   quota
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

// spend takes one call out of the allowance, if it has one left.
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

func (q *Queue) nextFault() Fault {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.quota.spend(q.now()) {
		return Throttle()
	}
	if len(q.script) > 0 {
		s := &q.script[0]
		f := s.fault
		if s.calls--; s.calls == 0 {
			q.script = q.script[1:]
		}
		return f
	}
	for _, c := range q.chances {
		if c.rng.Float64() < c.rate {
			return c.fault
		}
	}
	return Fault{}
}

// answer is what the sender gets of a call that the queue has done.
func answer[O any](ctx context.Context, f Fault, out *O, err error) (*O, error) {
	switch {
	case f.late != nil:
		return nil, f.late
	case err != nil:
		return nil, err
	case f.truncate:
		return nil, &truncatedError{out}
	case f.delay > 0:
		timer := time.NewTimer(f.delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return out, nil
}

// truncatedError is an answer that does not arrive whole.
type truncatedError struct{ out any }

func (e *truncatedError) Error() string { return "connection broken in the middle of the answer" }
func (e *truncatedError) Unwrap() error { return io.ErrUnexpectedEOF }

func (f Fault) entry(position int, e types.SendMessageBatchRequestEntry) *apiError {
	if f.choose != nil && f.choose(position, e) {
		return f.failure
	}
	return nil
}
