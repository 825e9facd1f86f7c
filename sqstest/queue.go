package sqstest

// Deviations from AWS in this file:
//   - There are no standard queues, and a queue's attributes do not change after
//     it was made.
//   - The account is 000000000000 and the region us-east-1.

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
)

// Account and Region are part of each queue's URL and ARN.
const (
	Account = "000000000000"
	Region  = "us-east-1"
)

// endpoint lies under a name that is reserved for tests (RFC 6761), so that a
// request that escapes the fake ends at a resolver and not at somebody's server.
const endpoint = "https://sqs.us-east-1.test"

// DeduplicationScope says where a deduplication ID has to be unique.
type DeduplicationScope string

// The two scopes, spelled as AWS spells the attribute DeduplicationScope.
const (
	// ScopeQueue: one window for the whole queue. An ID that was sent to another
	// group is suppressed (F-006).
	ScopeQueue DeduplicationScope = "queue"

	// ScopeMessageGroup: a window for each pair of group and ID (F-030, F-032).
	ScopeMessageGroup DeduplicationScope = "messageGroup"
)

// Config describes a [Queue]. The zero value is the queue that most producers
// write to: content-based deduplication over the whole queue, no delay.
type Config struct {
	// Name of the queue: letters, digits, hyphens and underscores and the suffix
	// ".fifo", 80 characters at most. Empty means "events.fifo".
	Name string

	// DisableContentBasedDeduplication makes the queue refuse each send that
	// brings no MessageDeduplicationId (F-016). Off, the SHA-256 of the body
	// stands in for a missing one (F-011).
	DisableContentBasedDeduplication bool

	// DeduplicationScope is empty for [ScopeQueue].
	DeduplicationScope DeduplicationScope

	// VisibilityTimeout is how long a received message stays hidden when the
	// receiver names no time: whole seconds up to 12 hours. Zero means 30 s, as
	// on AWS; a single receive or change can still ask for zero.
	VisibilityTimeout time.Duration

	// Delay is how long a new message stays hidden: whole seconds up to 15
	// minutes. A FIFO queue takes it from its attribute DelaySeconds only
	// (F-074 to F-076).
	Delay time.Duration

	// MaximumMessageSize in bytes as F-073 counts them, 1,024 to 1,048,576. Zero
	// means 1,048,576.
	MaximumMessageSize int
}

// ConfigError is one field of a [Config] that no queue can have. [NewQueue]
// joins one for each wrong field; take them apart with errors.As.
type ConfigError struct {
	Field string // name of the field in Config
	Value string // what it was set to, strings quoted
	Rule  string // what it may be set to
}

func (e *ConfigError) Error() string {
	return "sqstest: Config." + e.Field + " = " + e.Value + ": " + e.Rule
}

func (c Config) withDefaults() Config {
	if c.Name == "" {
		c.Name = "events.fifo"
	}
	if c.DeduplicationScope == "" {
		c.DeduplicationScope = ScopeQueue
	}
	if c.VisibilityTimeout == 0 {
		c.VisibilityTimeout = 30 * time.Second
	}
	if c.MaximumMessageSize == 0 {
		c.MaximumMessageSize = maxMessageBytes
	}
	return c
}

func (c Config) validate() error {
	var errs []error
	check := func(ok bool, field, value, rule string) {
		if !ok {
			errs = append(errs, &ConfigError{Field: field, Value: value, Rule: rule})
		}
	}
	stem, fifo := strings.CutSuffix(c.Name, ".fifo")
	check(fifo && entryID(stem) && len(c.Name) <= 80, "Name", strconv.Quote(c.Name),
		`must be letters, digits, hyphens and underscores and end in ".fifo", 80 characters at most`)
	check(c.DeduplicationScope == ScopeQueue || c.DeduplicationScope == ScopeMessageGroup, "DeduplicationScope", strconv.Quote(string(c.DeduplicationScope)),
		"must be ScopeQueue or ScopeMessageGroup")
	check(wholeSeconds(c.VisibilityTimeout, maxVisibility), "VisibilityTimeout", c.VisibilityTimeout.String(),
		"must be whole seconds from 0 to 12 hours")
	check(wholeSeconds(c.Delay, maxDelaySeconds), "Delay", c.Delay.String(),
		"must be whole seconds from 0 to 15 minutes")
	check(c.MaximumMessageSize >= 1024 && c.MaximumMessageSize <= maxMessageBytes, "MaximumMessageSize", strconv.Itoa(c.MaximumMessageSize),
		"must be 1,024 to 1,048,576 bytes")
	return errors.Join(errs...)
}

func wholeSeconds(d time.Duration, limit int) bool {
	return d >= 0 && d <= time.Duration(limit)*time.Second && d%time.Second == 0
}

// Queue is one FIFO queue in memory. It answers the calls of the SDK's client
// with the client's signatures, so it goes wherever a narrow interface of
// *sqs.Client is asked for; [Queue.Client] and [NewServer] give it the other door,
// over AWS's wire format. All its methods may be called concurrently.
//
// Its errors are those of the SDK: *smithy.OperationError around
// *http.ResponseError (aws/transport/http) around the modelled type, such as
// *types.QueueDoesNotExist, or smithy.GenericAPIError. There is no retryer on this
// door and the functional options have nothing to configure: they are not called.
//
// Create one with [NewQueue].
type Queue struct {
	config  Config
	created time.Time

	mu       sync.Mutex
	offset   time.Duration
	window   *window.Window[*message]
	lastSeq  uint64
	stored   []*message
	swallows []Suppression
	script   []scripted
	delivery
}

