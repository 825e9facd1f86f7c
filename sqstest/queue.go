package sqstest

// Deviations from AWS in this file: in the in-process API the region is always us-east-1.

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

// Account and Region are part of each queue's URL and ARN. [Config].Account selects another
// account.
const (
	Account = "000000000000"
	Region  = "us-east-1"
)

// endpoint has a domain that is reserved for tests (RFC 6761). A request sent to the
// endpoint by mistake fails in DNS and reaches no real server.
const endpoint = "https://sqs.us-east-1.test"

// Queue is one queue in memory, FIFO unless its [Config] says otherwise. All methods are
// safe for concurrent use. Create a queue with [NewQueue].
//
// It has the methods of *sqs.Client that concern one queue, with the same signatures. It
// therefore implements any interface with some of these methods. A [Server] also has the
// calls for several queues. With [Queue.Client] or [NewServer], a real SDK client can call
// the queue in AWS's wire format.
//
// The error of a refused call has the types of the SDK: an *smithy.OperationError wraps an
// *http.ResponseError (aws/transport/http), which wraps the modelled type, such as
// *types.QueueDoesNotExist, or a *smithy.GenericAPIError.
//
// The in-process API has no retryer and does not call the functional options.
type Queue struct {
	config  Config
	created time.Time

	// serial determines the order in which lockBoth locks two queues.
	serial uint64

	gone atomic.Bool // the queue was deleted; its calls answer like an unknown queue

	// A change holds settingsMu throughout, and q.mu while it replaces the settings.
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
	usage                        atomic.Pointer[usage] // messages and bytes counted for the server's MemoryLimits; nil without limits
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
func (q *Queue) URL() string { return q.urlAt(endpoint) }

// ARN returns the queue's ARN. Over HTTP, ARNs have the region of the request's
// signature.
func (q *Queue) ARN() string { return q.arnIn(Region) }

func (q *Queue) arnIn(region string) string { return arnOf(region, q.config.Account, q.config.Name) }

// Advance moves the queue's clock forward by d, for tests outside a testing/synctest
// bubble. The deduplication window, visibility timeouts, delays and long polls follow the
// clock.
//
// A d of zero or less changes nothing. The clock stops at 200 years ahead.
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

// settle makes hidden messages visible if their visibility timeout or delay is over, and
// removes expired messages. The caller holds q.mu.
func (q *Queue) settle(now time.Time) { q.delivery.settle(now, q.settings.Load().retention) }

// now returns the time on the queue's clock. The caller holds q.mu.
func (q *Queue) now() time.Time { return time.Now().Add(q.offset) }

// resolve checks that a request names this queue, by a URL with any host or by the bare
// name (F-081). Every call begins with resolve, so resolve also runs the queue's move tasks.
// The caller holds no lock.
func (q *Queue) resolve(queueURL *string) error {
	if queueURL == nil {
		return missing("QueueUrl")
	}
	if account, name, ok := queueName(*queueURL); !ok || !q.is(account, name) || q.gone.Load() {
		return noSuchQueue()
	}
	q.moves.run()
	return nil
}

func noSuchQueue() error {
	return queueDoesNotExist.because("The specified queue does not exist.") // AWS's text (F-125)
}

// is reports whether the queue has the account and the name. An empty account is any account.
func (q *Queue) is(account, name string) bool {
	return name == q.config.Name && (account == "" || account == q.config.Account)
}

// queueName returns the account and the name in a queue URL, with any host. A text without
// a slash is itself the name, and its account is empty. The path of a URL is /ACCOUNT/NAME,
// or /queue/REGION/ACCOUNT/NAME as in LocalStack.
func queueName(queueURL string) (account, name string, ok bool) {
	if !strings.Contains(queueURL, "/") {
		return "", queueURL, true
	}
	u, err := url.Parse(queueURL)
	if err != nil {
		return "", "", false
	}
	path, ok := strings.CutPrefix(u.Path, "/")
	if rest, inRegion := strings.CutPrefix(path, "queue/"); inRegion {
		if _, behind, found := strings.Cut(rest, "/"); found { // otherwise the account is "queue"
			path = behind
		}
	}
	account, name, found := strings.Cut(path, "/")
	return account, name, ok && found && account != "" && name != "" && !strings.Contains(name, "/")
}

// Message is one stored message. Suppressed and refused sends leave no Message.
type Message struct {
	MessageID      string
	SequenceNumber string
	GroupID        string
	// DeduplicationID is the explicit ID, or else the SHA-256 of the body (F-011). A move
	// to or from a dead-letter queue sets it to the message's previous MessageId (F-110,
	// F-113).
	DeduplicationID string
	Body            string
	Attributes      map[string]types.MessageAttributeValue
	AcceptedAt      time.Time // on the queue's clock

	// Receives, HiddenUntil and Deleted are set only in the results of [Queue.Messages] and
	// [Queue.Blocked], as of the time of the call.
	//
	// Receives counts the receives, for a dead letter also those in earlier queues.
	// HiddenUntil is the end of the visibility timeout or delay, zero for a visible
	// message.
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
	// suppressed send had the MessageID and SequenceNumber of the original.
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

	// At is the time of the suppression. Until is the first instant at which the queue
	// would store a new send with the same ID. Both are on the queue's clock.
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

// Suppressed returns the suppressed sends in order. The caller owns the slice and its
// contents.
//
// With Config.DiscardDeleted, sends suppressed more than five minutes ago may be missing,
// and also the oldest sends if there are too many (see DiscardDeleted).
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
