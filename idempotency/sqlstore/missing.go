package sqlstore

import (
	"sync"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// missing holds keys that [Store.Lookup] did not find and that were not claimed since.
// Such a key is very likely new, so its claim skips the read before the write. If the key
// does have a row, the claim's transaction finds the row.
type missing struct {
	mu  sync.Mutex
	ids map[idempotency.KeyID]struct{}
}

// maxMissing limits the keys in a set of type missing. It exceeds the number of events in
// a producer's buffer. At the limit, add() drops all keys. A claim of a dropped key reads
// before it writes: slower, with the same result.
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
