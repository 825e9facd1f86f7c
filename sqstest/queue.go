package sqstest

// Deviations from AWS in this file: the account is always 000000000000. In the in-process
// API the region is always us-east-1.

import (
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
)

// Account and Region are part of each queue's URL and ARN.
const (
	Account = "000000000000"
	Region  = "us-east-1"
)

// endpoint has a domain that is reserved for tests (RFC 6761). A request that is sent
// to the endpoint by mistake therefore fails in DNS and reaches no real server.
const endpoint = "https://sqs.us-east-1.test"

// Queue is one queue in memory, FIFO unless its [Config] says otherwise. It has the methods
// of *sqs.Client that concern one queue, with the same signatures. Code that needs only an
// interface with some of these methods can therefore use a Queue. With [Queue.Client] or
// [NewServer], a real SDK client can call the queue in AWS's wire format. A [Server] also
// has the calls for several queues. All methods are safe for concurrent use.
//
// Errors are errors of the SDK: *smithy.OperationError around *http.ResponseError
// (aws/transport/http) around the modelled type, such as *types.QueueDoesNotExist, or
// smithy.GenericAPIError. The in-process API has no retryer. It does not call the
// functional options, because there is nothing to configure.
//
// Create a queue with [NewQueue].
type Queue struct {
	config  Config
	created time.Time

	// serial determines the order in which lockBoth locks two queues.
	serial uint64

	gone atomic.Bool // the queue was deleted; its calls answer like an unknown queue

	// The field settings is replaced only while both mutexes are locked, q.settingsMu and
	// q.mu. A change locks q.settingsMu before it reads the settings, so changes run one
	// after another.
	settings   atomic.Pointer[settings]
	settingsMu sync.Mutex
	moves      moves

	mu           sync.Mutex
	offset       time.Duration
	modified     time.Time
	purged       time.Time
	tags         map[string]string
	attempts     attempts
	window       *window.Window[accepted]
	lastSeq      uint64
	stored       []*message
	suppressions []Suppression

	storedBytes, suppressedBytes int64
	usage                        *usage // messages and bytes counted for the server's Bounds; nil without bounds
	faults
	delivery

	handleMaker handleMaker
}

var serials atomic.Uint64

// NewQueue returns an empty queue. The error joins a [*idempotency.InvalidError] for
// each field refused by AWS.
func NewQueue(c Config) (*Queue, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	return newQueue(c, 0), nil
}

// newQueue returns a queue whose clock is ahead of this machine's clock by offset.
func newQueue(c Config, offset time.Duration) *Queue {
	now := time.Now().Add(offset)
	q := &Queue{
		config:   c,
		created:  now,
		serial:   serials.Add(1),
		offset:   offset,
		modified: now,
		window:   window.New[accepted](window.Options{}),
		delivery: newDelivery(!c.Standard),

		handleMaker: newHandleMaker(),
	}
	q.settings.Store(c.settings())
	return q
}

// Name returns the queue's name. Calls also accept the name as the queue's URL (F-081).
func (q *Queue) Name() string { return q.config.Name }

// URL returns the queue's URL. The host is reserved for tests and does not resolve.
func (q *Queue) URL() string { return endpoint + "/" + Account + "/" + q.config.Name }

// ARN returns the queue's ARN. Over HTTP, ARNs have the region of the request's
// signature.
func (q *Queue) ARN() string { return arnOf(Region, q.config.Name) }

// Advance moves the queue's clock forward by d, for tests outside a testing/synctest
// bubble. The deduplication window, visibility timeouts, delays and long polls follow
// the clock. A d of zero or less changes nothing, because the clock of a queue does not
// run backwards. The clock stops at 200 years ahead.
func (q *Queue) Advance(d time.Duration) {
	if d <= 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.offset = ahead(q.offset, d)
	q.wakeAll()
}

// Now returns the time on the queue's clock, like [Message].AcceptedAt and the times in
// [Queue.Window].
func (q *Queue) Now() time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.now()
}

