package sqlstore

import (
	"sync"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// missing is a set of keys for which [Store.Lookup] found no row. The next claim of such
// a key does not read first, because the key is probably new. If it is not, the claim's
// transaction finds the row.
type missing struct {
	mu  sync.Mutex
	ids map[idempotency.KeyID]struct{}
}

// maxMissing is the maximum number of keys in a set. A full set is emptied. This only
// costs time: the next claim of each removed key reads the key's record first.
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
