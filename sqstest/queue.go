package sqstest

// Deviations from AWS in this file: the account is 000000000000, and in process the
// region is us-east-1.

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

// endpoint lies under a name that is reserved for tests (RFC 6761), so that a
// request that escapes the fake ends at a resolver and not at somebody's server.
const endpoint = "https://sqs.us-east-1.test"

// Queue is one queue in memory, FIFO unless its [Config] says otherwise. It
// answers the calls of the SDK's client that concern one queue with the client's
// signatures, so it goes wherever a narrow interface of *sqs.Client is asked for;
// [Queue.Client] and [NewServer] give it the other API, AWS's wire format,
// and a [Server] has the calls that concern several queues. All its methods may be
// called concurrently.
//
// Its errors are those of the SDK: *smithy.OperationError around
// *http.ResponseError (aws/transport/http) around the modelled type, such as
// *types.QueueDoesNotExist, or smithy.GenericAPIError. The in-process API has
// no retryer, and the functional options have nothing to configure: they are not called.
//
// Create one with [NewQueue].
type Queue struct {
	config  Config
	created time.Time

	// serial orders the locks of two queues, see lockBoth.
	serial uint64

	gone atomic.Bool // deleted; every call is answered as for an unknown queue

	// settings is replaced under both mutexes; setting serialises the changes.
	settings atomic.Pointer[settings]
	setting  sync.Mutex
	moves    moves

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
	usage                        *usage // of the server, nil without bounds
	faults
	delivery
}

var serials atomic.Uint64

// NewQueue returns an empty queue. The error joins a [*ConfigError] for each
// field that AWS would refuse.
func NewQueue(c Config) (*Queue, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	return newQueue(c, 0), nil
}

// newQueue makes a queue whose clock is ahead by offset.
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
	}
	q.settings.Store(c.settings())
	return q
}

// Name returns the queue's name, which is also accepted as its URL (F-081).
func (q *Queue) Name() string { return q.config.Name }

// URL returns the queue's URL. Its host is reserved for tests and resolves
// nowhere.
func (q *Queue) URL() string { return endpoint + "/" + Account + "/" + q.config.Name }

// ARN returns the queue's ARN. Over HTTP ARNs have the region that the request was
// signed for.
func (q *Queue) ARN() string { return arnOf(Region, q.config.Name) }

// Advance moves the queue's clock forward by d, for tests outside a
// testing/synctest bubble: the deduplication window, visibility timeouts,
// delays and long polls all follow it. A d that is not positive changes nothing,
// because the clock of a queue does not run backwards, and it
// stops at 200 years ahead.
func (q *Queue) Advance(d time.Duration) {
	if d <= 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.offset = ahead(q.offset, d)
	q.wakeAll()
}

// Now returns the time on the queue's clock: that of [Message].AcceptedAt and of the
// end of an entry of [Queue.Window].
func (q *Queue) Now() time.Time { return q.clock() }

func (q *Queue) clock() time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.now()
}

// settle makes the queue what time has made of it. It needs q.mu.
func (q *Queue) settle(now time.Time) { q.delivery.settle(now, q.settings.Load().retention) }

// now needs q.mu.
func (q *Queue) now() time.Time { return time.Now().Add(q.offset) }

// resolve checks that a request names this queue: by URL, whatever its host, or
// by bare name (F-081). It brings the queue up to date with what move tasks have
// done to it in the meantime, so it begins every call and no lock is held.
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
	DeduplicationID string // sent along, or the SHA-256 of the body (F-011); F-110 and F-113 say what a move makes of it
	Body            string
	Attributes      map[string]types.MessageAttributeValue
	AcceptedAt      time.Time // on the queue's clock
}

func (m Message) clone() Message {
	m.Attributes = cloneAttributes(m.Attributes)
	return m
}

// Messages returns every message that the queue ever stored, in the order in
// which it stored them, whether received and deleted since or not; with
// Config.DiscardDeleted those that are not deleted. The caller owns the slice and
// what it holds.
func (q *Queue) Messages() []Message {
	q.moves.run()
	q.mu.Lock()
	defer q.mu.Unlock()
	out := make([]Message, 0, len(q.stored))
	for _, m := range q.stored {
		if !m.deleted || !q.config.DiscardDeleted {
			out = append(out, m.Message.clone())
		}
	}
	return out
}

// Suppression is one send that the queue answered with success and did not
// store. AWS shows nothing of it (F-001); the fake says why it happened.
type Suppression struct {
	// Original is the stored message whose MessageID and SequenceNumber the
	// sender got.
	Original Message

	// GroupID, Body and Attributes are those of the send that was suppressed.
	// Where they differ from the original's, something was lost.
	GroupID    string
	Body       string
	Attributes map[string]types.MessageAttributeValue

	// DeduplicationID is what the two have in common. ContentBased says that the
	// suppressed send brought none, so that its body decided.
	DeduplicationID string
	ContentBased    bool
	Scope           DeduplicationScope

	// At is when the send was suppressed and Until the first instant at which one
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

// Suppressed returns each send that the queue suppressed, in order; with
// Config.DiscardDeleted at least those of the last five minutes. The caller owns
// the slice and what it holds.
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
