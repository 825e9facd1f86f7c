package store

import "github.com/kansas-frontier-matrix/sqsfifo/idempotency"

// recent is a bounded map from events to values of type V. If the map is full, the older
// half of its entries is dropped.
type recent[V any] [2]map[idempotency.KeyID]V // newer and older events

// maxRecent is the maximum number of events in each half.
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

// setMissing records whether the store lacks the result of an event that SQS stored.
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

// resume lets a new submission of an event continue a claim of an earlier submission. The
// earlier submission ended before its first attempt and without an answer to its claim,
// so the store may have granted the claim. With the token of the earlier submission, the
// new submission renews this claim. Otherwise it would wait for the end of the lease. The
// caller holds mu.
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
