package sqsfifo

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/google/uuid"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
)

const (
	// attemptTimeout bounds one request, so that a connection that went silent
	// costs one attempt and not the whole horizon.
	attemptTimeout = 20 * time.Second

	// resendHorizon is how long after its first attempt another attempt of a
	// message may begin and still end inside the deduplication interval.
	resendHorizon = window.Interval - attemptTimeout - clockSlack

	// defaultRetryFor leaves a caller some of the horizon for a resend.
	defaultRetryFor = window.Interval - 30*time.Second

	firstBackoff = 100 * time.Millisecond
	mostBackoff  = 5 * time.Second
)

// age is how much time has passed since then, by the clock that says more: the
// monotonic one stops while the machine is suspended, the other may be set back.
func age(then, now time.Time) time.Duration {
	return max(now.Sub(then), now.Round(0).Sub(then.Round(0)))
}

// SendError says that a message may or may not be in the queue: a request was
// sent and no answer told its outcome. It is the only error of this package
// that leaves a doubt; after every other one the message is surely not stored, or,
// with a [*DigestError], something else is in its place.
//
// To resolve the doubt, send the same message again before ResendBefore: SQS
// then either stores it or recognises the first. After that instant a resend may
// be delivered a second time.
type SendError struct {
	EventID   uuid.UUID
	DedupeKey string

	// Attempts is the number of requests made, at least 1.
	Attempts int

	// ResendBefore is the last instant at which a resend is surely
	// deduplicated, by the wall clock of this machine.
	ResendBefore time.Time

	// Err is the error of the last attempt.
	Err error
}

// Error says what is known. Like every error of this package it names the event
// by its ID, and has neither its key nor anything of its payload in the text.
func (e *SendError) Error() string {
	return fmt.Sprintf("sqsfifo: event %v may have been sent, no answer after %d attempts; resend before %s: %v",
		e.EventID, e.Attempts, e.ResendBefore.UTC().Format(time.RFC3339), e.Err)
}

// Unwrap returns Err.
func (e *SendError) Unwrap() error { return e.Err }

// RefusedError says that a message is surely not in the queue although it broke
// no rule: SQS refused each attempt, none left this machine, for want of
// credentials or a connection, or the context ended before the first.
// Sending it again is safe at any time.
type RefusedError struct {
	EventID   uuid.UUID
	DedupeKey string

	// Attempts is the number of requests made; 0 if none was.
	Attempts int

	// Code is the error code of SQS, such as
	// "AWS.SimpleQueueService.NonExistentQueue", or "" if there was no answer.
	Code string

	// Err is the error of the last attempt, or the context's.
	Err error
}

// Error says what refused the message.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("sqsfifo: event %v not sent after %d attempts: %v", e.EventID, e.Attempts, e.Err)
}

// Unwrap returns Err.
func (e *RefusedError) Unwrap() error { return e.Err }

// ErrorType returns Code, the value of the OpenTelemetry attribute error.type.
func (e *RefusedError) ErrorType() string {
	if e.Code == "" {
		return "_OTHER"
	}
	return e.Code
}

// outcome is what one attempt of one message came to.
type outcome struct {
	messageID, sequence string // of a stored message
	duplicate           bool   // SQS had it already
	overtaken           bool   // a later one of its group was stored before it

	err       error
	code      string // of SQS
	ambiguous bool   // the message may have been stored
	altered   bool   // SQS took something else: err is or wraps a DigestError
	retry     bool   // another attempt may end otherwise
	pace      pace   // what it says about the rate of calls

	unsent  bool // it was left out of the request
	refused bool // because it may never be sent
}

// attempt sends the events in one request and returns an outcome for each, and
// what the answer says about the rate. The request outlives the contexts of its
// events: to break it off would only leave all of them in doubt.
func (s *sender) attempt(batch []*pending) ([]outcome, pace) {
	ctx := context.Background()
	if len(batch) == 1 {
		ctx = context.WithoutCancel(batch[0].ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	var j journey
	ctx, call := s.telemetry.startCall(j.watch(ctx), batch)
	var outcomes []outcome
	var err error
	if len(batch) == 1 {
		outcomes, err = s.attemptOne(ctx, batch[0])
	} else {
		outcomes, err = s.attemptBatch(ctx, batch)
	}
	what := passedPace
	if err != nil {
		o := classify(err, j.neverLeft())
		what = o.pace
		outcomes = make([]outcome, len(batch))
		for i := range outcomes {
			outcomes[i] = o
		}
	} else {
		for _, o := range outcomes {
			what = max(what, o.pace)
		}
	}
	s.telemetry.finishCall(ctx, call, outcomes, err)
	return outcomes, what
}

func (s *sender) attemptBatch(ctx context.Context, batch []*pending) ([]outcome, error) {
	entries := make([]types.SendMessageBatchRequestEntry, len(batch))
	for i, p := range batch {
		entries[i] = types.SendMessageBatchRequestEntry{
			Id:                     &entryIDs[i],
			MessageBody:            &p.msg.Body,
			MessageGroupId:         &p.msg.Group,
			MessageDeduplicationId: s.deduplicationID(p),
			MessageAttributes:      p.attributes,
		}
	}
	out, err := s.client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &s.queueURL, Entries: entries}, perAttempt...)
	if err != nil {
		return nil, err
	}
	// An entry without an answer is in doubt.
	outcomes := make([]outcome, len(batch))
	for i := range outcomes {
		outcomes[i] = outcome{err: errNoEntryAnswer, ambiguous: true, retry: true}
	}
	for _, ok := range out.Successful {
		if i, found := entryIndex(ok.Id, len(batch)); found {
			outcomes[i] = s.stored(batch[i], ok.MessageId, ok.SequenceNumber, ok.MD5OfMessageBody, ok.MD5OfMessageAttributes)
		}
	}
	for _, failed := range out.Failed {
		if i, found := entryIndex(failed.Id, len(batch)); found {
			outcomes[i] = entryOutcome(failed)
		}
	}
	return outcomes, nil
}

