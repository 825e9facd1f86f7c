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

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/sqscall"
)

// QueueReport is what a queue says of itself. Where the queue did not say, a
// field has the value that SQS documents as the default.
type QueueReport struct {
	// FIFO is whether it is a FIFO queue.
	FIFO bool

	// ContentBasedDeduplication is whether SQS hashes the body of a message
	// without a deduplication ID.
	ContentBasedDeduplication bool

	// DeduplicationScope is "queue" or "messageGroup".
	DeduplicationScope string

	// FifoThroughputLimit is "perQueue" or "perMessageGroupId".
	FifoThroughputLimit string

	// MaximumMessageSize is in bytes, and the limit of each message from then on.
	MaximumMessageSize int

	// Delay is how long the queue holds each message back.
	Delay time.Duration

	// Encryption is EncryptionNone, EncryptionSQS or EncryptionKMS.
	Encryption Encryption

	// Notes say what works and should be known, in sentences for people.
	Notes []string
}

// Encryption is how a queue encrypts what it stores.
type Encryption string

const (
	EncryptionNone Encryption = "none"
	EncryptionSQS  Encryption = "SSE-SQS" // with a key of SQS
	EncryptionKMS  Encryption = "SSE-KMS" // with a key of KMS, whose throttles are the producer's, too
)

// inspector asks a queue for its attributes, at the first send and not again once it
// has answered well.
type inspector struct {
	client   Client
	queueURL string
	explicit bool // deduplication IDs are sent

	report atomic.Pointer[QueueReport]

	mu     sync.Mutex
	wrong  *QueueError   // the last answer
	again  time.Time     // until then nobody asks
	vain   bool          // it was asked before, and nobody waits for an answer again
	asking chan struct{} // closed when the answer is there; nil while nobody asks
}

// askAgain is how long sends go on without an answer, or are refused because of a
// bad one, before one asks again: a queue that accepts messages and does not
// describe itself must not slow each of them down.
const askAgain = 10 * time.Second

// maxSize is the queue's limit of a message.
func (i *inspector) maxSize() int {
	if r := i.report.Load(); r != nil {
		return r.MaximumMessageSize
	}
	return maxMessageBytes
}

// check returns a [*QueueError] if the queue cannot take the messages, and nil if
// it can or does not say. It asks the queue if nobody has; everyone else waits for
// the first answer, or for the end of ctx.
func (i *inspector) check(ctx context.Context) error {
	if i.report.Load() != nil {
		return nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case i.asking != nil && i.vain:
	case i.asking != nil:
		asking := i.asking
		i.mu.Unlock()
		select {
		case <-asking:
		case <-ctx.Done(): // nothing will be sent
		}
		i.mu.Lock()
	case !time.Now().Before(i.again):
		i.askLocked(ctx)
	}
	if i.wrong != nil {
		return i.wrong
	}
	return nil
}

// askLocked asks the queue. It lets go of the lock meanwhile, and takes it again
// even if the client ends the goroutine.
func (i *inspector) askLocked(ctx context.Context) {
	i.asking = make(chan struct{})
	i.mu.Unlock()
	err := errors.New("the client ended the goroutine")
	defer func() {
		i.mu.Lock()
		close(i.asking)
		i.asking = nil
		i.wrong = nil
		var api smithy.APIError
		switch {
		case err == nil:
		case errors.As(err, &i.wrong):
			i.again, i.vain = time.Now().Add(askAgain), true
		case errors.As(err, &api) && strings.HasPrefix(api.ErrorCode(), "AccessDenied"):
			// Asking again would be refused again.
			i.report.Store(&QueueReport{MaximumMessageSize: maxMessageBytes})
		case ctx.Err() == nil:
			i.again, i.vain = time.Now().Add(askAgain), true
		}
	}()
	_, err = i.ask(ctx)
}

// ask returns what the queue says about itself, and remembers it if it is well.
func (i *inspector) ask(ctx context.Context) (QueueReport, error) {
	ctx, cancel := context.WithTimeout(ctx, sqscall.Timeout)
	defer cancel()
	out, err := i.attributes(ctx)
	if err != nil {
		return QueueReport{}, fmt.Errorf("sqsfifo: read the attributes of queue %s: %w", i.queueURL, err)
	}
	r := reportOf(out)
	var problems []string
	if !r.FIFO {
		problems = append(problems, "not a FIFO queue; create a new one (a queue's type is fixed)")
	}
	if !r.ContentBasedDeduplication && !i.explicit {
		problems = append(problems, "ContentBasedDeduplication is off; set the attribute to true, or set Config.Deduplication to ExplicitBodyHash")
	}
	if problems != nil {
		return r, &QueueError{QueueURL: i.queueURL, Problems: problems}
	}
	i.report.Store(&r)
	return r, nil
}

// attributes makes the request. A client that panics, or answers nothing, is an
// error like every other.
func (i *inspector) attributes(ctx context.Context) (attributes map[string]string, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the client panicked: %v", v)
		}
	}()
	out, err := i.client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl:       &i.queueURL,
		AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll},
	})
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
		FIFO:                      get(types.QueueAttributeNameFifoQueue) == "true",
		ContentBasedDeduplication: get(types.QueueAttributeNameContentBasedDeduplication) == "true",
		DeduplicationScope:        cmp.Or(get(types.QueueAttributeNameDeduplicationScope), "queue"),
		FifoThroughputLimit:       cmp.Or(get(types.QueueAttributeNameFifoThroughputLimit), "perQueue"),
		MaximumMessageSize:        maxMessageBytes,
		Encryption:                EncryptionNone,
	}
	if n, err := strconv.Atoi(get(types.QueueAttributeNameMaximumMessageSize)); err == nil && n > 0 {
		r.MaximumMessageSize = min(n, maxMessageBytes) // SQS knows no more (F-073)
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
