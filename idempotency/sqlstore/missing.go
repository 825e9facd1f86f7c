package sqlstore

import (
	"sync"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// missing holds keys that [Store.Lookup] did not find and that were not claimed since.
// The claim of such a key skips the read before the write. If the key does have a row,
// the claim's transaction finds the row.
type missing struct {
	mu  sync.Mutex
	ids map[idempotency.KeyID]struct{}
}

// maxMissing limits the keys in a set of type missing. At the limit, add() drops all
// keys. The limit exceeds the number of events in a producer's buffer.
const maxMissing = 8192

func (m *missing) add(id idempotency.KeyID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.ids) >= maxMissing || m.ids == nil {
		m.ids = map[idempotency.KeyID]struct{}{}
	}
	m.ids[id] = struct{}{}
}

// remove removes the key, and reports whether the key was in the set.
func (m *missing) remove(id idempotency.KeyID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.ids[id]
	delete(m.ids, id)
	return ok
}
