package sqstest

// AWS does not show stored or suppressed messages, so this file has nothing to compare with
// AWS.

import (
	"slices"
	"sort"

	"github.com/google/uuid"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
)

// accepted is the deduplication window's data about a message: the IDs for the answer to a
// duplicate. It has no pointers, so the garbage collector need not scan millions of
// records.
type accepted struct {
	messageID  uuid.UUID
	sequence   uint64
	groupScope bool // the ID is remembered for the message's group only
}

func (m *message) accepted(scope DeduplicationScope) accepted {
	return accepted{uuid.MustParse(m.MessageID), m.sequence, scope == ScopeMessageGroup}
}

// store adds a message to the list of stored messages. The caller holds q.mu.
func (q *Queue) store(m *message) {
	if q.config.DiscardDeleted && (tooManyDeleted(len(q.stored), q.live) || q.storedBytes-q.liveBytes > q.liveBytes+maxDeletedBytes) {
		q.forgetDeleted()
	}
	q.stored = append(q.stored, m)
	q.storedBytes += m.size()
	q.usage.Load().add(1, m.size())
}

// forgetDeleted removes deleted messages from the list of stored messages if
// Config.DiscardDeleted is set. The caller holds q.mu.
func (q *Queue) forgetDeleted() {
	if !q.config.DiscardDeleted || len(q.stored) == q.live {
		return
	}
	before, bytes := len(q.stored), q.storedBytes
	q.stored = slices.DeleteFunc(q.stored, isDeleted)
	q.storedBytes = 0
	for _, m := range q.stored {
		q.storedBytes += m.size()
	}
	if u := q.usage.Load(); u != nil {
		u.add(int64(len(q.stored)-before), q.storedBytes-bytes)
		u.forgotten.Add(int64(before - len(q.stored)))
	}
}

// tooManyDeleted reports whether the deleted messages in a list outnumber the undeleted
// messages by more than 1,024. Fewer can stay, because a removal visits the whole list.
func tooManyDeleted(length, undeleted int) bool { return length > 2*undeleted+1024 }

func isDeleted(m *message) bool { return m.deleted }

// find returns the message with the sequence number, or nil if q.stored no longer has
// the message. The caller holds q.mu.
func (q *Queue) find(sequence uint64) *message {
	i := sort.Search(len(q.stored), func(i int) bool { return q.stored[i].sequence >= sequence })
	if i < len(q.stored) && q.stored[i].sequence == sequence {
		return q.stored[i]
	}
	return nil
}

// original returns the original of a duplicate, from the window's record r. If q.stored no
// longer has the original, most fields of the result are empty. The caller holds q.mu.
func (q *Queue) original(r window.Record[accepted], duplicate Message) *message {
	if m := q.find(r.Value.sequence); m != nil {
		return m
	}
	m := &message{sequence: r.Value.sequence}
	m.MessageID = r.Value.messageID.String()
	m.SequenceNumber = formatSequence(r.Value.sequence)
	m.DeduplicationID = duplicate.DeduplicationID
	m.AcceptedAt = r.From
	if r.Value.groupScope {
		m.GroupID = duplicate.GroupID
	}
	return m
}

// recordSuppression adds a suppressed send to q.suppressions. With Config.DiscardDeleted it
// first drops old entries: after five minutes, or above maxSuppressed or
// maxSuppressedBytes. The caller holds q.mu.
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
