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

// setMissing notes for AwaitRecord whether the store has the result of an event stored by
// SQS (missing is false) or will never get the result (true).
func (c *Claimant) setMissing(k *Claim, missing bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.noteMissing(k, missing)
}

// noteMissing is setMissing for a caller that holds mu.
func (l *finishQueue) noteMissing(k *Claim, missing bool) {
	if missing {
		l.missing.put(k.id, struct{}{})
	} else {
		l.missing.remove(k.id)
	}
}

// resume gives the claim k the token that keepToken kept for the event, if any. If the
// store granted a claim with this token, k renews that claim and need not wait for the end
// of its lease. The caller holds mu.
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

// keepToken keeps the claim token of an ended submission for the next submission of the
// event, which can then renew the claim.
func (c *Claimant) keepToken(k *Claim) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tokens.put(k.id, k.request.Token)
}
