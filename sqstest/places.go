package sqstest

// Deviations from AWS in this file: none.

// places is a heap for container/heap whose members know their place in it, so
// that one in the middle can be moved or removed. The zero value lacks its two
// functions.
type places[T any] struct {
	list   []T
	before func(a, b T) bool

	// place is where a member keeps its index in list, notHidden while it has none.
	place func(T) *int
}

func (p *places[T]) Len() int           { return len(p.list) }
func (p *places[T]) Less(i, j int) bool { return p.before(p.list[i], p.list[j]) }

func (p *places[T]) Swap(i, j int) {
	p.list[i], p.list[j] = p.list[j], p.list[i]
	*p.place(p.list[i]), *p.place(p.list[j]) = i, j
}

// Push and Pop are for container/heap.
func (p *places[T]) Push(x any) {
	*p.place(x.(T)) = len(p.list)
	p.list = append(p.list, x.(T))
}

func (p *places[T]) Pop() any {
	last := len(p.list) - 1
	x := p.list[last]
	*p.place(x) = notHidden
	clear(p.list[last:])
	p.list = p.list[:last]
	return x
}
