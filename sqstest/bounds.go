package sqstest

// Deviations from AWS in this file: AWS limits neither the number nor the bytes of the
// messages in a queue. The fake can limit both, and then refuses a send with OverLimit.

import (
	"errors"
	"sync"
	"sync/atomic"
)

// MemoryLimits limits the memory of a [Server]. Zero means no limit. Above a limit, sends and
// CreateQueue are refused with OverLimit, status 403. Moves to and from dead-letter
// queues are never refused.
type MemoryLimits struct {
	// Queues is the largest number of queues at a time.
	Queues int

	// Messages and Bytes limit the total of all queues. The size of a message is the length
	// of its body and its attributes plus 512 bytes.
	//
	// A message counts until its queue is deleted. But a queue with Config.DiscardDeleted
	// forgets its deleted and expired messages before a send is refused.
	Messages int
	Bytes    int64
}

const (
	messageOverhead = 512

	// With Config.DiscardDeleted, these limits bound deleted messages, suppressions and
	// receipt handles.
	maxDeletedBytes    = 32 << 20
	maxSuppressedBytes = 64 << 20
	maxSuppressed      = 100_000
	maxHandles         = 1000 // receipt handles of one message

	// maxReading bounds the bytes of all request bodies that are being read.
	maxReading = 256 << 20
)

// usage counts the messages and bytes in the queues of a server. A nil usage has no
// limits.
type usage struct {
	server *Server
	bounds MemoryLimits
	// sending is locked during a send to any queue, so that parallel sends do not exceed the
	// bounds together. Lock order: sending before the mutexes of queues.
	sending sync.Mutex

	messages, bytes atomic.Int64
	forgotten       atomic.Int64 // deleted messages that queues have forgotten
}

// fits reports whether the additional messages and bytes are within the bounds.
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

// SetMemoryLimits replaces the limits of the server. Messages already in the queues count.
func (s *Server) SetMemoryLimits(b MemoryLimits) {
	u := &usage{server: s, bounds: b}
	s.mu.Lock()
	s.usage = u
	s.mu.Unlock()
	for _, q := range s.Queues() {
		q.countIn(u)
	}
}

// countIn moves the count of the queue's messages from the previous counter to u. From
// now on the queue counts its messages in u. A deleted queue counts nowhere.
func (q *Queue) countIn(u *usage) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.gone.Load() {
		u = nil
	}
	q.usage.Load().add(-int64(len(q.stored)), -q.storedBytes)
	q.usage.Store(u)
	u.add(int64(len(q.stored)), q.storedBytes)
}

// withRoom calls f with q.mu locked. If f returns OverLimit, withRoom makes room, and calls
// f again if any queue has forgotten messages meanwhile. The caller holds no lock.
func withRoom[O any](q *Queue, f func() (O, error)) (O, error) {
	for {
		u := q.usage.Load()
		before := u.countForgotten()
		out, err := locked(q, u, f)
		var full *apiError
		if u == nil || !errors.As(err, &full) || full.class != overLimit {
			return out, err
		}
		u.makeRoom()
		if u.countForgotten() == before && q.usage.Load() == u {
			return out, err
		}
	}
}

// locked calls f with q.mu locked and, if the server has limits, with u.sending locked.
func locked[O any](q *Queue, u *usage, f func() (O, error)) (O, error) {
	if u != nil {
		u.sending.Lock()
		defer u.sending.Unlock()
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return f()
}

// makeRoom removes expired messages from all queues of the server, and forgets deleted
// messages (Config.DiscardDeleted).
func (u *usage) makeRoom() {
	for _, q := range u.server.Queues() {
		q.mu.Lock()
		q.settle(q.now())
		q.forgetDeleted()
		q.mu.Unlock()
	}
}

func (u *usage) countForgotten() int64 {
	if u == nil {
		return 0
	}
	return u.forgotten.Load()
}

// refuseBeyondBounds returns an error if the additional messages and bytes exceed a bound
// of the server. The caller holds q.mu, and calls withRoom around the send.
func (q *Queue) refuseBeyondBounds(messages, bytes int64) *apiError {
	u := q.usage.Load()
	if u.fits(messages, bytes) {
		return nil
	}
	return overLimit.because("The fake is at its bound of %d messages or %d bytes.", u.bounds.Messages, u.bounds.Bytes)
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
