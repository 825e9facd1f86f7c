package sqstest

// Deviations from AWS in this file: none.

// indexedHeap is a heap for container/heap. Each member has a field with its index in the
// heap, so any member can be moved or removed. The caller must set the two function fields.
type indexedHeap[T any] struct {
	list   []T
	before func(a, b T) bool

	// index returns a pointer to the member's position in list (notInHeap if outside).
	index func(T) *int
}

// notInHeap is the index of a member outside of the heap.
const notInHeap = -1

func (h *indexedHeap[T]) Len() int           { return len(h.list) }
func (h *indexedHeap[T]) Less(i, j int) bool { return h.before(h.list[i], h.list[j]) }

func (h *indexedHeap[T]) Swap(i, j int) {
	h.list[i], h.list[j] = h.list[j], h.list[i]
	*h.index(h.list[i]), *h.index(h.list[j]) = i, j
}

// Push and Pop implement heap.Interface.
func (h *indexedHeap[T]) Push(x any) {
	*h.index(x.(T)) = len(h.list)
	h.list = append(h.list, x.(T))
}

func (h *indexedHeap[T]) Pop() any {
	last := len(h.list) - 1
	x := h.list[last]
	*h.index(x) = notInHeap
	clear(h.list[last:])
	h.list = h.list[:last]
	return x
}
