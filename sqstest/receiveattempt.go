package sqstest

// Deviations from AWS in this file:
//   - A replay resets the visibility timeout, as documented, and does not count as
//     a receive, which was not recorded.
//   - AWS documents the same receipt handles for a replay and was recorded to give
//     others, with the first ones still working (F-100); here it is the latter.

import "time"

// attemptLifetime is how long a ReceiveRequestAttemptId is remembered (F-100).
const attemptLifetime = 5 * time.Minute

// attempts remembers what each ReceiveRequestAttemptId returned. It needs the
// queue's mutex. The zero value is ready.
type attempts struct {
	byID map[string]*attempt
	due  []*attempt // oldest first
}

type attempt struct {
	id    string
	at    time.Time
	taken []attempted
}

// attempted is a message as the attempt left it.
type attempted struct {
	receipt
	changes int
}

// replay returns the messages of an attempt that can be repeated.
func (a *attempts) replay(d *delivery, id string, now time.Time, visibility time.Duration) ([]*message, bool) {
	for len(a.due) > 0 && !now.Before(a.due[0].at.Add(attemptLifetime)) {
		if old := a.due[0]; a.byID[old.id] == old {
			delete(a.byID, old.id)
		}
		a.due[0] = nil
		a.due = a.due[1:]
	}
	before := a.byID[id]
	if before == nil {
		return nil, false
	}
	for _, t := range before.taken {
		if !t.inFlight() || t.changes != t.message.changes {
			return nil, false
		}
	}
	var taken []*message
	for _, t := range before.taken {
		if visibility > 0 {
			d.hide(t.message, now.Add(visibility))
		}
		taken = append(taken, t.message)
	}
	return taken, true
}

// remember binds the ID to what was just taken. Nothing taken binds nothing.
func (a *attempts) remember(id string, now time.Time, taken []*message) {
	if id == "" || len(taken) == 0 {
		return
	}
	if a.byID == nil {
		a.byID = map[string]*attempt{}
	}
	next := &attempt{id: id, at: now}
	for _, m := range taken {
		next.taken = append(next.taken, attempted{receipt{message: m, receive: m.receives}, m.changes})
	}
	a.byID[id] = next
	a.due = append(a.due, next)
}