func (s *sender) attemptOne(ctx context.Context, p *pending) ([]outcome, error) {
	out, err := s.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl:               &s.queueURL,
		MessageBody:            &p.msg.Body,
		MessageGroupId:         &p.msg.Group,
		MessageDeduplicationId: s.deduplicationID(p),
		MessageAttributes:      p.attributes,
	}, perAttempt...)
	if err != nil {
		return nil, err
	}
	return []outcome{s.stored(p, out.MessageId, out.SequenceNumber, out.MD5OfMessageBody, out.MD5OfMessageAttributes)}, nil
}

// stored is the outcome of a message of which SQS says that it has it.
func (s *sender) stored(p *pending, messageID, sequence, body, attributes *string) outcome {
	if err := s.checkDigests(p, body, attributes); err != nil {
		return outcome{err: err, altered: true}
	}
	return outcome{messageID: aws.ToString(messageID), sequence: aws.ToString(sequence)}
}

// oneAttempt turns the SDK's retries off: the producer has to see each attempt,
// because one without an answer decides what may be said about the message, and
// how far it came. The SDK's check of digests gives way to that of each message.
func oneAttempt(o *sqs.Options) {
	o.Retryer = aws.NopRetryer{}
	o.DisableMessageChecksumValidation = true
	o.APIOptions = append(o.APIOptions, noteJourney)
}

var perAttempt = []func(*sqs.Options){oneAttempt}

var errNoEntryAnswer = errors.New("the answer to the batch does not mention the entry")

var entryIDs = [maxBatchEntries]string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}

func entryIndex(id *string, n int) (int, bool) {
	if id == nil || len(*id) != 1 {
		return 0, false
	}
	i := int((*id)[0]) - '0'
	return i, i >= 0 && i < n
}

// entryOutcome reads the failure of a batch entry. A fault of the sender and a
// throttle are final words; after a fault of the service nobody knows.
func entryOutcome(failed types.BatchResultErrorEntry) outcome {
	code := aws.ToString(failed.Code)
	throttled := isThrottle(code)
	err := &smithy.GenericAPIError{Code: code, Message: aws.ToString(failed.Message), Fault: smithy.FaultServer}
	if failed.SenderFault {
		err.Fault = smithy.FaultClient
	}
	o := outcome{err: err, code: code, ambiguous: !failed.SenderFault && !throttled, retry: !failed.SenderFault || throttled}
	if throttled {
		o.pace = throttledPace
	}
	return o
}

// classify says what an error of the client means for the message. It never
// calls a message refused unless SQS has said so or no request left.
func classify(err error, neverLeft bool) outcome {
	var api smithy.APIError
	if errors.As(err, &api) {
		o := outcome{err: err, code: api.ErrorCode()}
		var status interface{ HTTPStatusCode() int }
		switch {
		case isThrottle(o.code):
			o.retry, o.pace = true, throttledPace
		case errors.As(err, &status) && status.HTTPStatusCode() >= http.StatusInternalServerError,
			api.ErrorFault() == smithy.FaultServer:
			o.ambiguous, o.retry, o.pace = !neverLeft, true, troubledPace // credentials have services of their own
		}
		return o
	}
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return outcome{err: err, retry: true, pace: troubledPace}
	}
	var (
		params      smithy.InvalidParamsError
		serialize   *smithy.SerializationError
		certificate *tls.CertificateVerificationError // in the handshake, before the request
	)
	if errors.As(err, &params) || errors.As(err, &serialize) || errors.As(err, &certificate) {
		return outcome{err: err}
	}
	// A request that broke off is worth another attempt. What is none of the
	// SDK's network errors, such as missing credentials, will not go away.
	var (
		send        *smithyhttp.RequestSendError
		deserialize *smithy.DeserializationError
		response    *smithyhttp.ResponseError
		network     net.Error
	)
	broken := errors.As(err, &send) || errors.As(err, &deserialize) || errors.As(err, &response) || errors.As(err, &network) ||
		errors.Is(err, context.DeadlineExceeded)
	o := outcome{err: err, ambiguous: !neverLeft, retry: broken}
	if broken {
		o.pace = troubledPace
	}
	return o
}

// isThrottle reports whether SQS refused the call for its rate, before it was
// executed.
func isThrottle(code string) bool {
	switch code {
	case "OverLimit", "AWS.SimpleQueueService.OverLimit", "KMS.ThrottlingException", "KmsThrottled":
		return true
	}
	_, ok := retry.DefaultThrottleErrorCodes[code]
	return ok
}

// backoff returns the wait after the given number of attempts: doubled each
// time and jittered, so that many producers do not come back at once.
func backoff(attempts int) time.Duration {
	d := mostBackoff
	if attempts < 7 {
		d = min(firstBackoff<<(attempts-1), mostBackoff)
	}
	return d/2 + rand.N(d/2) // #nosec G404 -- timing only, never part of a message
}
