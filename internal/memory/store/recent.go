package store

import "github.com/kansas-frontier-matrix/sqsfifo/idempotency"

// recent is a map from events to values of type V, for at most 2*maxRecent events. r[0] has
// the newer events, and r[1] the older events. When r[0] is full, put drops r[1].
type recent[V any] [2]map[idempotency.KeyID]V

// maxRecent is the maximum number of events in each of the two maps.
const maxRecent = 1 << 14

func (r *recent[V]) get(id idempotency.KeyID) (v V, ok bool) {
	if v, ok = r[0][id]; !ok {
		v, ok = r[1][id]
	}
	return v, ok
}

func (r *recent[V]) remove(id idempotency.KeyID) {
	delete(r[0], id)
	delete(r[1], id)
}

func (r *recent[V]) put(id idempotency.KeyID, v V) {
	r.remove(id)
	if len(r[0]) >= maxRecent {
		r[0], r[1] = nil, r[0]
	}
	if r[0] == nil {
		r[0] = map[idempotency.KeyID]V{}
	}
	r[0][id] = v
}

// setUnrecorded notes, for AwaitRecord, that SQS stored an event that the store will
// never record. If the parameter `unrecorded` is false, setUnrecorded removes the note.
func (c *Claimant) setUnrecorded(k *Claim, unrecorded bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.noteUnrecorded(k, unrecorded)
}

// noteUnrecorded is setUnrecorded for a caller that holds mu.
func (l *finishQueue) noteUnrecorded(k *Claim, unrecorded bool) {
	if unrecorded {
		l.unrecorded.put(k.id, struct{}{})
	} else {
		l.unrecorded.remove(k.id)
	}
}

// resume gives k the kept token of an earlier claim whose answer was lost. If the store
// had granted that claim, k renews it and need not wait. The caller holds mu.
func (l *finishQueue) resume(k *Claim) {
	if k.resumed {
		return
	}
	k.resumed = true
	if token, ok := l.tokens.get(k.id); ok {
		l.tokens.remove(k.id)
		k.request.Token, k.maybeGranted = token, true
	}
}

// keepToken keeps the token of the claim k after its submission has ended. The next
// submission of the event uses the token to renew the claim (see resume).
func (c *Claimant) keepToken(k *Claim) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tokens.put(k.id, k.request.Token)
}
