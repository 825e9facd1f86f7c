// Package recent remembers the recent messages of an event log, at least for the time
// [Kept]. The caller chooses the value stored for a message, such as its place in a file.
package recent

import "time"

// Kept is the time for which [Messages] keeps a message: the deduplication interval of
// SQS (five minutes), and one minute more.
const Kept = 6 * time.Minute

const inChunk = 4096

// Messages holds a value for each recent message. Messages are numbered from 1 in the order
// of the calls of [Messages.Add].
//
// Add may drop the values of messages that are more than [Kept] older than the added message.
// The zero value is ready for use. Messages is not safe for concurrent use.
type Messages[T any] struct {
	dropped int // number of dropped messages; chunks begins with message dropped+1
	chunks  []chunk[T]
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
			m.dropped += inChunk
			m.chunks[0] = chunk[T]{}
			m.chunks = m.chunks[1:]
		}
		m.chunks = append(m.chunks, chunk[T]{values: make([]T, 0, inChunk)})
	}
	c := &m.chunks[len(m.chunks)-1]
	c.values, c.last = append(c.values, value), at
}

// Of returns the value of a message. It returns false if the number is 0 or unused, or if
// the value was dropped.
func (m *Messages[T]) Of(number int) (value T, ok bool) {
	i := number - 1 - m.dropped
	if i < 0 || i/inChunk >= len(m.chunks) || i%inChunk >= len(m.chunks[i/inChunk].values) {
		return value, false
	}
	return m.chunks[i/inChunk].values[i%inChunk], true
}
