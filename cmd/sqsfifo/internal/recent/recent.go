// Package recent keeps a value of the caller for each recent message of an event log, at
// least for the time [Kept].
package recent

import "time"

// Kept is the time for which [Messages] keeps a message: the deduplication interval of
// SQS (five minutes), and one minute more.
const Kept = 6 * time.Minute

const inChunk = 4096

// Messages holds a value for each recent message. Messages are numbered from 1 in the order
// of the calls of [Messages.Add].
//
// A value is kept at least until a message is added whose time is more than [Kept] later.
// The zero value is ready for use. Messages is not safe for concurrent use.
type Messages[T any] struct {
	forgotten int // messages dropped so far; the next message is the first in chunks[0]
	chunks    []chunk[T]
}

type chunk[T any] struct {
	values []T
	last   time.Time
}

// Add adds the value of the next message. The first message has the number 1. Messages
// must be added in order of time.
func (m *Messages[T]) Add(at time.Time, value T) {
	if n := len(m.chunks); n == 0 || len(m.chunks[n-1].values) == inChunk {
		for len(m.chunks) > 0 && m.chunks[0].last.Before(at.Add(-Kept)) {
			m.forgotten += inChunk
			m.chunks[0] = chunk[T]{}
			m.chunks = m.chunks[1:]
		}
		m.chunks = append(m.chunks, chunk[T]{values: make([]T, 0, inChunk)})
	}
	c := &m.chunks[len(m.chunks)-1]
	c.values, c.last = append(c.values, value), at
}

// Of returns the value of a message. It returns false if the number is 0, unused or
// forgotten.
func (m *Messages[T]) Of(number int) (value T, ok bool) {
	i := number - 1 - m.forgotten
	if i < 0 || i/inChunk >= len(m.chunks) || i%inChunk >= len(m.chunks[i/inChunk].values) {
		return value, false
	}
	return m.chunks[i/inChunk].values[i%inChunk], true
}
