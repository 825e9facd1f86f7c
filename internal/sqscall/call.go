// Package sqscall makes one request to SQS and finds out the fate of each message: stored,
// not stored, altered, or in doubt if nothing else is proven.
//
// A [Caller] has no state between requests and may be used by any number of goroutines.
// The order in groups, retries, deduplication and telemetry are tasks of its users. Of this
// module, the package imports only attempt, digest, foreign, queueurl, window and wire.
package sqscall

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/digest"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
)

const (
	// Timeout limits one request, so a silent connection costs only one attempt.
	Timeout = window.Request

	// MaxEntries is the largest number of entries that SQS accepts in one request.
	MaxEntries = 10
)

// Client is the subset of *sqs.Client used by a Caller.
//
// A wrapper of an *sqs.Client must pass on the functional options, which turn the SDK's
// retries off and record the request's progress. Without the options, Send reports more
// messages as in doubt, but never a wrong fate.
type Client interface {
	SendMessage(context.Context, *sqs.SendMessageInput, ...func(*sqs.Options)) (*sqs.SendMessageOutput, error)
	SendMessageBatch(context.Context, *sqs.SendMessageBatchInput, ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error)
}

// Entry is one message of a request. An Entry must stay unchanged during Send.
type Entry struct {
	Body, Group *string

	// BodyMD5 is the digest of Body.
	BodyMD5 digest.Sum

	// DeduplicationID is nil for content-based deduplication.
	DeduplicationID *string

	Attributes map[string]types.MessageAttributeValue
}

// Caller makes requests to one queue.
type Caller struct {
	client   Client
	lean     *lean // nil for a client whose requests only the SDK can make
	queueURL string
	timeout  time.Duration

	// ShowTexts keeps the client's texts in the errors from Send. Otherwise Send hides
	// them, because they may quote messages. Set ShowTexts before the first request.
	ShowTexts bool
}

// New returns a Caller that sends to the queue through the client.
func New(client Client, queueURL string) *Caller {
	return &Caller{client: client, lean: newLean(client), queueURL: queueURL, timeout: Timeout}
}

// Send makes one request with 1 to MaxEntries entries and sets answers[i] for entries[i].
// The slice `answers` must be at least as long as the slice `entries`. An entry without a
// proof of its fate is in doubt. Every answer except FateStored has an Err.
//
// The result `load` is the largest Load of the answers. The result err is the error of the
// request as a whole: nil if SQS answered entry by entry.
//
// Send returns after Timeout at the latest if the client obeys its context. If ctx is
// canceled after the request has left, the entries are in doubt. Send recovers a panic of
// the client. If the client ends the goroutine (runtime.Goexit), Send does not return and
// the answers say FateInDoubt.
func (c *Caller) Send(ctx context.Context, entries []Entry, answers []attempt.Answer) (load attempt.Load, err error) {
	load, _, err = c.SendIf(ctx, entries, answers, nil)
	return load, err
}

// SendIf is Send with a condition: the function `permit` reports whether the request may be
// sent. It must return quickly. A nil `permit` always allows the request.
//
// SendIf calls `permit` before it calls the client. With the SDK's client, SendIf calls
// `permit` again when the request is signed and about to go to the network. If `permit` returns
// false, SendIf drops the request. In each answer, the field Fate is then FateNotStored, the
// field `Next` is NextRetry, and the field Err is or wraps ErrNotAllowed.
//
// SendIf also returns the Exchange, which describes the HTTP response.
func (c *Caller) SendIf(ctx context.Context, entries []Entry, answers []attempt.Answer, permit func() bool) (load attempt.Load, exchange Exchange, err error) {
	answers = answers[:len(entries)]
	if n := len(entries); n < 1 || n > MaxEntries {
		spread(answers, attempt.Answer{Fate: attempt.FateNotStored, Err: errEntryCount})
		return attempt.LoadPassed, exchange, errEntryCount
	}
	// If the client calls runtime.Goexit, these answers stay. Their zero Fate is
	// FateInDoubt.
	spread(answers, attempt.Answer{Load: attempt.LoadTroubled, Err: errNoReturn})
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	p := &progress{permit: permit}
	if !p.allowed() {
		spread(answers, attempt.Answer{Fate: attempt.FateNotStored, Next: attempt.NextRetry, Err: ErrNotAllowed})
		return attempt.LoadPassed, exchange, ErrNotAllowed
	}
	ctx = p.follow(ctx)
	if len(entries) == 1 {
		err = c.sendOne(ctx, p, entries, answers)
	} else {
		err = c.sendBatch(ctx, p, entries, answers)
	}
	exchange = p.exchange()
	if err != nil {
		whole := p.judge(err, len(entries))
		whole.Err = err
		spread(answers, whole)
		return whole.Load, exchange, whole.Err
	}
	for i := range answers {
		load = max(load, answers[i].Load)
	}
	return load, exchange, nil
}

