package consumer

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// item is a message of a run (the messages of one group from one receive), until its
// delete or the end of the run.
type item struct {
	raw      types.Message
	group    string
	sequence string
	receives int
	bytes    int64
	received time.Time // start of the receive request
	first    bool      // the first message of its group in the receive
	batch    *groupBatch

	// The following fields belong to the goroutine of the item's run (see type run).
	decoded  any // a Message[T] or an error
	attempts int // calls of the handler
	claim    claim

	// engine.mu guards the following fields.
	visibleAt      time.Time // earliest end of the visibility timeout
	extendAfter    time.Time // no extension before this time, because the last one failed
	changing       bool      // a change of visibility is under way
	deleting       bool      // a delete is under way
	visibilityLost bool
	removed        bool // its run does not contain it any more
}

// claim is the state of an item in the idempotency store. A granted claim is the right to
// handle the item's event.
type claim struct {
	// The first three fields belong to the goroutine of the item's run (see type run).
	token      idempotency.Token
	repeated   bool
	unrecorded bool // the effect happened and the record of success is missing

	mu       sync.Mutex // guards the following fields
	ref      idempotency.Ref
	granted  bool
	renewAt  time.Time
	renewing bool
}

// isGranted reports whether the item has a claim that has not ended.
func (c *claim) isGranted() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.granted
}

func newItem(m types.Message, received time.Time, visibility time.Duration) *item {
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
	stateQueued       state = iota // an earlier run of the group has not ended
	stateWaiting                   // waits for its turn to handle
	stateWaitingAlone              // waits to handle while no other handler runs
	stateHandling                  // the handler runs
	stateSleeping                  // waits for the next attempt
	stateBlocked                   // waits for an operator
	stateDeleting                  // deletes its first message
	stateEnding                    // makes its remaining messages visible again

	numberOfStates
)

// outcome is the result of an attempt.
type outcome struct {
	kind  kind
	after time.Duration // for deferred and busy; 0 means a back-off
	err   error
}

// run holds the messages of one group from one receive, in order. One goroutine handles
// them.
type groupBatch struct {
	group    string
	received time.Time
	ctx      context.Context
	cancel   context.CancelCauseFunc
	requests chan operatorRequest // from Retry and ParkHead; room for one order

	// engine.mu guards the following fields.
	items        []*item // the first is called the head
	state        state
	headSince    time.Time // when the first message became the head
	headError    error     // the last failure of the head
	headKey      string    // key of the head after a failure
	headAttempts int       // number of attempts of the head
	superseded   bool      // the group has a newer run, so this one ends after its head
}

// order is an operator's request to a sleeping or blocked run.
type operatorRequest struct {
	park bool // else retry
	done chan error
}
