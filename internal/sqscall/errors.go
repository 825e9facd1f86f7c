package sqscall

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

var (
	// ErrUnproven is wrapped by the errors of an answer that lacks a part of the
	// proof. The message may be stored.
	ErrUnproven = errors.New("the answer does not prove that the message was stored")

	// ErrNotAllowed is the error of a request that was not sent, because it was not
	// allowed any more when it was about to leave.
	ErrNotAllowed = errors.New("the request was not sent: it was too late for it")

	// ErrMixedUp is the error of an entry whose answer has the digest of another
	// entry of the request. Something on the way to SQS mixes up the entries of
	// an answer; it cannot do so in a request with one entry.
	ErrMixedUp = errors.New("the answer mixes up the entries of the batch")

	// ErrAltered is the error of an entry whose answer has a digest that belongs to
	// none of the entries: something on the way changed the message.
	ErrAltered = errors.New("the digest in the answer is not that of the message")
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

// StatusError reports a success with an HTTP status that SQS does not answer a
// send with. It wraps [ErrUnproven].
type StatusError struct{ Status int }

func (e *StatusError) Error() string {
	return fmt.Sprintf("%v: HTTP status %d", ErrUnproven, e.Status)
}

// Unwrap returns ErrUnproven.
func (e *StatusError) Unwrap() error { return ErrUnproven }

// PanicError reports that the client panicked. The message may be stored.
type PanicError struct {
	// Text is that of the value if it is a string or an error, otherwise the type
	// of the value: a value of another type may hold the message.
	Text string
}

func (e *PanicError) Error() string { return "the client panicked: " + e.Text }

func newPanicError(v any) *PanicError {
	switch v.(type) {
	case string, error, fmt.Stringer:
		return &PanicError{fmt.Sprint(v)} // which survives a panic in v's methods
	}
	return &PanicError{fmt.Sprintf("%T", v)}
}

// redactedError hides what an error's text quotes of a message. Unwrap leads to
// the original, whose text the producer must not print.
type redactedError struct {
	text string
	err  error
}

func (e *redactedError) Error() string { return e.text }
func (e *redactedError) Unwrap() error { return e.err }

// redact returns err, or an error that wraps it and has none of the bodies, keys
// and attribute values of the entries in its text. SQS quotes what it finds
// invalid, and an answer that is not from SQS may quote anything.
func redact(err error, entries []Entry) error {
	before, ok := textOf(err)
	if !ok {
		return &redactedError{fmt.Sprintf("an error of type %T, whose text cannot be read", err), err}
	}
	text := before
	for i := range entries {
		e := &entries[i]
		text = hide(text, e.Body)
		text = hide(text, e.Group)
		text = hide(text, e.DeduplicationID)
		for _, a := range e.Attributes {
			text = hide(text, a.StringValue)
		}
	}
	if text == before {
		return err
	}
	return &redactedError{text, err}
}

// textOf is the text of a client's error. The Error method of one that was put together
// in part, such as the SDK's without a response, panics.
func textOf(err error) (text string, ok bool) {
	defer func() { ok = recover() == nil }()
	return err.Error(), true
}

const hidden = "[hidden]"

// hide replaces the secret in text, as it is and as Go and JSON quote it.
func hide(text string, secret *string) string {
	if secret == nil || len(*secret) > len(text) {
		return text
	}
	text = hideWord(text, *secret)
	quoted := strconv.Quote(*secret)
	if quoted = quoted[1 : len(quoted)-1]; quoted != *secret {
		text = hideWord(text, quoted)
	}
	return text
}

// hideWord replaces the secret where it is a word, so that a group called "a"
// does not make every text unreadable.
func hideWord(text, secret string) string {
	if secret == "" {
		return text
	}
	var b strings.Builder
	rest, from := text, 0
	for {
		i := strings.Index(rest[from:], secret)
		if i < 0 {
			break
		}
		i += from
		before, _ := utf8.DecodeLastRuneInString(rest[:i])
		first, _ := utf8.DecodeRuneInString(secret)
		last, _ := utf8.DecodeLastRuneInString(secret)
		after, _ := utf8.DecodeRuneInString(rest[i+len(secret):])
		if isWord(before) && isWord(first) || isWord(last) && isWord(after) {
			from = i + 1
			continue
		}
		b.WriteString(rest[:i])
		b.WriteString(hidden)
		rest, from = rest[i+len(secret):], 0
	}
	if b.Len() == 0 {
		return text
	}
	return b.String() + rest
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
