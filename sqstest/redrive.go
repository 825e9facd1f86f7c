package sqstest

// Deviations from AWS in this file:
//   - A FIFO dead-letter queue uses the MessageId as the deduplication ID, and drops a
//     message if this ID is in its window. Recorded answers of AWS show a drop only for a
//     message that a move task moved back (F-113).
//   - While the dead-letter queue does not exist, messages stay deliverable.
//   - In a queue that is its own dead-letter queue (F-146), messages stay deliverable. No
//     recorded answer of AWS shows this.
//   - If a dead-letter queue itself has a RedrivePolicy, this policy counts only receives
//     from the dead-letter queue. No recorded answer of AWS shows this (F-150).
//   - RedriveAllowPolicy is checked only when a RedrivePolicy is set. A later change has no
//     effect on an existing RedrivePolicy.
//   - The texts of errors about policies come from public reports.

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
)

// redrive is a RedrivePolicy.
type redrive struct {
	TargetARN   string `json:"deadLetterTargetArn"`
	MaxReceives int    `json:"maxReceiveCount"`

	// find is called at each use, because the queue may be deleted and created again.
	find func(arn string) *Queue
}

func (r *redrive) String() string {
	b, _ := json.Marshal(r) // a string and a number always encode
	return string(b)
}

// target returns the dead-letter queue, or nil while the queue does not exist.
func (r *redrive) target() *Queue {
	if r == nil {
		return nil
	}
	if q := r.find(r.TargetARN); q != nil && !q.gone.Load() {
		return q
	}
	return nil
}

func parseRedrive(value, own string, fifo bool, find func(string) *Queue) (*redrive, error) {
	if value == "" {
		return nil, nil
	}
	refused := func(reason string) (*redrive, error) {
		return nil, invalidValue(value, "RedrivePolicy", reason)
	}
	var policy struct {
		TargetARN   *string `json:"deadLetterTargetArn"`
		MaxReceives any     `json:"maxReceiveCount"`
	}
	if err := json.Unmarshal([]byte(value), &policy); err != nil {
		return refused("Redrive policy is not a valid JSON map.")
	}
	switch {
	case policy.TargetARN == nil:
		return refused("Redrive policy does not contain mandatory attribute: deadLetterTargetArn.")
	case policy.MaxReceives == nil:
		return refused("Redrive policy does not contain mandatory attribute: maxReceiveCount.")
	}
	r := &redrive{TargetARN: *policy.TargetARN, find: find}
	ok := false
	switch n := policy.MaxReceives.(type) {
	case string:
		r.MaxReceives, ok = integerIn(n, 1, maxReceiveCount)
	case float64:
		r.MaxReceives, ok = integerIn(strconv.FormatFloat(n, 'f', -1, 64), 1, maxReceiveCount)
	}
	if !ok {
		return refused("Invalid value for maxReceiveCount: must be an integer from 1 to 1000.")
	}
	target := r.target()
	switch {
	case target == nil:
		return refused("Dead letter target does not exist.")
	case target.settings.Load().fifo != fifo: // both must be FIFO queues, or both standard (F-115)
		return refused("Dead-letter queue must be same type of queue as the source.")
	case !target.settings.Load().allow.admits(own):
		return refused("The dead-letter queue's RedriveAllowPolicy does not admit this source queue.")
	}
	return r, nil
}

// redriveAllow is a RedriveAllowPolicy. A nil policy allows every queue.
type redriveAllow struct {
	Permission string   `json:"redrivePermission"`
	Sources    []string `json:"sourceQueueArns,omitempty"`
}

func (a *redriveAllow) String() string {
	b, _ := json.Marshal(a) // strings always encode
	return string(b)
}

func (a *redriveAllow) admits(source string) bool {
	if a == nil || a.Permission == "allowAll" {
		return true
	}
	account, name, _ := nameInARN(source)
	return a.Permission == "byQueue" && slices.ContainsFunc(a.Sources, func(arn string) bool {
		a, n, ok := nameInARN(arn) // the regions may differ
		return ok && a == account && n == name
	})
}

