package sqlstore

import (
	"sync"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// unseen are keys that a lookup has not found and that were not claimed since. A claim of
// one is made without a second look: it is very likely new, and if it is not, the
// transaction of the claim finds the row.
type unseen struct {
	mu  sync.Mutex
	ids map[idempotency.KeyID]struct{}
}

// mostUnseen keys are kept, more than a producer buffers. One that is forgotten is read
// once more.
const mostUnseen = 8192

func (u *unseen) add(id idempotency.KeyID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.ids) >= mostUnseen || u.ids == nil {
		u.ids = map[idempotency.KeyID]struct{}{}
	}
	u.ids[id] = struct{}{}
}

// take reports whether the key is unseen, and forgets it.
func (u *unseen) take(id idempotency.KeyID) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	_, ok := u.ids[id]
	delete(u.ids, id)
	return ok
}
