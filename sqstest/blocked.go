package sqstest

// Deviations from AWS in this file: AWS has nothing like [Queue.Blocked]. It does not
// report which message groups are blocked.

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// BlockedGroup is a message group whose first message was received and not deleted. The
// queue delivers no later message while the first one is in flight (F-091).
type BlockedGroup struct {
	Head          Message   // first message; in flight until HiddenUntil, afterwards waiting
	FirstReceived time.Time // first receive of Head
	LastReceived  time.Time // last receive of Head
	Messages      int       // undeleted messages of the group
}

// Blocked returns the blocked groups of a FIFO queue, the longest blocked first.
func (q *Queue) Blocked() []BlockedGroup {
	q.moves.run()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.settle(q.now())
	var out []BlockedGroup
	for _, g := range q.delivery.groups {
		if g.head != nil && g.head.receives > g.head.receivesBefore {
			out = append(out, BlockedGroup{g.head.shown(), g.head.firstReceived, g.head.lastReceived, g.count})
		}
	}
	slices.SortFunc(out, func(a, b BlockedGroup) int {
		return cmp.Or(a.FirstReceived.Compare(b.FirstReceived), strings.Compare(a.Head.SequenceNumber, b.Head.SequenceNumber))
	})
	return out
}

// shown returns a copy of the message for the user of the queue, with its state.
func (m *message) shown() Message {
	out := m.Message.clone()
	out.Receives, out.Deleted = m.receives, m.deleted
	if m.hiddenIndex != notInHeap {
		out.HiddenUntil = m.visibleAt
	}
	return out
}

type blockedWire struct {
	Queue          string    `json:"queue"`
	MessageGroupID string    `json:"message_group_id"`
	Messages       int       `json:"messages"`
	MessageID      string    `json:"message_id"`
	SequenceNumber string    `json:"sequence_number"`
	Receives       int       `json:"receives"`
	State          string    `json:"state"` // in_flight or waiting
	HiddenUntil    time.Time `json:"hidden_until,omitzero"`
	FirstReceived  time.Time `json:"first_received"`
	LastReceived   time.Time `json:"last_received"`
}

func blockedOf(q *Queue) ([]BlockedGroup, func(BlockedGroup) blockedWire) {
	return q.Blocked(), func(g BlockedGroup) blockedWire {
		w := blockedWire{
			Queue: q.Name(), MessageGroupID: g.Head.GroupID, Messages: g.Messages, MessageID: g.Head.MessageID, SequenceNumber: g.Head.SequenceNumber,
			Receives: g.Head.Receives, State: "waiting", FirstReceived: g.FirstReceived.UTC(), LastReceived: g.LastReceived.UTC(),
		}
		if !g.Head.HiddenUntil.IsZero() {
			w.State, w.HiddenUntil = "in_flight", g.Head.HiddenUntil.UTC()
		}
		return w
	}
}
