package consumer

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/clock"
)

// item is a received message in a batch (see groupBatch). The consumer drops the item when
// the message is deleted or the batch ends.
type item struct {
	raw      types.Message
	group    string
	sequence string
	receives int
	bytes    int64
	received clock.Instant // start of the receive request
	first    bool          // first of its group in the answer to the receive
	batch    *groupBatch

	// Only the goroutine of the item's batch uses the following fields.
	decoded   bool      // the body has been decoded, or cannot be
	key       string    // see Config.Key; empty if the body cannot be decoded
	eventTime time.Time // see Envelope.EventTime
	attempts  int       // failed calls of the handler in this process
	blocked   error     // why the message blocked its group in this process, or nil
	wasHead   bool      // attempts and blocked are known
	claim     claim

	// engine.mu guards the following fields.
	visibleAt      clock.Instant // earliest end of the visibility timeout; 0 if unknown
	extendAfter    clock.Instant // extend only after this time, because the last extension failed
	changing       bool          // a call that changes the visibility timeout is running
	deleting       bool          // a call that deletes the message is running
	visibilityLost bool
	removed        bool            // deleted, or removed from its batch
	suspicion      int             // receives that may have ended in a crash
	unresolved     idempotency.Key // key of the event if it blocks the group without an outcome in the store, else zero
}

// claim is the state of an item in the idempotency store. A granted claim is the right to
// handle the item's event.
type claim struct {
	// only the goroutine of the item's batch uses token and the next two fields
	token      idempotency.Token
	key        idempotency.Key // of the last claim
	repeated   bool
	unrecorded bool // the handler succeeded, and the store has not recorded it yet

	mu       sync.Mutex // guards the following fields
	ref      idempotency.Ref
	granted  bool
	renewAt  clock.Instant
	renewing bool
}

// isGranted reports whether the item has a claim that has not ended.
func (c *claim) isGranted() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.granted
}

func newItem(m types.Message, received clock.Instant, visibility time.Duration) *item {
	it := &item{
		raw: m, group: attribute(m, types.MessageSystemAttributeNameMessageGroupId), received: received, visibleAt: received.Add(visibility),
		sequence: attribute(m, types.MessageSystemAttributeNameSequenceNumber), receives: 1, bytes: int64(len(aws.ToString(m.Body))),
	}
	if n, err := strconv.Atoi(attribute(m, types.MessageSystemAttributeNameApproximateReceiveCount)); err == nil {
		it.receives = max(n, 1)
	}
	for name, a := range m.MessageAttributes {
		it.bytes += int64(len(name) + len(aws.ToString(a.DataType)) + len(aws.ToString(a.StringValue)) + len(a.BinaryValue))
	}
	return it
}

func (it *item) id() string { return aws.ToString(it.raw.MessageId) }

func attribute(m types.Message, name types.MessageSystemAttributeName) string {
	return m.Attributes[string(name)]
}

type state uint8

const (
	stateQueued   state = iota // waits for the end of an earlier batch of the group
	stateWaiting               // waits until it may call the handler
	stateHandling              // the handler runs
	stateSleeping              // waits for the time of the next attempt
	stateBlocked               // waits for an operator
	stateDeleting              // waits for the delete of its first message
	stateEnding                // ends, and makes its undeleted messages visible again

	numberOfStates
)

// outcome is the result of an attempt.
type outcome struct {
	kind  kind
	after time.Duration // pause before the next attempt; if 0, the consumer uses a back-off
	err   error
}

// groupBatch has the messages of one group from one receive, in order. One goroutine
// handles them one after another.
type groupBatch struct {
	group    string
	received clock.Instant
	ctx      context.Context
	cancel   context.CancelCauseFunc
	requests chan operatorRequest // from Retry and ParkHead; the buffer has room for one request

	// engine.mu guards the following fields.
	items        []*item // the first is the head of the group
	state        state
	headSince    time.Time     // when the first message became the head
	headError    error         // error of the head's last attempt, or nil
	headKey      string        // dedupe key of the head, known after its first attempt
	headAttempts int           // calls of the handler for the head
	calledAt     clock.Instant // start of the handler's last call for the head
	calledFor    time.Duration // earlier failed calls for the head
	superseded   bool          // the group has a newer batch, so this batch must end early
	suspect      bool          // the first message is a suspect (see caution), not yet handled
	suspectRuns  bool          // the suspect's handler runs
}

// operatorRequest is a call of Retry or ParkHead for a batch that waits for its next
// attempt or for an operator.
type operatorRequest struct {
	park bool // true for ParkHead, false for Retry
	done chan error
}
