package sqsfifo

import (
	"fmt"
	"strings"
	"time"
	"unsafe"
)

// NormalizeDataset returns d with the components that take part in its key.
func NormalizeDataset(d Dataset) (Dataset, error) {
	var err error
	if d.ID, err = normalizeDatasetID(d.ID); err != nil {
		return d, err
	}
	if d.Version, err = normalizeVersion(d.Version); err != nil {
		return d, err
	}
	d.SourceURI, err = normalizeURI(d.SourceURI, d.QueryParameters)
	return d, err
}

// EncodeEnvelope returns the body of e.
func EncodeEnvelope[T any](e Envelope[T]) (string, error) { return e.encode() }

// PayloadOf returns the payload as the producer cuts it out of a body.
func PayloadOf(body string) string { return payloadOf(body) }

// SequenceIsAfter compares sequence numbers as the producer does.
func SequenceIsAfter(a, b string) bool { return parseSequence(a).isAfter(parseSequence(b)) }

// AcceptedBefore reads the accept time of a sequence number.
func AcceptedBefore(number string, from, now time.Time) bool {
	return parseSequence(number).acceptedBefore(from, now)
}

// Leftovers says what a closed producer still holds, "" if nothing.
func Leftovers[T any](p *Producer[T]) string {
	s := p.scheduler
	s.mu.Lock()
	defer s.mu.Unlock()
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	d := p.config.Delivery.orDefaults()
	var left []string
	for what, n := range map[string]int{
		"events": s.events, "calls": s.calls, "workers": s.workers, "waiters": len(s.room.waiters),
		"events of the buffer": d.BufferEvents - s.room.events, "bytes of the buffer": d.BufferBytes - s.room.bytes,
		"flushes": s.urgent, "events of the epoch": s.current.events,
	} {
		if n != 0 {
			left = append(left, fmt.Sprint(n, " ", what))
		}
	}
	for _, l := range s.lanes {
		for e := l.head; e != nil; e = e.next {
			if !e.ended {
				left = append(left, "an event in lane "+l.group)
			}
		}
		if l.busy {
			left = append(left, "busy lane "+l.group)
		}
	}
	return strings.Join(left, ", ")
}

// CloseDoor lets a closed producer's buffer still take events, as in the instant
// in which Close has begun.
func CloseDoor[T any](p *Producer[T]) {
	p.scheduler.mu.Lock()
	defer p.scheduler.mu.Unlock()
	p.scheduler.closed = true
}

// Held is how many events the lanes of a producer hold, whatever became of them.
func Held[T any](p *Producer[T]) (n int) {
	p.scheduler.mu.Lock()
	defer p.scheduler.mu.Unlock()
	for _, l := range p.scheduler.lanes {
		for e := l.head; e != nil; e = e.next {
			n++
		}
	}
	return n
}

// Suspend lets the events of a producer have been tried longer ago, by the wall
// clock and not by the monotonic one, as after the machine was suspended. It
// returns how many attempts were made.
func Suspend[T any](p *Producer[T], d time.Duration) (attempts int) {
	p.scheduler.mu.Lock()
	defer p.scheduler.mu.Unlock()
	for _, l := range p.scheduler.lanes {
		for e := l.head; e != nil; e = e.next {
			e.first = e.first.Add(-d)
			// The second word of a time.Time that was read from the clock is the
			// monotonic reading.
			*(*int64)(unsafe.Add(unsafe.Pointer(&e.first), unsafe.Sizeof(uint64(0)))) += int64(d)
			attempts += e.attempts
		}
	}
	return attempts
}
