package consumer

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/clock"
)

// visibilityLimit is SQS's limit for the visibility timeout, counted from the receive
// request (F-152).
const visibilityLimit = 12 * time.Hour

// checkEvery is the longest time between two readings of the clock while messages are in
// hand. Timers of package time stop during a suspension of the machine, and the clock of the
// engine does not.
const checkEvery = time.Second

// heartbeat extends each visibility timeout whenever a third of it has passed, and marks
// messages as lost whose timeout ends soon. It also extends the leases of claims, and cancels
// batches held for too long. It runs until the channel `stop` is closed.
func (e *engine) heartbeat(stop <-chan struct{}) {
	timer := time.NewTimer(e.visibility / 6)
	defer timer.Stop()
	var next clock.Instant
	for {
		select {
		case <-stop:
			return
		case <-timer.C:
		}
		now := e.clock.Now()
		wait := checkEvery
		if now >= next {
			next = e.startDueExtensions(now)
			if e.isEmpty() {
				wait = e.visibility / 6
			}
		}
		timer.Reset(min(max(next.Sub(now), time.Millisecond), wait))
	}
}

func (e *engine) isEmpty() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.batches) == 0
}

// startDueExtensions extends, in other goroutines, the visibility timeouts and leases that
// are due for an extension. It returns the time for the next call.
func (e *engine) startDueExtensions(now clock.Instant) (next clock.Instant) {
	e.mu.Lock()
	defer e.mu.Unlock()
	next = now.Add(e.visibility / 6)
	sooner := func(at clock.Instant) { next = min(next, at) }
	var due []*item
	for b := range e.batches {
		if b.state == stateEnding {
			continue
		}
		over := b.received.Add(longestHold)
		if b.state == stateHandling {
			over = min(over, b.calledAt.Add(e.maxHold-b.calledFor))
		}
		if now >= over {
			b.cancel(ErrHeldTooLong)
		} else {
			sooner(over)
		}
		for i := 0; i < len(b.items); i++ {
			it := b.items[i]
			e.checkLease(it, now)
			if it.visibilityLost {
				break
			}
			sooner(e.lossAt(it))
			if it.changing || it.deleting || e.extension(it, now) < time.Second {
				continue
			}
			if at := max(it.visibleAt.Add(-e.visibility*2/3), it.extendAfter); at > now.Add(e.visibility/12) {
				sooner(at)
			} else {
				due = append(due, it)
			}
		}
		if len(b.items) > 0 {
			e.renewClaim(e.base, b.items[0], now)
		}
	}
	slices.SortFunc(due, func(a, b *item) int {
		// Sequence numbers are decimal numbers, so a longer number is larger.
		return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(len(a.sequence), len(b.sequence)), cmp.Compare(a.sequence, b.sequence))
	})
	for batch := range slices.Chunk(due, 10) {
		for _, it := range batch {
			it.changing = true
		}
		e.calls.Add(1)
		go e.extend(slices.Clone(batch))
	}
	return next
}

// lossAt returns when a message counts as lost, because its visibility timeout ends soon.
func (e *engine) lossAt(it *item) clock.Instant { return it.visibleAt.Add(-e.margin()) }

// checkLease marks a message as lost if its visibility timeout has ended or ends soon. The
// caller holds e.mu.
func (e *engine) checkLease(it *item, now clock.Instant) {
	if !it.visibilityLost && it.visibleAt != 0 && now >= e.lossAt(it) {
		e.markLost(it)
	}
}

// mayStart reports whether the handler may start for the first message of a batch. After a
// stop of the process or a suspension of the machine, the message may be lost although no
// heartbeat has noticed it yet.
func (e *engine) mayStart(it *item) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.checkLease(it, e.clock.Now())
	return !it.visibilityLost
}

// renewClaim extends the lease of an item's claim in a separate goroutine, if due. If
// another consumer has claimed the key, the handler's context ends.
func (e *engine) renewClaim(ctx context.Context, it *item, now clock.Instant) {
	c := &it.claim
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.granted || c.renewing || now < c.renewAt {
		return
	}
	c.renewing = true
	e.calls.Add(1)
	go func() {
		defer e.calls.Done()
		err := e.events.renew(ctx, it)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.renewing = false
		c.renewAt = e.clock.Now().Add(e.visibility / 3)
		switch {
		case err == nil || !c.granted:
		case errors.Is(err, idempotency.ErrStaleClaim):
			it.batch.cancel(ErrLost)
		default:
			c.renewAt = e.clock.Now().Add(e.visibility / 20)
		}
	}()
}

