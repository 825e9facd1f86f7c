package store

import "github.com/kansas-frontier-matrix/sqsfifo/idempotency"

// missing is a set of events that SQS stored and the store does not have, as far as the
// claimant knows. If the set is full, the older half of the events is dropped.
type missing [2]map[idempotency.KeyID]struct{} // newer and older events

// mostMissing is the maximum number of events in each half.
const mostMissing = 1 << 14

func (m *missing) has(id idempotency.KeyID) bool {
	_, newer := m[0][id]
	_, older := m[1][id]
	return newer || older
}

// set adds an event to the set or removes it.
func (m *missing) set(id idempotency.KeyID, is bool) {
	delete(m[0], id)
	delete(m[1], id)
	if !is {
		return
	}
	if len(m[0]) >= mostMissing {
		m[0], m[1] = nil, m[0]
	}
	if m[0] == nil {
		m[0] = map[idempotency.KeyID]struct{}{}
	}
	m[0][id] = struct{}{}
}
