package store

import "github.com/kansas-frontier-matrix/sqsfifo/idempotency"

// recent is a bounded map from events to values of type V. If the map is full, the older
// half of its entries is dropped.
type recent[V any] [2]map[idempotency.KeyID]V // newer and older events

// mostRecent is the maximum number of events in each half.
const mostRecent = 1 << 14

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
	if len(r[0]) >= mostRecent {
		r[0], r[1] = nil, r[0]
	}
	if r[0] == nil {
		r[0] = map[idempotency.KeyID]V{}
	}
	r[0][id] = v
}
