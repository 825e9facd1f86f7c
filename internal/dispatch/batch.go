package dispatch

import (
	"container/heap"
	"math/rand/v2"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
)

const (
	// firstBackoff is the wait after the second attempt in a row that failed; it
	// doubles up to mostBackoff. After the first there is none: most failures strike
	// once, and a service in trouble is what pacing is for.
	firstBackoff = 10 * time.Millisecond
	mostBackoff  = 5 * time.Second
)

// backoff returns the wait after so many failed attempts in a row, jittered so
// that many producers do not come back at once.
func backoff(failures uint8) time.Duration {
	if failures <= 1 {
		return 0
	}
	d := mostBackoff
	if failures < 11 {
		d = min(firstBackoff<<(failures-2), mostBackoff)
	}
	return d/2 + rand.N(d/2) // #nosec G404 -- timing only, never part of a message
}

// batch is what one worker sends at a time.
type batch[M any] struct {
	lanes      []*lane[M] // busy until the answer
	items      []*Item[M] // those of one lane side by side
	admissions []Admission
	going      []*Item[M] // those of items that were admitted
	answers    []attempt.Answer
	size       int
	began      time.Time
}

// newBatch returns an empty batch.
func (d *Dispatcher[M]) newBatch() *batch[M] {
	n := len(d.idlers)
	if n == 0 {
		return &batch[M]{
			items:      make([]*Item[M], 0, maxEntries),
			admissions: make([]Admission, maxEntries),
			going:      make([]*Item[M], 0, maxEntries),
			answers:    make([]attempt.Answer, maxEntries),
		}
	}
	b := d.idlers[n-1]
	d.idlers = d.idlers[:n-1]
	return b
}

// reuse keeps a batch for the next request. It holds on to nothing meanwhile.
func (d *Dispatcher[M]) reuse(b *batch[M]) {
	clear(b.lanes)
	clear(b.items)
	clear(b.going)
	clear(b.answers)
	clear(b.admissions)
	b.lanes, b.items, b.going, b.size = b.lanes[:0], b.items[:0], b.going[:0], 0
	d.idlers = append(d.idlers, b)
}

// schedule puts a lane that is neither busy nor queued where it belongs.
func (d *Dispatcher[M]) schedule(l *lane[M], now time.Time) {
	switch {
	case l.notBefore.After(now):
		l.queued = true
		heap.Push(&d.delayed, l)
	case d.trim(l, now):
		l.readySince = now
		d.ready.push(l)
	default:
		d.drop(l)
	}
}

// trim ends the items at the front of a lane that will not be sent, and reports
// whether the lane has one to send.
func (d *Dispatcher[M]) trim(l *lane[M], now time.Time) bool {
	for {
		it := l.firstWaiting()
		if it == nil {
			return false
		}
		reason, by, stop := d.stopped(it, now)
		if !stop {
			return true
		}
		it.Outcome.By = by
		d.end(it, reason, now)
		d.leave(l)
	}
}

// stopped reports whether an item ends without another attempt, and why.
func (d *Dispatcher[M]) stopped(it *Item[M], now time.Time) (why Reason, by *Pause, stop bool) {
	if it.Refused {
		return Refused, nil, true
	}
	if p := d.pauseOf(it.Group, now); p != nil && p.Key != it.Key {
		return Paused, p, true
	}
	if it.Call != nil {
		if p := it.Call.stopped[it.Group]; p != nil && p.Key != it.Key {
			return Paused, p, true
		}
	}
	// It waited for its turn until the time for retries was over.
	return Answered, nil, it.attempts > 0 && now.Sub(d.began)-it.first >= d.options.RetryFor
}

// isFull reports whether the ready lanes fill a request.
func (d *Dispatcher[M]) isFull() bool {
	entries, bytes := 0, 0
	for l := d.ready.head; l != nil; l = l.next {
		of := 0
		for it := l.head; it != nil && of < d.options.PerGroup; it = it.next {
			if it.phase != waiting {
				continue
			}
			if bytes += it.Size; bytes > maxBytes {
				return true
			}
			of++
			if entries++; entries == maxEntries {
				return true
			}
		}
	}
	return false
}

