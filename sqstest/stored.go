package sqstest

// Deviations from AWS in this file: none. AWS shows neither what it stored nor
// what it suppressed.

import (
	"slices"
	"sort"

	"github.com/google/uuid"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
)

// accepted is what the window remembers of a message: all that a duplicate is
// answered with. It has no pointers, so that millions cost the garbage collector
// nothing; the message itself is in the history while that has it.
type accepted struct {
	messageID  uuid.UUID
	sequence   uint64
	groupScope bool // the ID is remembered for the message's group alone
}

func (m *message) accepted(scope DeduplicationScope) accepted {
	return accepted{uuid.MustParse(m.MessageID), m.sequence, scope == ScopeMessageGroup}
}

// store adds a message to the history. It needs q.mu.
func (q *Queue) store(m *message) {
	if q.config.DiscardDeleted && (tooManyDeleted(len(q.stored), q.live) || q.storedBytes-q.liveBytes > q.liveBytes+maxDeletedBytes) {
		q.forgetDeleted()
	}
	q.stored = append(q.stored, m)
	q.storedBytes += m.size()
	q.usage.add(1, m.size())
}

// forgetDeleted takes what was deleted out of the history, where that is wanted. It
// needs q.mu.
func (q *Queue) forgetDeleted() {
	if !q.config.DiscardDeleted {
		return
	}
	before, bytes := len(q.stored), q.storedBytes
	q.stored = slices.DeleteFunc(q.stored, isDeleted)
	q.storedBytes = 0
	for _, m := range q.stored {
		q.storedBytes += m.size()
	}
	q.usage.add(int64(len(q.stored)-before), q.storedBytes-bytes)
}

// tooManyDeleted says when a list of messages is worth being gone through for
// those that were deleted: seldom enough for the cost to be that of a few
// messages a call.
func tooManyDeleted(listed, live int) bool { return listed > 2*live+1024 }

func isDeleted(m *message) bool { return m.deleted }

// find returns the message with the sequence number, nil if it is no longer in
// the history. It needs q.mu.
func (q *Queue) find(sequence uint64) *message {
	i := sort.Search(len(q.stored), func(i int) bool { return q.stored[i].sequence >= sequence })
	if i < len(q.stored) && q.stored[i].sequence == sequence {
		return q.stored[i]
	}
	return nil
}

// original returns the message that a send is a duplicate of. Of one that is
// no longer in the history only what the window remembers is set. It needs q.mu.
func (q *Queue) original(r window.Record[accepted], send Message) *message {
	if m := q.find(r.Value.sequence); m != nil {
		return m
	}
	m := &message{sequence: r.Value.sequence}
	m.MessageID = r.Value.messageID.String()
	m.SequenceNumber = formatSequence(r.Value.sequence)
	m.DeduplicationID = send.DeduplicationID
	m.AcceptedAt = r.From
	if r.Value.groupScope {
		m.GroupID = send.GroupID
	}
	return m
}

// recordSuppression adds to the history of suppressed sends. It needs q.mu.
func (q *Queue) recordSuppression(s Suppression) {
	if q.config.DiscardDeleted {
		over := 0
		old := func(first Suppression) bool {
			return s.At.Sub(first.At) >= window.Interval || q.suppressedBytes > maxSuppressedBytes || len(q.suppressions)-over >= maxSuppressed
		}
		for over < len(q.suppressions) && old(q.suppressions[over]) {
			q.suppressedBytes -= q.suppressions[over].size()
			q.suppressions[over] = Suppression{}
			over++
		}
		q.suppressions = q.suppressions[over:]
	}
	q.suppressedBytes += s.size()
	q.suppressions = append(q.suppressions, s)
}
