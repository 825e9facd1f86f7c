package sqscall

import (
	"crypto/md5" // #nosec G501 -- only for md5.Size
	"encoding/hex"
	"errors"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/digest"
)

// confirmation has the fields that SQS returns for a stored entry.
type confirmation struct{ messageID, sequence, bodyMD5, attributesMD5 *string }

// prove returns the answer for entry i, which SQS reports as stored. A digest that matches
// no entry means FateAltered, even if other fields are missing. After FateInDoubt, the
// producer would send the message again. SQS would answer the duplicate with the digest of
// the resend (F-002). This digest matches, so the change would stay unnoticed.
func prove(entries []Entry, i int, c confirmation) attempt.Answer {
	e := &entries[i]
	body, attributes := md5In(c.bodyMD5), md5In(c.attributesMD5)
	if body != "" && !isBody(e, body) {
		for j := range entries {
			if j != i && isBody(&entries[j], body) {
				return mixedUp()
			}
		}
		return altered("MessageBody", body)
	}
	if len(e.Attributes) > 0 && attributes != "" && !isAttributes(e, attributes) {
		for j := range entries {
			if j != i && len(entries[j].Attributes) > 0 && isAttributes(&entries[j], attributes) {
				return mixedUp()
			}
		}
		return altered("MessageAttributes", attributes)
	}
	id, sequence := aws.ToString(c.messageID), aws.ToString(c.sequence)
	switch {
	case id == "":
		return inDoubt(errNoMessageID)
	case sequence == "":
		return inDoubt(errNoSequence)
	case body == "":
		return inDoubt(errNoBodyMD5)
	case len(e.Attributes) > 0 && attributes == "":
		return inDoubt(errNoAttributesMD5)
	}
	return attempt.Answer{Fate: attempt.FateStored, MessageID: id, Sequence: sequence}
}

// md5In returns the MD5 in a field of an answer, or "" if the field is missing or has another
// text. Such a text proves nothing about the message: the answer itself is damaged.
func md5In(field *string) string {
	text := aws.ToString(field)
	if len(text) != 2*md5.Size {
		return ""
	}
	var digits [2 * md5.Size]byte
	copy(digits[:], text)
	if _, err := hex.Decode(digits[:md5.Size], digits[:]); err != nil { // Decode reads ahead of what it writes
		return ""
	}
	return text
}

// isBody reports whether `got` is the MD5 of the entry's body. The MD5 may be in upper case.
func isBody(e *Entry, got string) bool {
	return e.BodyMD5.Is(got) || e.BodyMD5.Is(strings.ToLower(got))
}

func isAttributes(e *Entry, got string) bool {
	return strings.EqualFold(*digest.Attributes(e.Attributes), got)
}

func inDoubt(err error) attempt.Answer {
	return attempt.Answer{Fate: attempt.FateInDoubt, Next: attempt.NextRetry, Load: attempt.LoadTroubled, Err: err}
}

func mixedUp() attempt.Answer {
	return attempt.Answer{Fate: attempt.FateInDoubt, Next: attempt.NextApart, Load: attempt.LoadTroubled, Err: ErrMixedUp}
}

func altered(field, got string) attempt.Answer {
	return attempt.Answer{Fate: attempt.FateAltered, Err: ErrAltered, Field: field, Got: got}
}

// proveBatch sets answers[i] for entries[i] from SQS's lists of successful and failed
// entries.
func proveBatch(entries []Entry, out *sqs.SendMessageBatchOutput, answers []attempt.Answer, hide func(error) error) {
	var mentions [MaxEntries]int
	var mixed bool
	for _, ok := range out.Successful {
		if i, found := entryIndex(ok.Id, len(entries)); found {
			mentions[i]++
			answers[i] = prove(entries, i, confirmation{ok.MessageId, ok.SequenceNumber, ok.MD5OfMessageBody, ok.MD5OfMessageAttributes})
			mixed = mixed || answers[i].Err == ErrMixedUp
		}
	}
	for _, failed := range out.Failed {
		if i, found := entryIndex(failed.Id, len(entries)); found {
			mentions[i]++
			answers[i] = refuse(failed)
			answers[i].Err = hide(answers[i].Err)
		}
	}
	for i := range answers {
		switch {
		case mentions[i] == 0:
			answers[i] = inDoubt(errNotMentioned)
		case mentions[i] > 1:
			answers[i] = inDoubt(errMentionedTwice)
		case mixed && answers[i].Fate == attempt.FateNotStored:
			// SQS has mixed up the entries, so this refusal may belong to another entry.
			answers[i] = mixedUp()
		}
	}
}

// refuse returns the answer for one failed entry of a batch. SQS detects a throttle and a
// fault of the sender before it stores the entry, so these entries are not stored. After
// any other failure, the entry is in doubt.
func refuse(failed types.BatchResultErrorEntry) attempt.Answer {
	code := aws.ToString(failed.Code)
	err := &smithy.GenericAPIError{Code: code, Message: aws.ToString(failed.Message), Fault: smithy.FaultServer}
	if failed.SenderFault {
		err.Fault = smithy.FaultClient
	}
	switch {
	case classify(code) == throttle:
		return attempt.Answer{Fate: attempt.FateNotStored, Next: attempt.NextRetry, Load: attempt.LoadThrottled, Code: nameOf(code), Err: err}
	case failed.SenderFault && code != "" && classify(code) != service:
		return attempt.Answer{Fate: attempt.FateNotStored, Next: attempt.NextFinal, Code: nameOf(code), Err: err}
	}
	a := inDoubt(err)
	a.Code = nameOf(code)
	return a
}