func parseRedriveAllow(value string) (*redriveAllow, error) {
	if value == "" {
		return nil, nil
	}
	a := new(redriveAllow)
	if err := json.Unmarshal([]byte(value), a); err != nil {
		return nil, invalidValue(value, "RedriveAllowPolicy", "Redrive allow policy is not a valid JSON map.")
	}
	ok := false
	switch a.Permission {
	case "allowAll", "denyAll":
		ok = len(a.Sources) == 0
	case "byQueue":
		ok = len(a.Sources) >= 1 && len(a.Sources) <= 10
	}
	if !ok {
		return nil, invalidValue(value, "RedriveAllowPolicy", "redrivePermission must be allowAll or denyAll, or byQueue with 1 to 10 sourceQueueArns.")
	}
	return a, nil
}

// lockBoth locks two queues, or one queue given twice, and returns the unlock function.
// It always locks the queue with the lower serial first, so that two calls cannot
// deadlock.
func lockBoth(a, b *Queue) (unlock func()) {
	if a == b {
		a.mu.Lock()
		return a.mu.Unlock
	}
	if b.serial < a.serial {
		a, b = b, a
	}
	a.mu.Lock()
	b.mu.Lock()
	return func() {
		b.mu.Unlock()
		a.mu.Unlock()
	}
}

// lockWithDeadLetters locks the queue and its dead-letter queue, if any.
func (q *Queue) lockWithDeadLetters() (deadLetters *Queue, unlock func()) {
	for {
		r := q.settings.Load().redrive
		target := r.target()
		if target == nil {
			q.mu.Lock()
			unlock = q.mu.Unlock
		} else {
			unlock = lockBoth(q, target)
		}
		// Try again if the policy changed before q.mu was locked.
		if q.settings.Load().redrive == r {
			return target, unlock
		}
		unlock()
	}
}

// addDeadLetter stores the dead letter m, moved from the queue named source. The caller
// holds q.mu.
func (q *Queue) addDeadLetter(m *message, source string) {
	now := q.now()
	buried := &message{
		Message:        m.Message,
		bodyMD5:        m.bodyMD5,
		traceHeader:    m.traceHeader,
		hiddenIndex:    notInHeap,
		source:         source,
		sentAt:         m.sentAt,
		agesFrom:       m.agesFrom,
		receives:       m.receives,
		receivesBefore: m.receives,
		firstReceived:  m.firstReceived,
	}
	if q.settings.Load().fifo {
		// In a FIFO queue, the deduplication ID of a dead letter is its MessageId (F-110).
		buried.DeduplicationID = m.MessageID
		buried.agesFrom = now // restarts the retention; AWS documents this for FIFO queues
	}
	q.addMoved(now, buried)
}

// addMovedBack stores a message from a dead-letter queue with a new MessageId and no
// receives. It returns false if the queue suppresses the message as a duplicate (F-113).
// The caller holds q.mu.
func (q *Queue) addMovedBack(m *message) bool {
	now := q.now()
	revived := &message{
		Message:     m.Message,
		bodyMD5:     m.bodyMD5,
		traceHeader: m.traceHeader,
		hiddenIndex: notInHeap,
		sentAt:      now,
		agesFrom:    now,
	}
	revived.MessageID = newMessageID()
	if q.settings.Load().fifo {
		revived.DeduplicationID = m.MessageID
	}
	return q.addMoved(now, revived)
}

// addMoved stores a message from another queue, unless its deduplication ID is in the window
// (F-111, F-113), and reports whether it stored the message. The delay of q does not apply.
// The caller holds q.mu.
func (q *Queue) addMoved(now time.Time, m *message) bool {
	set := q.settings.Load()
	if set.fifo {
		key := q.dedupKey(now, set, m.GroupID, m.DeduplicationID)
		if r, state := q.window.Lookup(now, key); state == window.Inside {
			q.suppress(now, set, key, r, m.Message, false)
			return false
		}
		m.sequence = q.nextSequence(now)
		m.SequenceNumber = formatSequence(m.sequence)
		// Store m even if the window is full and Put returns an error. The queue may then store
		// a later duplicate, but a refusal would lose m.
		_ = q.window.Put(now, key, window.Record[accepted]{From: now, To: now, Value: m.accepted(set.dedupScope(now))})
	} else {
		m.sequence = q.nextSequence(now)
		m.SequenceNumber = ""
	}
	m.AcceptedAt = now
	q.keep(now, m, 0)
	return true
}

// sendsDeadLettersTo reports whether the queue `other` is the dead-letter queue of q.
func (q *Queue) sendsDeadLettersTo(other *Queue) bool {
	r := q.settings.Load().redrive
	if r == nil || q.gone.Load() {
		return false
	}
	account, name, ok := nameInARN(r.TargetARN)
	return ok && other.is(account, name)
}
