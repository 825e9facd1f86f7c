package sqstest

// Deviations from AWS in this file, for a second receive with the same
// ReceiveRequestAttemptId (a replay):
//   - It restarts the visibility timeout, as AWS documents, but does not count as a
//     receive. No recording shows AWS's count.
//   - It returns new receipt handles, and the old handles still work, both as recorded
//     (F-100). AWS's documentation says that a replay returns the old handles.

import "time"

// attemptLifetime is the time that the queue remembers a ReceiveRequestAttemptId
// (F-100).
const attemptLifetime = 5 * time.Minute

// attempts remembers the result of each ReceiveRequestAttemptId. The queue's mutex
// guards attempts. The zero value is ready.
type attempts struct {
	byID map[string]*attempt
	due  []*attempt // attempts, the oldest first
}

type attempt struct {
	id    string
	at    time.Time
	taken []attemptedMessage
}

// attemptedMessage is a message that a receive with an attempt ID returned.
type attemptedMessage struct {
	receipt
	changes int // message.changes at the time of the receive
}

// replay returns the messages of an earlier receive with the attempt ID. If the parameter
// `visibility` is above zero, replay also restarts their visibility timeout with this
// duration.
//
// If the result `spent` is true, the receive cannot be repeated: one of the messages was
// deleted, became visible or had its visibility changed.
func (a *attempts) replay(d *delivery, id string, now time.Time, visibility time.Duration) (taken []*message, replayed, spent bool) {
	for len(a.due) > 0 && !now.Before(a.due[0].at.Add(attemptLifetime)) {
		if old := a.due[0]; a.byID[old.id] == old {
			delete(a.byID, old.id)
		}
		a.due[0] = nil
		a.due = a.due[1:]
	}
	before := a.byID[id]
	if before == nil {
		return nil, false, false
	}
	for _, t := range before.taken {
		if !t.inFlight() || t.changes != t.message.changes {
			return nil, false, true
		}
	}
	for _, t := range before.taken {
		if visibility > 0 {
			d.hide(t.message, now.Add(visibility))
		}
		taken = append(taken, t.message)
	}
	return taken, true, false
}

// remember stores the messages that a receive with this attempt ID has taken. Without an ID
// or a message, it does nothing.
func (a *attempts) remember(id string, now time.Time, taken []*message) {
	if id == "" || len(taken) == 0 {
		return
	}
	if a.byID == nil {
		a.byID = map[string]*attempt{}
	}
	next := &attempt{id: id, at: now}
	for _, m := range taken {
		next.taken = append(next.taken, attemptedMessage{receipt{message: m, receive: m.receives}, m.changes})
	}
	a.byID[id] = next
	a.due = append(a.due, next)
}
