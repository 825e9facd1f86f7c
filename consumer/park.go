package consumer

import (
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/digest"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/sqscall"
)

// The names of the attributes that the consumer adds to a parked message.
const (
	AttributeReason   = "parked_reason"
	AttributeKey      = "parked_key"
	AttributeFrom     = "parked_from" // the name of the consumer's queue
	AttributeAttempts = "parked_attempts"
)

const (
	mostAttributes = 10
	mostBytes      = mib // limit of SQS for body and attributes together (sqstest/FACTS.md, F-073)
	mostReason     = 1000
)

// park copies the batch's first message to the parking queue. It tries until SQS has stored
// the copy, and returns false if the batch must end earlier. The parameter `callers` has the
// channels of callers of ParkHead. Each of them gets one answer, and so does each caller
// whose request arrives meanwhile.
func (e *engine) park(b *groupBatch, it *item, cause error, callers ...chan error) bool {
	reply := func(err error) {
		for _, c := range callers {
			c <- err
		}
		b.answerRequest(err)
	}
	extra := true
	for try := 1; ; try++ {
		var answers [1]attempt.Answer
		_, _ = e.parking.Send(e.base, []sqscall.Entry{e.copyOf(it, cause, extra)}, answers[:])
		if answers[0].Fate == attempt.FateStored {
			e.events.abandon(e.base, it, "parked")
			e.mu.Lock()
			e.stats.Parked++
			e.mu.Unlock()
			e.logItem(slog.LevelError, "message parked", it, slog.String("error", textOf(cause)), slog.String("parked_as", answers[0].MessageID))
			reply(nil)
			return true
		}
		if answers[0].Fate == attempt.FateNotStored && answers[0].Next != attempt.NextRetry {
			// with the added attributes the message may be too large for the parking
			// queue
			extra = false
		}
		e.mu.Lock()
		b.headError = errors.Join(cause, fmt.Errorf("consumer: not parked: %w", answers[0].Err))
		e.mu.Unlock()
		e.logItem(slog.LevelError, "message not parked; trying again", it, slog.String("error", textOf(answers[0].Err)))
		goOn, request := e.pauseBatch(b, backoff(e.rules.FirstBackoff, e.rules.MaxBackoff, try), stateSleeping)
		switch {
		case request != nil:
			callers = append(callers, request.done)
		case !goOn:
			reply(b.endCause())
			return false
		}
	}
}

// copyOf returns a copy of the message for the parking queue. If the parameter `extra` is
// true, the copy gets attributes about the failure, as far as they fit.
func (e *engine) copyOf(it *item, cause error, extra bool) sqscall.Entry {
	body := it.raw.Body
	attributes := map[string]types.MessageAttributeValue{}
	for name, a := range it.raw.MessageAttributes {
		attributes[name] = a
	}
	room := mostBytes - int(it.bytes)
	add := func(name, value string) {
		size := len(name) + len("String") + len(value)
		if _, taken := attributes[name]; taken || value == "" || len(attributes) == mostAttributes || size > room {
			return
		}
		room -= size
		attributes[name] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: &value}
	}
	if extra {
		key, _ := e.events.describe(it)
		add(AttributeReason, clean(textOf(cause), mostReason))
		add(AttributeKey, clean(key, 2048))
		add(AttributeFrom, queueName(e.queueURL))
		add(AttributeAttempts, strconv.Itoa(it.attempts))
	}
	if len(attributes) == 0 {
		attributes = nil
	}
	return sqscall.Entry{
		Body: body, Group: &it.group, DeduplicationID: it.raw.MessageId, Attributes: attributes,
		BodyMD5: digest.Of(aws.ToString(body)),
	}
}

// clean returns text that SQS accepts in an attribute. Its length is at most `limit` bytes.
func clean(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == utf8.RuneError || r == 0xFFFE || r == 0xFFFF {
			return '?'
		}
		return r
	}, s)
	for len(s) > limit {
		_, size := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-size]
	}
	return s
}
