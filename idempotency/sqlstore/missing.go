package sqlstore

import (
	"sync"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// unseen holds keys not found by a lookup and not claimed since. Such a key is very
// likely new, so its claim skips the read before the write. If the key has a row by now,
// the claim's transaction finds the row.
type missing struct {
	mu  sync.Mutex
	ids map[idempotency.KeyID]struct{}
}

// maxMissing is the maximum number of unseen keys. It is larger than the number of events
// in a producer's buffer. At the limit, add forgets all keys; the claim of a forgotten
// key only costs another read.
const maxMissing = 8192

func (m *missing) add(id idempotency.KeyID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.ids) >= maxMissing || m.ids == nil {
		m.ids = map[idempotency.KeyID]struct{}{}
	}
	m.ids[id] = struct{}{}
}

// take reports whether the key is unseen, and forgets the key.
func (m *missing) remove(id idempotency.KeyID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.ids[id]
	delete(m.ids, id)
	return ok
}
