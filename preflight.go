package sqsfifo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/outage"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/sqscall"
)

// QueueReport contains a queue's attributes. An attribute missing in the queue's report
// has SQS's documented default.
type QueueReport struct {
	// ARN is the queue's ARN, or "" if the queue did not report it. The keys in
	// Config.Store contain the ARN, unless [StoreConfig].Queue is set.
	ARN string

	// FIFO reports a FIFO queue.
	FIFO bool

	// ContentBasedDeduplication reports that SQS uses the hash of the body as the
	// deduplication ID of a message without such an ID.
	ContentBasedDeduplication bool

	// DeduplicationScope is "queue" or "messageGroup".
	DeduplicationScope string

	// FifoThroughputLimit is "perQueue" or "perMessageGroupId".
	FifoThroughputLimit string

	// MaximumMessageSize is the producer's limit for each message, in bytes.
	MaximumMessageSize int

	// Delay is the time between the send and the delivery of each message.
	Delay time.Duration

	// Encryption is EncryptionNone, EncryptionSQS or EncryptionKMS.
	Encryption Encryption

	// Notes are hints for an operator about a usable queue, for example about a delay.
	// Each note has one sentence or more.
	Notes []string
}

// Encryption is a queue's encryption at rest.
type Encryption string

const (
	EncryptionNone Encryption = "none"
	EncryptionSQS  Encryption = "SSE-SQS" // with a key of SQS
	EncryptionKMS  Encryption = "SSE-KMS" // with a key of KMS, whose request quota may also throttle sends
)

// inspector reads the attributes of a queue at the first send, and again at later sends
// until an answer shows a usable queue or denies access.
type inspector struct {
	client   Client
	queueURL string
	explicit bool            // Config.Deduplication is DeduplicationExplicit
	service  *outage.Service // SQS

	// unreachable is a mistake in the settings of the client (see sqscall.Misconfigured),
	// or nil. With it, the inspector makes no request.
	unreachable *QueueError

	report atomic.Pointer[QueueReport]

	mu          sync.Mutex
	fault       *QueueError   // the fault of the queue according to the last answer, or nil
	nextRequest time.Time     // earliest time of the next request for the attributes
	asking      chan struct{} // closed when the request in flight ends; nil without a request in flight

	// hasFailed means that a request failed or showed an unusable queue. The next will
	// probably fail too, so sends do not wait for it.
	hasFailed bool
}

// askAgain is the shortest time between two requests for the queue's attributes. A queue
// that accepts messages but hides its attributes would otherwise slow down each send.
const askAgain = 10 * time.Second

// describeFor is the longest time for which a send waits for the queue's attributes.
const describeFor = 5 * time.Second

// maxSize returns the queue's limit for a message, in bytes.
func (i *inspector) maxSize() int {
	if r := i.report.Load(); r != nil {
		return r.MaximumMessageSize
	}
	return maxMessageBytes
}

// check returns a [*QueueError] if the queue cannot take the messages, and nil if it can
// or if the attributes are unknown. To learn them, check may make a request, or wait for
// another caller's request.
func (i *inspector) check(ctx context.Context) error {
	if i.report.Load() != nil {
		return nil
	}
	if i.unreachable != nil {
		i.service.Record(i.unreachable) // the log has it at intervals, like an outage
		return i.unreachable
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case i.asking != nil && i.hasFailed:
	case i.asking != nil:
		asking := i.asking
		i.mu.Unlock()
		select {
		case <-asking:
		case <-ctx.Done(): // stop waiting; the caller handles the end of ctx
		}
		i.mu.Lock()
	case !time.Now().Before(i.nextRequest):
		i.askLocked(ctx)
	}
	if i.fault != nil {
		return i.fault
	}
	return nil
}

// askLocked requests the queue's attributes. The caller holds i.mu. askLocked releases
// the lock during the request and takes the lock again afterwards, even if the client
// ends the goroutine (runtime.Goexit).
func (i *inspector) askLocked(ctx context.Context) {
	i.asking = make(chan struct{})
	i.mu.Unlock()
	err := errors.New("the client ended the goroutine")
	defer func() {
		i.mu.Lock()
		close(i.asking)
		i.asking = nil
		i.fault = nil
		var api smithy.APIError
		switch {
		case err == nil:
		case errors.As(err, &i.fault):
			i.nextRequest, i.hasFailed = time.Now().Add(askAgain), true
		case errors.As(err, &api) && strings.HasPrefix(api.ErrorCode(), "AccessDenied"):
			// The credentials do not permit GetQueueAttributes, so another request
			// would fail too. Assume a usable queue from now on.
			i.service.KeepCause(err)
			i.report.Store(&QueueReport{MaximumMessageSize: maxMessageBytes})
		case ctx.Err() == nil:
			i.nextRequest, i.hasFailed = time.Now().Add(askAgain), true
			if i.service.NeverAnswered() {
				i.service.KeepCause(err)
				i.service.Record(err)
			}
		}
	}()
	bounded, cancel := context.WithTimeout(ctx, describeFor)
	defer cancel()
	_, err = i.ask(bounded, func(o *sqs.Options) { o.Retryer = aws.NopRetryer{} })
}

