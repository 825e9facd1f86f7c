package sqstest

// Deviations from AWS in this file: AWS bounds neither the messages nor the bytes of
// a queue. The refusal is OverLimit, AWS's error for its own limits.

import (
	"sync/atomic"
)

// Bounds limits what a [Server] keeps in memory. A zero is no limit. Beyond a limit,
// sends and CreateQueue are refused with OverLimit, status 403; moves to and from
// dead-letter queues are not.
type Bounds struct {
	// Queues is the most queues at a time.
	Queues int

	// Messages and Bytes are the most that all queues hold together. A message counts
	// its body, its attributes and 512 bytes, from its arrival until it is forgotten:
	// with Config.DiscardDeleted soon after it was deleted, without when its queue is
	// deleted.
	Messages int
	Bytes    int64

	// DiscardDeleted is Config.DiscardDeleted for the queues that CreateQueue makes.
	DiscardDeleted bool
}

const (
	messageOverhead = 512

	// What a queue with Config.DiscardDeleted may hold of what nobody needs any more.
	maxDeletedBytes    = 32 << 20
	maxSuppressedBytes = 64 << 20
	maxSuppressed      = 100_000
	maxHandles         = 1000 // of a message that is received again and again

	// maxReading is what the bodies of all requests may take that are being read.
	maxReading = 256 << 20
)

// usage is what the queues of a server hold. A nil usage has no limits.
type usage struct {
	bounds          Bounds
	messages, bytes atomic.Int64
}

// fits reports whether so much more is within the bounds.
func (u *usage) fits(messages, bytes int64) bool {
	if u == nil {
		return true
	}
	b := u.bounds
	return (b.Messages == 0 || u.messages.Load()+messages <= int64(b.Messages)) && (b.Bytes == 0 || u.bytes.Load()+bytes <= b.Bytes)
}

func (u *usage) add(messages, bytes int64) {
	if u != nil {
		u.messages.Add(messages)
		u.bytes.Add(bytes)
	}
}

// SetBounds limits what the server keeps, in place of earlier bounds. What the queues
// hold already counts.
func (s *Server) SetBounds(b Bounds) {
	u := &usage{bounds: b}
	s.mu.Lock()
	s.usage = u
	s.mu.Unlock()
	for _, q := range s.all() {
		q.countIn(u)
	}
}

// countIn lets the queue's messages count in u and no longer where they did.
func (q *Queue) countIn(u *usage) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.usage.add(-int64(len(q.stored)), -q.storedBytes)
	q.usage = u
	q.usage.add(int64(len(q.stored)), q.storedBytes)
}

// admit refuses a send for which there is no room. It needs q.mu.
func (q *Queue) admit(messages, bytes int64) *apiError {
	if q.usage.fits(messages, bytes) {
		return nil
	}
	q.forgetDeleted()
	if q.usage.fits(messages, bytes) {
		return nil
	}
	return overLimit.because("The fake is at its bound of %d messages or %d bytes.", q.usage.bounds.Messages, q.usage.bounds.Bytes)
}

func (m *message) size() int64 {
	return int64(len(m.Body)+attributesSize(m.Attributes)) + messageOverhead
}

func (p outgoing) size() int64 {
	return int64(len(*p.MessageBody)+attributesSize(p.attributes)) + messageOverhead
}

func (s Suppression) size() int64 {
	return int64(len(s.Body)+attributesSize(s.Attributes)) + messageOverhead
}
