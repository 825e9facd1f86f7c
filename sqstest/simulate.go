package sqstest

// Deviations from AWS in this file: the same as for sends (send.go). A simulated send
// takes no time: it reaches the queue at TimedMessage.At.

import (
	"errors"
	"fmt"
	"hash/maphash"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attrname"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
)

// TimedMessage is one send for [Simulate] or a [Simulation].
type TimedMessage struct {
	// At is the time of the send, not of the event.
	At time.Time

	GroupID         string
	Body            string
	DeduplicationID string            // explicit, or empty
	Attributes      map[string]string // attributes of type String

	// DedupeKey identifies the event for Outcome.Collides. Empty means the member
	// dedupe_key of the body.
	DedupeKey string
}

// Result is the result of a simulated send.
type Result string

// The three results. SQS answers ResultDelivered and ResultSuppressed alike.
const (
	ResultDelivered  Result = "delivered"
	ResultSuppressed Result = "suppressed"
	ResultRefused    Result = "refused"
)

// Outcome describes what happens to one message in [Simulate]. It contains facts that SQS
// does not report to the sender.
type Outcome struct {
	Result Result

	// DeduplicationID is the ID that the queue compares: the explicit ID, or the hash of
	// the body if no ID is set.
	DeduplicationID string

	// For a suppressed message, the field Of is the index of its original among all
	// messages. Until is the first instant at which SQS would deliver an equal message again.
	//
	// For a message that is not suppressed, Of is -1 and Until is zero.
	Of    int
	Until time.Time

	// Lost names the parts of a suppressed message that differ from the original:
	// attributes, group or, with an explicit ID, body. SQS drops these parts. Empty for a
	// true duplicate.
	Lost []string

	// Collides is the index of a message sent within the deduplication interval with the
	// same dedupe_key and another body, or -1. The two messages claim to be one event, but
	// SQS delivers both.
	Collides int

	// Err is the reason of a refusal; the text names the rule.
	Err error
}

