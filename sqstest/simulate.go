package sqstest

// Deviations from AWS in this file: those of sends (send.go), and a send takes no
// time: a message is accepted at the instant that it names.

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// TimedMessage is one send in a [Simulate].
type TimedMessage struct {
	// At is when the message is sent, not when its event occurred.
	At time.Time

	GroupID         string
	Body            string
	DeduplicationID string            // explicit, or empty
	Attributes      map[string]string // of type String
}

// Verdict is what becomes of a simulated send.
type Verdict string

// The three verdicts. SQS answers the first two alike.
const (
	Delivered  Verdict = "delivered"
	Suppressed Verdict = "suppressed"
	Refused    Verdict = "refused"
)

// Outcome is what SQS does with one message of a [Simulate], and what its
// sender would not be told.
type Outcome struct {
	Verdict Verdict

	// DeduplicationID is what decided: explicit, or the hash of the body.
	DeduplicationID string

	// Of is the index of the message that a suppressed one is a duplicate of, and
	// Until when a message like it is delivered again. Of is -1 otherwise.
	Of    int
	Until time.Time

	// Lost names what a suppressed message has and the original has not: its
	// attributes, its group, or, with an explicit ID, its body. SQS drops it with
	// the message. Empty for a true duplicate.
	Lost []string

	// Collides is the index of a message that was sent within the deduplication
	// interval with the same dedupe_key and another body, or -1. SQS delivers
	// both, although they claim to be one event.
	Collides int

	// Err is why SQS refuses the message; its text names the rule.
	Err error
}

// Simulate sends the messages to a FIFO queue on virtual time and returns an
// outcome for each, by index: what would be delivered, what suppressed and by
// which earlier message, and what collides. It is a pure function; nothing waits.
//
// The messages are in the order of their times, which begin in 1970 or later. It
// returns an error, and no outcomes, if they are not or if no queue can have the
// configuration.
func Simulate(c Config, messages []TimedMessage) ([]Outcome, error) {
	if c.Standard {
		return nil, errors.New("sqstest: Simulate: a standard queue suppresses nothing")
	}
	q, err := NewQueue(c)
	if err != nil {
		return nil, err
	}
	s := simulation{queue: q, keys: window.New[keyed](window.Options{}), index: map[string]int{}, messages: messages}
	out := make([]Outcome, len(messages))
	for i, m := range messages {
		switch {
		case m.At.Before(time.Unix(0, 0)):
			return nil, fmt.Errorf("sqstest: Simulate: message %d: time %s is before 1970; it is the time of the send, not of the event", i, m.At.Format(time.RFC3339))
		case i > 0 && m.At.Before(messages[i-1].At):
			return nil, fmt.Errorf("sqstest: Simulate: message %d: time %s is before that of the message before it; sort by time", i, m.At.Format(time.RFC3339Nano))
		}
		out[i] = s.send(i, m)
	}
	return out, nil
}

type simulation struct {
	queue    *Queue
	messages []TimedMessage
	index    map[string]int // of the delivered messages, by message ID

	// keys is the interval by dedupe_key, which SQS does not look at.
	keys *window.Window[keyed]
}

// keyed are the last message with a dedupe_key and the last one with another body
// than that, -1 if there is none.
type keyed struct{ last, other int }

func (s *simulation) send(i int, m TimedMessage) Outcome {
	out := Outcome{Of: -1, Collides: -1}
	entry := sendEntry{SendMessageBatchRequestEntry: types.SendMessageBatchRequestEntry{MessageBody: &m.Body}}
	if m.GroupID != "" {
		entry.MessageGroupId = &m.GroupID
	}
	if m.DeduplicationID != "" {
		entry.MessageDeduplicationId = &m.DeduplicationID
	}
	for name, value := range m.Attributes {
		if entry.MessageAttributes == nil {
			entry.MessageAttributes = map[string]types.MessageAttributeValue{}
		}
		entry.MessageAttributes[name] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: &value}
	}
	set := s.queue.settings.Load()
	if err := set.validateSend(entry); err != nil {
		out.Verdict, out.Err = Refused, err
		return out
	}

	p := prepare(set, entry)
	out.DeduplicationID = p.id
	stored, err := s.accept(m.At, set, p)
	if err != nil {
		out.Verdict, out.Err = Refused, err
		return out
	}
	if of, ok := s.index[stored.MessageID]; ok {
		last := s.queue.swallows[len(s.queue.swallows)-1]
		out.Verdict, out.Of, out.Until = Suppressed, of, last.Until
		out.Lost = lost(s.messages[of], m)
	} else {
		out.Verdict = Delivered
		s.index[stored.MessageID] = i
	}
	out.Collides = s.collides(i, m)
	return out
}

func (s *simulation) accept(at time.Time, set *settings, p outgoing) (*message, error) {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	return s.queue.accept(at, set, p)
}

// collides notes the message's dedupe_key and returns the last message within the
// interval that has it with another body.
func (s *simulation) collides(i int, m TimedMessage) int {
	var envelope struct {
		DedupeKey string `json:"dedupe_key"`
	}
	if json.Unmarshal([]byte(m.Body), &envelope) != nil || envelope.DedupeKey == "" {
		return -1
	}
	k := s.keys.Key("", envelope.DedupeKey)
	found := -1
	is := keyed{last: i, other: -1}
	if r, state := s.keys.Lookup(m.At, k); state != window.Outside {
		if is.other = r.Value.last; s.messages[r.Value.last].Body == m.Body {
			is.other = r.Value.other
		}
		if is.other >= 0 && m.At.Sub(s.messages[is.other].At) < window.Interval {
			found = is.other
		}
	}
	// A window without limit cannot be full.
	_ = s.keys.Put(m.At, k, window.Record[keyed]{From: m.At, To: m.At, Value: is})
	return found
}

// lost names what the duplicate has and the original has not.
func lost(original, duplicate TimedMessage) []string {
	var out []string
	significant := func(attributes map[string]string) map[string]string {
		attributes = maps.Clone(attributes)
		maps.DeleteFunc(attributes, func(name, _ string) bool { return lint.Benign(name) })
		return attributes
	}
	a, b := significant(original.Attributes), significant(duplicate.Attributes)
	if len(a) != len(b) || !maps.Equal(a, b) {
		out = append(out, "attributes")
	}
	if original.GroupID != duplicate.GroupID {
		out = append(out, "group")
	}
	if original.Body != duplicate.Body {
		out = append(out, "body")
	}
	return out
}

// String says the outcome in one line.
func (o Outcome) String() string {
	var b strings.Builder
	b.WriteString(string(o.Verdict))
	if o.Verdict == Suppressed {
		fmt.Fprintf(&b, ", duplicate of message %d", o.Of)
	}
	if len(o.Lost) > 0 {
		fmt.Fprintf(&b, ", which has other %s", strings.Join(o.Lost, " and "))
	}
	if o.Collides >= 0 {
		fmt.Fprintf(&b, ", has the dedupe_key of message %d with another body", o.Collides)
	}
	if o.Err != nil {
		fmt.Fprintf(&b, ": %v", o.Err)
	}
	return b.String()
}
