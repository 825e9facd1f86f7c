package httpidem

import (
	"errors"
	"sync/atomic"
)

var errNoMemory = errors.New("httpidem: the memory for buffered bodies is used up")

// budget counts the bytes still free for buffering.
type budget struct {
	free atomic.Int64
}

func newBudget(n int64) *budget {
	b := new(budget)
	b.free.Store(n)
	return b
}

// take takes n bytes, or takes none and returns false.
func (b *budget) take(n int64) bool {
	for {
		free := b.free.Load()
		if n > free {
			return false
		}
		if b.free.CompareAndSwap(free, free-n) {
			return true
		}
	}
}

// buffer holds bytes whose memory was reserved in the budget. The field `reserved` is the
// number of reserved bytes; cap(data) never exceeds it.
type buffer struct {
	budget   *budget
	reserved int64
	data     []byte
}

// reserve takes n more bytes of budget.
func (b *buffer) reserve(n int64) bool {
	if !b.budget.take(n) {
		return false
	}
	b.reserved += n
	return true
}

// Write appends all of p, or appends no bytes and returns errNoMemory.
func (b *buffer) Write(p []byte) (int, error) {
	need := int64(len(b.data)) + int64(len(p))
	// Double the reserved bytes, to avoid frequent copies. If twice the bytes are too few,
	// or too many for the budget, reserve exactly the needed bytes.
	if need > b.reserved && (2*b.reserved < need || !b.reserve(b.reserved)) && !b.reserve(need-b.reserved) {
		return 0, errNoMemory
	}
	if need > int64(cap(b.data)) {
		grown := make([]byte, len(b.data), min(max(need, 2*int64(cap(b.data)), 512), b.reserved))
		copy(grown, b.data)
		b.data = grown
	}
	b.data = append(b.data, p...)
	return len(p), nil
}

// release returns all reserved bytes to the budget. The caller must no longer use data.
func (b *buffer) release() {
	b.data = nil
	b.budget.free.Add(b.reserved)
	b.reserved = 0
}