// take makes a batch of the ready lanes, or returns nil where none had anything
// to send.
func (d *Dispatcher[M]) take(now time.Time) *batch[M] {
	var b *batch[M]
	d.requests++
	for d.ready.head != nil {
		l := d.ready.pop()
		if !d.trim(l, now) {
			d.drop(l)
			continue
		}
		if b == nil {
			b = d.newBatch()
		}
		if !d.fill(b, l, now) {
			d.ready.pushFront(l)
			break
		}
		l.busy = true
		b.lanes = append(b.lanes, l)
	}
	return b
}

// fill adds the first waiting item of a lane to the batch, and as many of those
// that follow it as may share the request. It reports whether it added one.
func (d *Dispatcher[M]) fill(b *batch[M], l *lane[M], now time.Time) bool {
	most := maxEntries
	for _, it := range b.items {
		most = it.atMost(most)
	}
	first := len(b.items)
	for it := l.firstWaiting(); it != nil && len(b.items)-first < d.options.PerGroup; it = it.next {
		if it.phase != waiting {
			continue
		}
		most = it.atMost(most)
		if len(b.items) >= most || len(b.items) > 0 && b.size+it.Size > maxBytes {
			break
		}
		if len(b.items) > first {
			// The first alone may be the one that ends a pause, and a second copy of an
			// event waits for the outcome of the first.
			if d.pauses[l.group] != nil || it.Refused || it.Call != nil && it.Call.stopped[l.group] != nil || contains(b.items[first:], it.Key) {
				break
			}
		}
		b.items = append(b.items, it)
		b.size += it.Size
	}
	for _, it := range b.items[first:] {
		if it.attempts == 0 {
			it.first = now.Sub(d.began)
		}
		it.attempts++
		it.request = d.requests
		it.phase = flying
	}
	return len(b.items) > first
}

// atMost returns how many entries a request with the item may have.
func (it *Item[M]) atMost(most int) int {
	if it.limit > 0 {
		return min(most, int(it.limit))
	}
	return most
}

func contains[M any](items []*Item[M], key string) bool {
	for _, it := range items {
		if it.Key == key {
			return true
		}
	}
	return false
}

// next returns the batch that may go now, or nil.
func (d *Dispatcher[M]) next(now time.Time) *batch[M] {
	for len(d.delayed) > 0 && !d.delayed[0].notBefore.After(now) {
		l := heap.Pop(&d.delayed).(*lane[M])
		l.queued = false
		d.schedule(l, now)
	}
	for d.mayCall(now) && d.pacer.Wait(now) == 0 {
		b := d.take(now)
		if b == nil {
			continue // the ready list is empty now
		}
		b.began = now
		d.calls++
		d.pacer.Start(now)
		return b
	}
	return nil
}

// mayCall reports whether there is something to send and no reason to wait for
// more.
func (d *Dispatcher[M]) mayCall(now time.Time) bool {
	if d.ready.head == nil || d.calls >= d.options.InFlight {
		return false
	}
	return d.calls == 0 || d.urgent > 0 || d.closed || !d.ready.head.readySince.Add(d.options.Linger).After(now) || d.isFull()
}

// pump starts a worker for each batch that may go and a teller for outcomes, and
// sets the timer for what has to wait.
func (d *Dispatcher[M]) pump(now time.Time) {
	for b := d.next(now); b != nil; b = d.next(now) {
		d.workers++
		go d.work(b)
	}
	d.tellSoon()
	d.arm(now)
}

// arm sets the timer for the next retry, linger or pacing deadline.
func (d *Dispatcher[M]) arm(now time.Time) {
	var at time.Time
	if len(d.delayed) > 0 {
		at = d.delayed[0].notBefore
	}
	if d.ready.head != nil && d.calls < d.options.InFlight {
		ready := d.ready.head.readySince.Add(d.options.Linger)
		if wait := d.pacer.Wait(now); wait > 0 {
			ready = now.Add(wait)
		}
		if at.IsZero() || ready.Before(at) {
			at = ready
		}
	}
	if at.Equal(d.wakeAt) {
		return
	}
	d.wakeAt = at
	switch {
	case at.IsZero():
		d.timer.Stop()
	case d.timer == nil:
		d.timer = time.AfterFunc(at.Sub(now), d.wake)
	default:
		d.timer.Reset(at.Sub(now))
	}
}

func (d *Dispatcher[M]) wake() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wakeAt = time.Time{}
	d.pump(time.Now())
}