// keepClaim extends the lease of an item's claim until the returned function is called.
func (e *engine) keepClaim(ctx context.Context, it *item) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for clock.Sleep(ctx, min(e.visibility/6, checkEvery)) == nil {
			e.renewClaim(ctx, it, e.clock.Now())
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// extension returns the new visibility timeout of a message in whole seconds, within
// visibilityLimit.
func (e *engine) extension(it *item, now clock.Instant) time.Duration {
	return min(e.visibility, it.received.Add(visibilityLimit).Sub(now)-time.Second).Truncate(time.Second)
}

// extend extends the visibility timeouts of up to ten items in one call. The caller has
// set item.changing for each item.
func (e *engine) extend(batch []*item) {
	defer e.calls.Done()
	started := e.clock.Now()
	asked := make([]time.Duration, len(batch))
	entries := make([]types.ChangeMessageVisibilityBatchRequestEntry, len(batch))
	for i, it := range batch {
		asked[i] = e.extension(it, started)
		entries[i] = visibilityEntry(i, it, asked[i])
	}
	results := e.change(entries)
	e.mu.Lock()
	defer e.mu.Unlock()
	defer e.cond.Broadcast()
	for i, it := range batch {
		it.changing = false
		switch {
		case it.removed || it.visibilityLost:
		case results[i] == changed:
			it.visibleAt = started.Add(asked[i])
		case results[i] == expired && !it.deleting:
			e.markLost(it)
		default:
			it.extendAfter = e.clock.Now().Add(e.visibility / 20)
		}
	}
}

func visibilityEntry(i int, it *item, d time.Duration) types.ChangeMessageVisibilityBatchRequestEntry {
	return types.ChangeMessageVisibilityBatchRequestEntry{
		Id: aws.String(strconv.Itoa(i)), ReceiptHandle: it.raw.ReceiptHandle, VisibilityTimeout: int32(d / time.Second), // #nosec G115 -- at most 12 h
	}
}

// changeResult is the answer for one entry of a batch. The zero value means no answer.
type changeResult uint8

const (
	noAnswer changeResult = iota
	changed
	expired
	denied
)

// change makes one ChangeMessageVisibilityBatch call and returns the result of each
// entry.
func (e *engine) change(entries []types.ChangeMessageVisibilityBatchRequestEntry) []changeResult {
	results := make([]changeResult, len(entries))
	ctx, cancel := context.WithTimeout(e.base, min(callTimeout, e.visibility/3))
	defer cancel()
	out, err := called(e.client.ChangeMessageVisibilityBatch, ctx, &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &e.queueURL, Entries: entries})
	if err != nil {
		if code, _ := codeOf(err); isDenied(code) {
			e.fail(&DeniedError{Operation: "ChangeMessageVisibilityBatch", Code: code, Err: err})
		}
		return results
	}
	for _, s := range out.Successful {
		if i, ok := entryIndex(s.Id, len(entries)); ok {
			results[i] = changed
		}
	}
	for _, f := range out.Failed {
		if i, ok := entryIndex(f.Id, len(entries)); ok && isExpired(aws.ToString(f.Code), f.SenderFault) {
			results[i] = expired
		}
	}
	return results
}

func entryIndex(id *string, n int) (int, bool) {
	i, err := strconv.Atoi(aws.ToString(id))
	return i, err == nil && i >= 0 && i < n
}

// release makes the messages of a batch from the index `from` visible, the last message
// first. Another consumer can receive the group as soon as its first message is visible.
func (e *engine) release(b *groupBatch, from int) {
	e.mu.Lock()
	// In a shutdown, first wait for all receives. An interrupted receive is repeated, and
	// could return the messages released here.
	for e.isClosing() && e.receivers > 0 || slices.ContainsFunc(b.items[from:], func(it *item) bool { return it.changing || it.deleting }) {
		if isClosed(e.dead) {
			break
		}
		e.cond.Wait()
	}
	if isClosed(e.dead) { // the time of the shutdown is over: no call may begin
		e.mu.Unlock()
		return
	}
	var left []*item
	for _, it := range slices.Backward(b.items[from:]) {
		if !it.visibilityLost {
			left = append(left, it)
		}
	}
	e.mu.Unlock()
	for try := 1; len(left) > 0; try++ {
		entries := make([]types.ChangeMessageVisibilityBatchRequestEntry, len(left))
		for i, it := range left {
			entries[i] = visibilityEntry(i, it, 0)
		}
		results := e.change(entries)
		var again []*item
		e.mu.Lock()
		for i, it := range left {
			switch results[i] {
			case noAnswer:
				again = append(again, it)
				continue
			case changed:
				e.stats.Released++
			default:
				e.markLost(it)
			}
			e.drop(it)
		}
		e.mu.Unlock()
		left = again
		if len(left) == 0 || try == 8 || clock.Sleep(e.base, backoff(50*time.Millisecond, time.Second, try)) != nil {
			break
		}
	}
	if len(left) > 0 {
		e.mu.Lock()
		now := e.clock.Now()
		maps.DeleteFunc(e.unreleased, func(_ string, until clock.Instant) bool { return until <= now })
		e.unreleased[b.group] = now.Add(e.visibility)
		e.mu.Unlock()
	}
}
