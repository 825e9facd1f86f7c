package consumer

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

const (
	mostDeletes = 16

	// linger is how long a delete waits for other deletes while handlers run, so that one
	// call deletes several messages.
	linger = 10 * time.Millisecond
)

// deleteOne deletes a message, with retries until SQS confirms the delete. It returns
// false if the consumer loses the message, SQS denies the delete, or the time of the
// shutdown is over.
func (e *engine) deleteOne(it *item) bool {
	d := &deletion{item: it, done: make(chan bool, 1)}
	e.mu.Lock()
	e.queue = append(e.queue, d)
	e.flush(false)
	e.mu.Unlock()
	select {
	case deleted := <-d.done:
		return deleted
	case <-e.dead:
		return false
	}
}

// flush starts a DeleteMessageBatch call for each ten waiting deletes. For fewer deletes it
// starts a call only if the parameter `now` is true or no further delete is expected soon.
// At most mostDeletes calls run concurrently. The caller holds e.mu.
func (e *engine) flush(now bool) {
	if e.stopped {
		return
	}
	e.queue = slices.DeleteFunc(e.queue, func(d *deletion) bool {
		// Give up a lost message after one attempt: SQS may no longer accept the delete.
		if lost := d.item.visibilityLost && d.try > 0; lost {
			d.done <- false
			return true
		}
		return false
	})
	// Running handlers, waiting batches and running delete calls may lead to more deletes.
	noneExpected := e.count[stateHandling]+e.count[stateWaiting]+e.deleting == 0
	for e.deleting < mostDeletes && (len(e.queue) >= 10 || len(e.queue) > 0 && (now || noneExpected)) {
		n := min(10, len(e.queue))
		batch := slices.Clone(e.queue[:n])
		e.queue = slices.Delete(e.queue, 0, n)
		for _, d := range batch {
			d.item.deleting = true
		}
		e.deleting++
		e.calls.Add(1)
		go e.deleteBatch(batch)
	}
	if len(e.queue) > 0 && e.timer == nil {
		e.timer = time.AfterFunc(linger, func() {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.timer = nil
			e.flush(true)
		})
	}
}

func (e *engine) deleteBatch(batch []*deletion) {
	defer e.calls.Done()
	entries := make([]types.DeleteMessageBatchRequestEntry, len(batch))
	for i, d := range batch {
		entries[i] = types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: d.item.raw.ReceiptHandle}
	}
	results := e.callDelete(entries)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.deleting--
	for i, d := range batch {
		d.item.deleting = false
		switch results[i] {
		case changed:
			d.item.removed = true
			d.done <- true
		case expired:
			if !d.item.visibilityLost {
				e.markLost(d.item)
			}
			d.done <- false
		case denied:
			d.done <- false
		default:
			d.try++
			e.stats.DeleteRetries++
			time.AfterFunc(backoff(50*time.Millisecond, 2*time.Second, d.try), func() {
				e.mu.Lock()
				defer e.mu.Unlock()
				e.queue = append(e.queue, d)
				e.flush(true)
			})
		}
	}
	e.cond.Broadcast()
	e.flush(false)
}

// callDelete makes one DeleteMessageBatch call and returns the result of each entry.
func (e *engine) callDelete(entries []types.DeleteMessageBatchRequestEntry) []changeResult {
	results := make([]changeResult, len(entries))
	ctx, cancel := context.WithTimeout(e.base, callTimeout)
	defer cancel()
	began, ok := e.pace(ctx, &e.deletePace)
	if !ok {
		return results
	}
	out, err := called(e.client.DeleteMessageBatch, ctx, &sqs.DeleteMessageBatchInput{QueueUrl: &e.queueURL, Entries: entries})
	e.reportCall(&e.deletePace, began, err)
	if err != nil {
		if code, _ := codeOf(err); isDenied(code) {
			e.fail(&DeniedError{Operation: "DeleteMessageBatch", Code: code, Err: err})
			for i := range results {
				results[i] = denied
			}
		}
		return results
	}
	for _, s := range out.Successful {
		if i, ok := entryIndex(s.Id, len(entries)); ok {
			results[i] = changed
		}
	}
	for _, f := range out.Failed {
		i, ok := entryIndex(f.Id, len(entries))
		switch code := aws.ToString(f.Code); {
		case !ok:
		case isExpired(code, f.SenderFault):
			results[i] = expired
		case isDenied(code):
			results[i] = denied
			e.fail(&DeniedError{Operation: "DeleteMessageBatch", Code: code, Err: entryError{code, aws.ToString(f.Message)}})
		}
	}
	return results
}

// entryError is SQS's refusal of an entry.
type entryError struct{ code, message string }

func (e entryError) Error() string { return e.code + ": " + e.message }