// Simulate sends the messages to a FIFO queue in virtual time, without waiting. It returns
// one [Outcome] for each message, in the same order. Simulate is a pure function.
//
// The result of a message is delivered, suppressed or refused. An outcome also shows a
// collision: an earlier message with the same dedupe_key and another body.
//
// Messages must be sorted by time, none before 1970. Otherwise, and for an invalid
// configuration, Simulate returns an error and no outcomes.
//
// For a log larger than memory use [NewSimulation].
func Simulate(c Config, messages []TimedMessage) ([]Outcome, error) {
	s, err := NewSimulation(c)
	if err != nil {
		return nil, err
	}
	out := make([]Outcome, len(messages))
	for i, m := range messages {
		if out[i], err = s.Send(m); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Simulation is like [Simulate], but takes the messages one at a time. Create a simulation
// with [NewSimulation]. A Simulation is not safe for concurrent use, except
// [Simulation.Prepare].
//
// It takes some 250 bytes for each message of the last five minutes, independent of the
// length of the log and of the messages.
type Simulation struct {
	settings *settings
	restarts bool
	count    int
	last     time.Time
	seed     maphash.Seed
	sent     *window.Window[simulated]

	// keys remembers each dedupe_key, a member of the body, for the deduplication
	// interval.
	keys *window.Window[keyed]
}

// simulated is the record of a delivered message in a [Simulation]. It has hashes of group,
// body and attributes, because these are compared only for equality.
type simulated struct {
	index                   int
	group, body, attributes uint64
}

// keyed is the record of one dedupe_key in a [Simulation].
type keyed struct {
	latest int    // index of the latest message with this key
	body   uint64 // hash of the body of this message

	// different is the index of the latest message with this key and another body, or -1.
	different   int
	differentAt int64 // in ns since 1970
}

// NewSimulation returns a simulation of an empty queue. It returns an error for a standard
// queue, and for each Config that [NewQueue] refuses.
func NewSimulation(c Config) (*Simulation, error) {
	if c.Standard {
		return nil, errors.New("sqstest: Simulate: a standard queue suppresses nothing")
	}
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &Simulation{
		settings: c.settings(), restarts: c.DuplicateRestartsInterval, seed: maphash.MakeSeed(),
		sent: window.New[simulated](window.Options{}), keys: window.New[keyed](window.Options{}),
	}, nil
}

// PreparedMessage is a [TimedMessage] that [Simulation.Prepare] has checked and hashed, for
// [Simulation.SendPrepared].
type PreparedMessage struct {
	At      time.Time // the caller may change it before the send
	GroupID string

	refusal         error
	deduplicationID string
	sent            window.Key
	dedupe          window.Key // key of the body's dedupe_key; only if hasDedupe
	hasDedupe       bool

	group, body, attributes uint64
}

// Prepare does the first and longest part of [Simulation.Send]. Calls of Prepare may run
// concurrently with all other calls. The result is valid for this Simulation only.
func (s *Simulation) Prepare(m TimedMessage) PreparedMessage {
	p := PreparedMessage{At: m.At, GroupID: m.GroupID}
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
	if p.refusal = s.settings.validateSend(entry); p.refusal != nil {
		return p
	}
	scope := ""
	if s.settings.scope == ScopeMessageGroup {
		scope = m.GroupID
	}
	p.deduplicationID = deduplicationID(entry)
	p.sent = s.sent.Key(scope, p.deduplicationID)
	dedupeKey := m.DedupeKey
	if dedupeKey == "" {
		dedupeKey = dedupeKeyOf(m.Body)
	}
	if dedupeKey != "" {
		p.dedupe, p.hasDedupe = s.keys.Key("", dedupeKey), true
	}
	p.group, p.body, p.attributes = maphash.String(s.seed, m.GroupID), maphash.String(s.seed, m.Body), s.significant(m.Attributes)
	return p
}

// Send returns the outcome of the next message. Outcome.Of and Outcome.Collides are indices
// of messages: the first message has the index 0.
//
// Send returns an error for a message earlier than the previous message, or earlier than
// 1970. Such a message gets no index.
func (s *Simulation) Send(m TimedMessage) (Outcome, error) { return s.SendPrepared(s.Prepare(m)) }

// SendPrepared is [Simulation.Send] for a prepared message.
func (s *Simulation) SendPrepared(p PreparedMessage) (Outcome, error) {
	switch {
	case p.At.Before(time.Unix(0, 0)):
		return Outcome{}, fmt.Errorf("sqstest: Simulate: message %d: time %s is before 1970; it is the time of the send, not of the event", s.count, p.At.Format(time.RFC3339))
	case p.At.Before(s.last):
		return Outcome{}, fmt.Errorf("sqstest: Simulate: message %d: time %s is before that of the message before it; sort by time", s.count, p.At.Format(time.RFC3339Nano))
	}
	out := s.send(s.count, p)
	s.count++
	s.last = p.At
	return out, nil
}

func (s *Simulation) send(i int, p PreparedMessage) Outcome {
	out := Outcome{Of: -1, Collides: -1, DeduplicationID: p.deduplicationID}
	if p.refusal != nil {
		out.Result, out.Err = ResultRefused, p.refusal
		return out
	}
	is := simulated{i, p.group, p.body, p.attributes}
	if r, state := s.sent.Lookup(p.At, p.sent); state == window.Inside {
		if s.restarts {
			r.From, r.To = p.At, p.At
			_ = s.sent.Put(p.At, p.sent, r) // cannot fail: the key is already in the window
		}
		out.Result, out.Of, out.Until = ResultSuppressed, r.Value.index, r.To.Add(window.Interval)
		out.Lost = differingParts(r.Value, is)
	} else if err := s.sent.Put(p.At, p.sent, window.Record[simulated]{From: p.At, To: p.At, Value: is}); err != nil {
		out.Result, out.Err = ResultRefused, internalFailure.because("%v", err)
		return out
	} else {
		out.Result = ResultDelivered
	}
	if p.hasDedupe {
		out.Collides = s.recordKey(i, p)
	}
	return out
}

// recordKey adds the dedupe_key of a message to s.keys. The parameter i is the index of this
// message. The result is the index of the latest earlier message with the same key and
// another body, or -1 if no such message was sent within the deduplication interval.
func (s *Simulation) recordKey(i int, p PreparedMessage) int {
	is := keyed{latest: i, different: -1, body: p.body}
	if r, state := s.keys.Lookup(p.At, p.dedupe); state != window.Outside {
		is.different, is.differentAt = r.Value.latest, r.From.UnixNano()
		if r.Value.body == p.body {
			is.different, is.differentAt = r.Value.different, r.Value.differentAt
		}
	}
	// If the window is full, later messages report no collision with this message.
	_ = s.keys.Put(p.At, p.dedupe, window.Record[keyed]{From: p.At, To: p.At, Value: is})
	if is.different >= 0 && p.At.Sub(time.Unix(0, is.differentAt)) < window.Interval {
		return is.different
	}
	return -1
}

// significant returns a hash of the attributes. It leaves out attributes that never
// distinguish two events, such as trace context or the number of an attempt.
func (s *Simulation) significant(attributes map[string]string) uint64 {
	var sum uint64
	for name, value := range attributes {
		if !attrname.NeverIdentifies(name) {
			// The sum is the same for every order of the attributes.
			sum += maphash.Comparable(s.seed, [2]string{name, value})
		}
	}
	return sum
}

func differingParts(original, duplicate simulated) []string {
	var out []string
	if original.attributes != duplicate.attributes {
		out = append(out, "attributes")
	}
	if original.group != duplicate.group {
		out = append(out, "group")
	}
	if original.body != duplicate.body {
		out = append(out, "body")
	}
	return out
}

// String returns the outcome in one line.
func (o Outcome) String() string {
	var b strings.Builder
	b.WriteString(string(o.Result))
	if o.Result == ResultSuppressed {
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
