package sqscall

import (
	"errors"
	"fmt"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/foreign"
)

var (
	// ErrUnproven is wrapped by the errors of answers that do not prove storage, for
	// example answers without a message ID. SQS may still have stored the message.
	ErrUnproven = errors.New("the answer does not prove that the message was stored")

	// ErrNotAllowed is the error of a request that SendIf did not send, because the caller's
	// function `permit` returned false: usually the time for the request was over.
	ErrNotAllowed = errors.New("the request was not sent: it was too late for it")

	// ErrMixedUp is the error of an entry if SQS's answer has another entry's digest:
	// something between this process and SQS exchanges answers. The refused entries of
	// such a batch have this error, too. In a request with one entry it is impossible.
	ErrMixedUp = errors.New("the answer mixes up the entries of the batch")

	// ErrAltered is the error of an entry if the digest in SQS's answer does not match any
	// entry: something between this process and SQS changed the message.
	ErrAltered = errors.New("the digest in the answer differs from the message's digest")
)

var (
	errNoMessageID     = fmt.Errorf("%w: no message ID", ErrUnproven)
	errNoSequence      = fmt.Errorf("%w: no sequence number", ErrUnproven)
	errNoBodyMD5       = fmt.Errorf("%w: no digest of the body", ErrUnproven)
	errNoAttributesMD5 = fmt.Errorf("%w: no digest of the attributes", ErrUnproven)
	errNotMentioned    = fmt.Errorf("%w: it does not mention the entry", ErrUnproven)
	errMentionedTwice  = fmt.Errorf("%w: it mentions the entry more than once", ErrUnproven)
	errNoOutput        = fmt.Errorf("%w: the client returned neither an answer nor an error", ErrUnproven)
	errNoReturn        = fmt.Errorf("%w: the client ended the goroutine", ErrUnproven)

	errEntryCount = fmt.Errorf("a request has 1 to %d entries", MaxEntries)
)

// PanicError reports a panic of the client. SQS may have stored the messages, unless the
// SDK's client panicked before it passed the request to its HTTP client.
type PanicError struct {
	// Text describes the value of the panic:
	//   - for an error of the Go runtime, its full text;
	//   - for another error, its text without the parts that may quote a message (see
	//     package foreign);
	//   - for another value, only its type.
	//
	// With Caller.ShowTexts, Text is the full text of every error, string and fmt.Stringer.
	Text string
}

func (e *PanicError) Error() string { return "the client panicked: " + e.Text }

// known lists the errors and codes whose texts may be shown, because they are constants and
// quote no message.
var known = foreign.Known{
	Errors: []error{ErrNotAllowed, errTooLong},
	Code: func(code string) bool {
		_, ok := classes[withoutNamespace(code)]
		return ok
	},
}

// hide replaces the text of an error from the client by a safe text, unless c.ShowTexts is
// set. The original text may quote a message: SQS quotes invalid values, and a server other
// than SQS may quote anything.
func (c *Caller) hide(err error) error {
	if c.ShowTexts {
		return readable(err)
	}
	return known.Hide(err)
}

// readable returns err. If err.Error panics, readable returns an error with another text,
// which wraps err. Error panics for an incomplete error, such as an SDK error without a
// response.
func readable(err error) (shown error) {
	defer func() {
		if recover() != nil {
			shown = known.Hide(err)
		}
	}()
	_ = err.Error()
	return err
}

func (c *Caller) newPanicError(v any) *PanicError {
	if !c.ShowTexts {
		return &PanicError{known.Panic(v)}
	}
	switch v.(type) {
	case string, error, fmt.Stringer:
		return &PanicError{fmt.Sprint(v)} // if a method of v panics, Sprint recovers
	}
	return &PanicError{fmt.Sprintf("%T", v)}
}

// nameOf returns a known error code unchanged, and "" for any other: an answer from
// elsewhere than SQS may have any text as its code.
func nameOf(code string) string {
	if known.Code(code) {
		return code
	}
	return ""
}