// judge returns the answer for all n entries of a request that failed as a whole. It
// sets all fields of the answer except Err.
func (p *progress) judge(err error, n int) attempt.Answer {
	unsent := p.neverTransmitted()
	if _, ok := err.(*PanicError); ok && !unsent {
		return attempt.Answer{Fate: attempt.FateInDoubt, Next: attempt.NextFinal, Load: attempt.LoadTroubled}
	}
	switch {
	case (unsent || !p.followed()) && isInvalid(err):
		return attempt.Answer{Fate: attempt.FateNotStored, Next: attempt.NextFinal}
	case unsent: // nothing left this machine, for example because a credentials provider failed or panicked
		return attempt.Answer{Fate: attempt.FateNotStored, Next: attempt.NextRetry, Unready: !errors.Is(err, ErrNotAllowed)}
	case p.neverConnected():
		return attempt.Answer{Fate: attempt.FateNotStored, Next: attempt.NextRetry, Load: attempt.LoadTroubled, Unready: true}
	}
	var api smithy.APIError
	if !errors.As(err, &api) {
		return p.inDoubtByClass(unknown)
	}
	if !p.followed() {
		return p.judgeUnseen(err, api, n)
	}
	named := p.failed.Load()
	if named == nil {
		return p.inDoubtByClass(classify(api.ErrorCode()))
	}
	// An answer of SQS may have two codes: one in the body, and one in the header
	// x-amzn-query-error. Users know the code of the header, so it goes into the result if
	// its class is known. If then the body's code has another class, the answer proves
	// nothing. A header code of an unknown class is ignored.
	code, c := *named, classify(*named)
	if header := classify(api.ErrorCode()); header != unknown {
		code = api.ErrorCode()
		if header != c {
			c = unknown
		}
	}
	a := p.inDoubtByClass(c)
	if status := p.status.Load(); p.wasSentOnce() && (status >= 400 && status < 500 || status >= 500 && status < 600 && c == throttle) {
		a = refusal(c, n)
	}
	a.Code = nameOf(code)
	return a
}

// judgeUnseen does the work of judge for a client that skipped the middleware, such as a
// fake.
func (p *progress) judgeUnseen(err error, api smithy.APIError, n int) attempt.Answer {
	c := classify(api.ErrorCode())
	var status int
	var response *smithyhttp.ResponseError
	dropped := false
	if errors.As(err, &response) && response.Response != nil && response.Response.Response != nil {
		status = response.HTTPStatusCode()
		// If the field Request is set, the SDK sent a request over HTTP. It skipped the
		// middleware, so the client is a wrapper that drops the options. The SDK may then
		// have retried, and this refusal proves nothing about earlier requests.
		dropped = response.Response.Request != nil
	}
	refused := status == 0 || status >= 400 && status < 500 // 0: a fake gives no status
	if c == throttle {
		// SQS stores nothing if it throttles a request, even with a status 5xx.
		refused = status == 0 || status >= 400 && status < 600
	} else if api.ErrorFault() == smithy.FaultServer {
		refused = false
	}
	a := p.inDoubtByClass(c)
	if refused && !dropped {
		a = refusal(c, n)
	}
	a.Code = nameOf(api.ErrorCode())
	return a
}

// refusal returns the answer for the n entries of a request provably refused by SQS
// with a code of class c.
func refusal(c class, n int) attempt.Answer {
	a := attempt.Answer{Fate: attempt.FateNotStored}
	switch c {
	case throttle:
		a.Next, a.Load = attempt.NextRetry, attempt.LoadThrottled
	case skew, access:
		a.Next, a.Unready = attempt.NextRetry, true
	case apart:
		if n > 1 {
			a.Next = attempt.NextApart
		}
	case final:
	default:
		return attempt.Answer{Fate: attempt.FateInDoubt, Next: attempt.NextRetry, Load: attempt.LoadTroubled}
	}
	return a
}

// inDoubtByClass returns the answer for an entry that SQS may have stored. If the class or
// the HTTP status indicates a throttle, the Load is LoadThrottled, so that the producer
// slows down.
func (p *progress) inDoubtByClass(c class) attempt.Answer {
	a := attempt.Answer{Fate: attempt.FateInDoubt, Next: attempt.NextRetry, Load: attempt.LoadTroubled}
	if c == throttle || p.status.Load() == http.StatusTooManyRequests {
		a.Load = attempt.LoadThrottled
	}
	return a
}

// isInvalid reports whether the client itself rejected the request.
func isInvalid(err error) bool {
	var params smithy.InvalidParamsError // the SDK returns a value, not a pointer
	var serialize *smithy.SerializationError
	return errors.As(err, &params) || errors.As(err, &serialize)
}