func (c *Caller) sendOne(ctx context.Context, p *progress, entries []Entry, answers []attempt.Answer) error {
	e := &entries[0]
	out, err := call(ctx, c, p, c.client.SendMessage, &sqs.SendMessageInput{
		QueueUrl:               &c.queueURL,
		MessageBody:            e.Body,
		MessageGroupId:         e.Group,
		MessageDeduplicationId: e.DeduplicationID,
		MessageAttributes:      e.Attributes,
	})
	if err != nil {
		return err
	}
	if err := p.checkStatus(out.ResultMetadata); err != nil {
		return err
	}
	answers[0] = prove(entries, 0, confirmation{
		out.MessageId, out.SequenceNumber, out.MD5OfMessageBody, out.MD5OfMessageAttributes,
	})
	return nil
}

func (c *Caller) sendBatch(ctx context.Context, p *progress, entries []Entry, answers []attempt.Answer) error {
	request := make([]types.SendMessageBatchRequestEntry, len(entries))
	for i := range entries {
		e := &entries[i]
		request[i] = types.SendMessageBatchRequestEntry{
			Id:                     &entryIDs[i],
			MessageBody:            e.Body,
			MessageGroupId:         e.Group,
			MessageDeduplicationId: e.DeduplicationID,
			MessageAttributes:      e.Attributes,
		}
	}
	out, err := call(ctx, c, p, c.client.SendMessageBatch, &sqs.SendMessageBatchInput{QueueUrl: &c.queueURL, Entries: request})
	if err != nil {
		return err
	}
	if err := p.checkStatus(out.ResultMetadata); err != nil {
		return err
	}
	proveBatch(entries, out, answers, c.hide)
	return nil
}

// call makes a request with a method of the client, or without it (see type lean). A panic of
// the client, and a result with neither an answer nor an error, are errors.
func call[In, Out any](ctx context.Context, c *Caller, p *progress, method func(context.Context, *In, ...func(*sqs.Options)) (*Out, error), in *In) (out *Out, err error) {
	defer c.recoverInto(&err)
	with := options
	if c.lean != nil {
		out = new(Out)
		switch answer, err := c.lean.send(ctx, p, in, out); {
		case err != nil:
			return nil, err
		case answer == nil: // nothing was sent
		case answer.plain:
			return out, nil
		default:
			p.replays = true
			ctx, with = answer, []func(*sqs.Options){answer.configure}
		}
	}
	out, err = method(ctx, in, with...)
	switch {
	case err != nil:
		return nil, c.hide(err)
	case out == nil:
		return nil, errNoOutput
	}
	return out, nil
}

// recoverInto sets err to a PanicError after a panic of the client. After runtime.Goexit it
// changes nothing, and Send does not return.
func (c *Caller) recoverInto(err *error) {
	if v := recover(); v != nil {
		*err = c.newPanicError(v)
	}
}

func spread(answers []attempt.Answer, a attempt.Answer) {
	for i := range answers {
		answers[i] = a
	}
}

// configure turns off the SDK's retries: after a retry, the result would prove nothing
// about earlier attempts. It also turns off the SDK's check of digests, because the SDK
// would treat a whole batch as failed after one wrong digest.
func configure(o *sqs.Options) {
	o.Retryer = aws.NopRetryer{}
	o.DisableMessageChecksumValidation = true
	o.APIOptions = append(o.APIOptions, addMiddleware)
}

var options = []func(*sqs.Options){configure}

func addMiddleware(stack *middleware.Stack) error {
	return errors.Join(stack.Initialize.Add(noteCall, middleware.Before), stack.Deserialize.Add(noteTransmission, middleware.After))
}

var entryIDs = [MaxEntries]string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}

// entryIndex returns the index of the entry that has the given ID in a request of n
// entries. It returns false for any other ID.
func entryIndex(id *string, n int) (int, bool) {
	if id == nil || len(*id) != 1 {
		return 0, false
	}
	i := int((*id)[0]) - '0'
	return i, i >= 0 && i < n
}