// ask reads the queue's attributes, and keeps the report if the queue is usable.
func (i *inspector) ask(ctx context.Context, options ...func(*sqs.Options)) (QueueReport, error) {
	if i.unreachable != nil {
		return QueueReport{}, i.unreachable
	}
	ctx, cancel := context.WithTimeout(ctx, sqscall.Timeout)
	defer cancel()
	out, err := i.attributes(ctx, options)
	if err != nil {
		return QueueReport{}, fmt.Errorf("sqsfifo: read the attributes of queue %s: %w", i.queueURL, err)
	}
	r := reportOf(out)
	var problems []string
	if !r.FIFO {
		problems = append(problems, "not a FIFO queue; create a new one (a queue's type is fixed)")
	}
	if !r.ContentBasedDeduplication && !i.explicit {
		problems = append(problems, "ContentBasedDeduplication is off; set the attribute to true, or set Config.Deduplication to DeduplicationExplicit")
	}
	if problems != nil {
		return r, &QueueError{QueueURL: i.queueURL, Problems: problems}
	}
	i.report.Store(&r)
	return r, nil
}

// attributes calls GetQueueAttributes. It returns an error if the client panics, or if
// the client returns neither an answer nor an error.
func (i *inspector) attributes(ctx context.Context, options []func(*sqs.Options)) (attributes map[string]string, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the client panicked: %v", v)
		}
	}()
	out, err := i.client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl:       &i.queueURL,
		AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll},
	}, options...)
	if err == nil && out == nil {
		err = errors.New("the client returned neither an answer nor an error")
	}
	if err != nil {
		return nil, err
	}
	return out.Attributes, nil
}

func reportOf(attributes map[string]string) QueueReport {
	get := func(name types.QueueAttributeName) string { return attributes[string(name)] }
	r := QueueReport{
		ARN:                       get(types.QueueAttributeNameQueueArn),
		FIFO:                      get(types.QueueAttributeNameFifoQueue) == "true",
		ContentBasedDeduplication: get(types.QueueAttributeNameContentBasedDeduplication) == "true",
		DeduplicationScope:        cmp.Or(get(types.QueueAttributeNameDeduplicationScope), "queue"),
		FifoThroughputLimit:       cmp.Or(get(types.QueueAttributeNameFifoThroughputLimit), "perQueue"),
		MaximumMessageSize:        maxMessageBytes,
		Encryption:                EncryptionNone,
	}
	if n, err := strconv.Atoi(get(types.QueueAttributeNameMaximumMessageSize)); err == nil && n > 0 {
		r.MaximumMessageSize = min(n, maxMessageBytes) // no queue accepts larger messages
	}
	if n, err := strconv.Atoi(get(types.QueueAttributeNameDelaySeconds)); err == nil && n > 0 {
		r.Delay = time.Duration(n) * time.Second
	}
	switch {
	case get(types.QueueAttributeNameKmsMasterKeyId) != "":
		r.Encryption = EncryptionKMS
	case get(types.QueueAttributeNameSqsManagedSseEnabled) == "true":
		r.Encryption = EncryptionSQS
	}
	note := func(format string, args ...any) { r.Notes = append(r.Notes, fmt.Sprintf(format, args...)) }
	if r.DeduplicationScope == "messageGroup" {
		note("DeduplicationScope is messageGroup: SQS delivers an event again that comes in another message group. " +
			"This producer refuses that within the deduplication interval; derive the group from what does not change.")
	}
	if r.MaximumMessageSize < maxMessageBytes {
		note("MaximumMessageSize is %d bytes of the 1,048,576 that SQS allows; larger events are refused before they are sent.", r.MaximumMessageSize)
	}
	if r.Delay > 0 {
		note("The queue holds each message back for %v; the deduplication interval runs from the send, not from the delivery.", r.Delay)
	}
	if r.Encryption == EncryptionKMS {
		note("The queue is encrypted with a key of KMS: KMS throttles sends, too, and the sender needs kms:GenerateDataKey and kms:Decrypt.")
	}
	return r
}
