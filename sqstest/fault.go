package sqstest

// Deviations from AWS in this file: what AWS answers while it throttles or fails
// was not recorded for FIFO sends; codes and statuses are those of the service
// model, and an injected failure of an entry takes the code that the test gives it.

import (
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
)

// Fault is one way in which a send goes wrong. The zero value lets the call
// pass, which a script needs for "the third call fails". A Fault is a value: it
// may be injected into any number of queues.
type Fault struct {
	early error // before anything is looked at or stored
	late  error // after everything is stored

	choose  func(position int, e types.SendMessageBatchRequestEntry) bool
	failure *apiError
}

// LoseAnswer lets the queue do the call and breaks the connection before the
// answer: the sender cannot know that its messages are stored. In process the
// error is the SDK's for a broken connection and matches io.ErrUnexpectedEOF;
// over HTTP the connection closes without a response.
func LoseAnswer() Fault { return Fault{late: &connectionError{io.ErrUnexpectedEOF}} }

// DropRequest breaks the connection before the queue sees the call. The sender
// cannot tell it from [LoseAnswer], but nothing is stored.
func DropRequest() Fault { return Fault{early: &connectionError{io.ErrUnexpectedEOF}} }

// Throttle refuses the call with RequestThrottled, status 403, a code that the
// SDK's retryers know as throttling. Nothing is stored.
func Throttle() Fault {
	return Fault{early: requestThrottled.because("Request is throttled.")}
}

// ServerError refuses the call with InternalFailure, status 500, before
// anything is stored.
func ServerError() Fault {
	return Fault{early: internalFailure.because("We encountered an internal error. Please try again.")}
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
	return Fault{choose: choose, failure: c.because("The entry was chosen to fail.")}
}

type scripted struct {
	fault Fault
	calls int
}

// Inject adds f to the end of the queue's script, for the given number of
// calls. Each SendMessage and SendMessageBatch that names the queue takes the next
// step of the script in the order of arrival, whichever door it comes through;
// after the last step calls pass again. An SDK client with a retryer takes a step
// for each attempt. A count below one adds nothing.
func (q *Queue) Inject(f Fault, calls int) {
	if calls < 1 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.script = append(q.script, scripted{f, calls})
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

func (q *Queue) nextFault() Fault {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.script) == 0 {
		return Fault{}
	}
	s := &q.script[0]
	f := s.fault
	if s.calls--; s.calls == 0 {
		q.script = q.script[1:]
	}
	return f
}

func (f Fault) entry(position int, e types.SendMessageBatchRequestEntry) *apiError {
	if f.choose != nil && f.choose(position, e) {
		return f.failure
	}
	return nil
}