// settle makes the changes due by the given time: hidden messages become visible at the end
// of their hidden time, and expired messages are removed. The caller holds q.mu.
func (q *Queue) settle(now time.Time) { q.delivery.settle(now, q.settings.Load().retention) }

// now returns the time on the queue's clock. The caller holds q.mu.
func (q *Queue) now() time.Time { return time.Now().Add(q.offset) }

// resolve checks that a request names this queue, by a URL with any host or by the bare
// name (F-081). Then each running move task of the queue moves the messages that it
// should have moved by now. Every call begins with resolve. The caller holds no lock.
func (q *Queue) resolve(queueURL *string) error {
	if queueURL == nil {
		return missing("QueueUrl")
	}
	if name, ok := queueName(*queueURL); !ok || name != q.config.Name || q.gone.Load() {
		return noSuchQueue()
	}
	q.moves.run()
	return nil
}

func noSuchQueue() error {
	return queueDoesNotExist.because("The specified queue does not exist.") // AWS's text (F-125)
}

// queueName returns the name in a queue URL. A text without a slash is itself the name.
// ok is false if the account in the URL is not [Account]. Every host is accepted, because
// clients reach the server under any name.
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

// Message is one stored message. Suppressed and refused sends leave no Message.
type Message struct {
	MessageID      string
	SequenceNumber string
	GroupID        string
	// DeduplicationID is the explicit ID, or else the SHA-256 of the body (F-011). A move
	// to or from a dead-letter queue replaces the ID by the message's previous MessageId
	// (F-110, F-113).
	DeduplicationID string
	Body            string
	Attributes      map[string]types.MessageAttributeValue
	AcceptedAt      time.Time // on the queue's clock

	// Receives, HiddenUntil and Deleted are set only in the results of [Queue.Messages],
	// as of the time of the call. Receives counts the receives, for a dead letter also
	// those in earlier queues. HiddenUntil is the end of the message's visibility timeout
	// or delay, zero for a visible message.
	Receives    int
	HiddenUntil time.Time
	Deleted     bool
}

func (m Message) clone() Message {
	m.Attributes = cloneAttributes(m.Attributes)
	return m
}

// Messages returns every message that the queue ever stored, in the order of storing,
// including received and deleted messages. With Config.DiscardDeleted it returns only
// undeleted messages. The caller owns the slice and its contents.
func (q *Queue) Messages() []Message {
	q.moves.run()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.settle(q.now())
	out := make([]Message, 0, len(q.stored))
	for _, m := range q.stored {
		if m.deleted && q.config.DiscardDeleted {
			continue
		}
		out = append(out, m.shown())
	}
	return out
}

// Suppression is one send that the queue answered with success and did not store. AWS
// shows no suppressions (F-001); the fake reports the reason.
type Suppression struct {
	// Original is the message that the queue had stored before. The answer to the
	// suppressed send had its MessageID and SequenceNumber.
	Original Message

	// GroupID, Body and Attributes belong to the suppressed send. Any difference from
	// the original is lost data.
	GroupID    string
	Body       string
	Attributes map[string]types.MessageAttributeValue

	// DeduplicationID is the ID that both messages have. If ContentBased is true, the
	// suppressed send had no explicit ID, so the ID is the hash of its body.
	DeduplicationID string
	ContentBased    bool
	Scope           DeduplicationScope

	// At is the time of the suppression, and Until the first instant at which the queue
	// would store a new send with the same ID, both on the queue's clock.
	At, Until time.Time
}

// String returns one line with the original message, the common ID, the scope and the
// remaining time.
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

// Suppressed returns the suppressed sends in order. With Config.DiscardDeleted it may
// omit sends suppressed more than five minutes ago, and sends beyond the limits in the
// comment on DiscardDeleted. The caller owns the slice and its contents.
func (q *Queue) Suppressed() []Suppression {
	q.moves.run()
	q.mu.Lock()
	defer q.mu.Unlock()
	out := make([]Suppression, len(q.suppressions))
	for i, s := range q.suppressions {
		s.Original = s.Original.clone()
		s.Attributes = cloneAttributes(s.Attributes)
		out[i] = s
	}
	return out
}
