package sqlstore

import (
	"sync"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// unseen holds keys not found by a lookup and not claimed since. Such a key is very
// likely new, so its claim skips the read before the write. If the key has a row by now,
// the claim's transaction finds the row.
type unseen struct {
	mu  sync.Mutex
	ids map[idempotency.KeyID]struct{}
}

// mostUnseen is the maximum number of unseen keys. It is larger than the number of events
// in a producer's buffer. At the limit, add forgets all keys; the claim of a forgotten
// key only costs another read.
const mostUnseen = 8192

func (u *unseen) add(id idempotency.KeyID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.ids) >= mostUnseen || u.ids == nil {
		u.ids = map[idempotency.KeyID]struct{}{}
	}
	u.ids[id] = struct{}{}
}

// take reports whether the key is unseen, and forgets the key.
func (u *unseen) take(id idempotency.KeyID) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	_, ok := u.ids[id]
	delete(u.ids, id)
	return ok
}