// NewQueue returns an empty queue. The error joins a [*ConfigError] for each
// field that AWS would refuse.
func NewQueue(c Config) (*Queue, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &Queue{
		config:   c,
		created:  time.Now(),
		window:   window.New[*message](window.Options{}),
		delivery: newDelivery(),
	}, nil
}

// Name returns the queue's name, which is also accepted as its URL (F-081).
func (q *Queue) Name() string { return q.config.Name }

// URL returns the queue's URL. Its host is reserved for tests and resolves
// nowhere.
func (q *Queue) URL() string { return endpoint + "/" + Account + "/" + q.config.Name }

// ARN returns the queue's ARN.
func (q *Queue) ARN() string { return "arn:aws:sqs:" + Region + ":" + Account + ":" + q.config.Name }

// Advance moves the queue's clock forward by d, for tests outside a
// testing/synctest bubble: the deduplication window, visibility timeouts,
// delays and long polls all follow it. A d that is not positive changes nothing,
// because the clock of a queue does not run backwards.
func (q *Queue) Advance(d time.Duration) {
	if d <= 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.offset += d
	q.wake()
}

// now needs q.mu.
func (q *Queue) now() time.Time { return time.Now().Add(q.offset) }

// resolve checks that a request names this queue: by URL, whatever its host, or
// by bare name (F-081).
func (q *Queue) resolve(queueURL *string) error {
	if queueURL == nil {
		return missing("QueueUrl")
	}
	if name, ok := queueName(*queueURL); !ok || name != q.config.Name {
		return noSuchQueue()
	}
	return nil
}

func noSuchQueue() error {
	return queueDoesNotExist.because("The specified queue does not exist.") // F-125
}

// queueName takes the name out of a queue URL. It compares the account but not
// the host, because the server is reached under any name.
func queueName(queueURL string) (name string, ok bool) {
	if !strings.Contains(queueURL, "/") {
		return queueURL, true
	}
	u, err := url.Parse(queueURL)
	if err != nil {
		return "", false
	}
	name, ok = strings.CutPrefix(u.Path, "/"+Account+"/")
	return name, ok && !strings.Contains(name, "/")
}

// Message is one message that the queue stored. Suppressed and refused sends
// leave none.
type Message struct {
	MessageID       string
	SequenceNumber  string
	GroupID         string
	DeduplicationID string // sent along, or the SHA-256 of the body (F-011)
	Body            string
	Attributes      map[string]types.MessageAttributeValue
	AcceptedAt      time.Time // on the queue's clock
}

func (m Message) clone() Message {
	m.Attributes = cloneAttributes(m.Attributes)
	return m
}

// Messages returns every message that the queue ever stored, in the order in
// which it stored them, whether received and deleted since or not. The caller
// owns the slice and what it holds.
func (q *Queue) Messages() []Message {
	q.mu.Lock()
	defer q.mu.Unlock()
	out := make([]Message, len(q.stored))
	for i, m := range q.stored {
		out[i] = m.Message.clone()
	}
	return out
}

// Suppression is one send that the queue answered with success and did not
// store. AWS shows nothing of it (F-001); the fake says why it happened.
type Suppression struct {
	// Original is the stored message whose MessageID and SequenceNumber the
	// sender was told.
	Original Message

	// GroupID, Body and Attributes are those of the send that was swallowed.
	// Where they differ from the original's, something was lost.
	GroupID    string
	Body       string
	Attributes map[string]types.MessageAttributeValue

	// DeduplicationID is what the two have in common. ContentBased tells that the
	// swallowed send brought none, so that its body decided.
	DeduplicationID string
	ContentBased    bool
	Scope           DeduplicationScope

	// At is when the send was swallowed and Until the first instant at which one
	// like it is stored again, both on the queue's clock.
	At, Until time.Time
}

// String says in one line which message was in the way, by which ID, in which
// scope and for how long.
func (s Suppression) String() string {
	id := "MessageDeduplicationId " + s.DeduplicationID
	if s.ContentBased {
		id = "the SHA-256 of the body, " + s.DeduplicationID
	}
	scope := "anywhere in the queue"
	if s.Scope == ScopeMessageGroup {
		scope = fmt.Sprintf("in group %q", s.GroupID)
	}
	return fmt.Sprintf("suppressed as a duplicate of message %s: %s, was accepted %s %s before; accepted again in %s",
		s.Original.MessageID, id, scope, s.At.Sub(s.Original.AcceptedAt), s.Until.Sub(s.At))
}

// Suppressed returns each send that the queue swallowed, in order. The caller
// owns the slice and what it holds.
func (q *Queue) Suppressed() []Suppression {
	q.mu.Lock()
	defer q.mu.Unlock()
	out := make([]Suppression, len(q.swallows))
	for i, s := range q.swallows {
		s.Original = s.Original.clone()
		s.Attributes = cloneAttributes(s.Attributes)
		out[i] = s
	}
	return out
}
