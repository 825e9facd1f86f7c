package producertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

func events(n int) []event {
	out := make([]event, n)
	for i := range out {
		out[i] = event{ID: fmt.Sprintf("event-%03d", i), Value: i}
	}
	return out
}

func checkRestart(w *world) error {
	all := events(25)
	first, err := w.begin(1)
	if err != nil {
		return err
	}
	originals := first.SendBatch(first.alive, all)
	if err := errors.Join(originals.Err(), first.stop()); err != nil {
		return fmt.Errorf("the first process: %w", err)
	}
	for i, r := range originals {
		if r.Receipt.Duplicate || r.Receipt.MessageID == "" || r.Receipt.SequenceNumber == "" {
			return fmt.Errorf("event %d is sent for the first time: %+v", i, r.Receipt)
		}
	}
	for _, version := range []int{1, 2} {
		w.pass(pastDeduplication)
		next, err := w.begin(version)
		if err != nil {
			return err
		}
		drifts := version - 1
		for i, r := range next.SendBatch(next.alive, all) {
			if err := checkDuplicate(r, originals[i].Receipt, drifts); err != nil {
				return fmt.Errorf("event %d in a batch, encoder %d: %w", i, version, err)
			}
		}
		r, err := next.send(all[0])
		if err := checkDuplicate(sqsfifo.Result{Receipt: r, Err: err}, originals[0].Receipt, drifts); err != nil {
			return fmt.Errorf("event 0 alone, encoder %d: %w", version, err)
		}
		_, err = next.send(event{ID: all[0].ID, Value: 1e6})
		if conflict := (*sqsfifo.ConflictError)(nil); !errors.As(err, &conflict) {
			return fmt.Errorf("another payload with the same key: got %v, want a ConflictError", err)
		}
		if n := next.requests.Load(); n > 0 {
			return fmt.Errorf("the duplicates made %d requests, want none", n)
		}
		if err := next.stop(); err != nil {
			return err
		}
	}
	if n := len(w.queue.Messages()); n != len(all) {
		return fmt.Errorf("the queue has %d messages of %d events", n, len(all))
	}
	return nil
}

// checkDuplicate checks that r is a duplicate with the data of the original receipt. The
// parameter `findings` is the expected number of findings: 1 if the duplicate has other
// bytes than the original, and otherwise 0.
func checkDuplicate(r sqsfifo.Result, original sqsfifo.Receipt, findings int) error {
	got := r.Receipt
	switch {
	case r.Err != nil:
		return r.Err
	case !got.Duplicate:
		return fmt.Errorf("it is not known as a duplicate: %+v", got)
	case got.MessageID != original.MessageID || got.SequenceNumber != original.SequenceNumber:
		return fmt.Errorf("message %q, number %q; want those of the original, %q and %q", got.MessageID, got.SequenceNumber, original.MessageID, original.SequenceNumber)
	case got.BodyHash != original.BodyHash || got.Group != original.Group || got.EventID != original.EventID:
		return fmt.Errorf("body %s of event %v in group %s; want what is stored: %s, %v, %s", got.BodyHash, got.EventID, got.Group, original.BodyHash, original.EventID, original.Group)
	case len(got.Findings) != findings:
		return fmt.Errorf("%d findings about other bytes, want %d: %v", len(got.Findings), findings, got.Findings)
	}
	return nil
}

// crashed starts a process that sends e and crashes at the given point of the request. It
// returns the process.
func (w *world) crashed(at crashAt, e event) (*process, error) {
	p, err := w.begin(1)
	if err != nil {
		return nil, err
	}
	p.crashes = at
	if r, err := p.send(e); err == nil {
		return nil, fmt.Errorf("a process that crashes has the receipt %+v", r)
	}
	if p.body == "" {
		return nil, errors.New("the process made no request")
	}
	_ = p.stop()
	if n := len(w.queue.Messages()); n != at.stored() {
		return nil, fmt.Errorf("%d messages after the crash, want %d", n, at.stored())
	}
	return p, nil
}

// checkStoredBytes returns a check of two processes that encode the same event
// differently. The first crashes at the given point of its request. The second must send
// the bytes of the first, and the queue must store them once.
func checkStoredBytes(at crashAt) func(*world) error {
	return func(w *world) error { return w.storedBytes(at) }
}

func (w *world) storedBytes(at crashAt) error {
	e := event{ID: "e"}
	first, err := w.crashed(at, e)
	if err != nil {
		return err
	}
	w.pass(pastLease)
	second, err := w.begin(2)
	if err != nil {
		return err
	}
	r, err := second.send(e)
	if err != nil {
		return fmt.Errorf("the next process: %w", err)
	}
	messages := w.queue.Messages()
	if len(messages) != 1 {
		return fmt.Errorf("the queue has %d messages, want 1", len(messages))
	}
	m := messages[0]
	if m.Body != first.body || m.GroupID != first.group {
		return fmt.Errorf("stored is %s in group %s, want %s in group %s", m.Body, m.GroupID, first.body, first.group)
	}
	if r.MessageID != m.MessageID || r.SequenceNumber != m.SequenceNumber || r.BodyHash != sqsfifo.BodyHash(first.body) || r.Group != first.group {
		return fmt.Errorf("the receipt %+v is not that of the message in the queue", r)
	}
	if len(r.Findings) != 1 {
		return fmt.Errorf("%d findings about other bytes, want 1", len(r.Findings))
	}
	if n := len(w.queue.Suppressed()); n != at.stored() {
		return fmt.Errorf("SQS suppressed %d requests, want %d", n, at.stored())
	}
	return second.stop()
}

func checkHeld(w *world) error {
	e := event{ID: "e"}
	if _, err := w.crashed(afterRequest, e); err != nil {
		return err
	}
	w.pass(pastDeduplication)
	second, err := w.begin(1)
	if err != nil {
		return err
	}
	for range 2 {
		r, err := second.send(e)
		var held *idempotency.UnresolvedError
		if !errors.As(err, &held) || sqsfifo.FateOf(err) != sqsfifo.FateInDoubt {
			return fmt.Errorf("got %+v, %v, want an UnresolvedError of an event that is in doubt", r, err)
		}
	}
	if err := second.stop(); err != nil {
		return err
	}
	again, err := w.begin(1, func(c *sqsfifo.StoreConfig) { c.Unresolved = sqsfifo.UnresolvedResend })
	if err != nil {
		return err
	}
	if n := len(w.queue.Messages()); n != 1 {
		return fmt.Errorf("the queue has %d messages, want 1", n)
	}
	if r, err := again.send(e); err != nil || r.Duplicate || len(w.queue.Messages()) != 2 {
		return fmt.Errorf("by choice: got %+v, %v, %d messages; want it sent again", r, err, len(w.queue.Messages()))
	}
	return again.stop()
}

func checkRivals(w *world) error {
	all := events(50)
	var rivals [2]*process
	for i := range rivals {
		var err error
		if rivals[i], err = w.begin(1); err != nil {
			return err
		}
	}
	var results [2]sqsfifo.Results
	var both sync.WaitGroup
	for i, p := range rivals {
		both.Go(func() {
			ctx, cancel := context.WithTimeout(p.alive, time.Minute)
			defer cancel()
			results[i] = p.SendBatch(ctx, all)
		})
	}
	both.Wait()
	for i := range all {
		a, b := results[0][i], results[1][i]
		if err := errors.Join(a.Err, b.Err); err != nil {
			return fmt.Errorf("event %d: %w", i, err)
		}
		if a.Receipt.Duplicate == b.Receipt.Duplicate || a.Receipt.MessageID != b.Receipt.MessageID || a.Receipt.SequenceNumber != b.Receipt.SequenceNumber {
			return fmt.Errorf("event %d: got %+v and %+v, want one original and its duplicate", i, a.Receipt, b.Receipt)
		}
	}
	if n, s := len(w.queue.Messages()), len(w.queue.Suppressed()); n != len(all) || s > 0 {
		return fmt.Errorf("%d messages, and %d that SQS suppressed; want %d and none", n, s, len(all))
	}
	return errors.Join(rivals[0].stop(), rivals[1].stop())
}

func checkOutage(w *world) error {
	known, fresh, open := event{ID: "known"}, event{ID: "fresh"}, event{ID: "open"}
	first, err := w.begin(1)
	if err != nil {
		return err
	}
	stored, err := first.send(known)
	if err := errors.Join(err, first.stop()); err != nil {
		return fmt.Errorf("before the outage: %w", err)
	}
	w.pass(pastDeduplication)
	closed, err := w.begin(1)
	if err != nil {
		return err
	}
	failOpen, err := w.begin(1, func(c *sqsfifo.StoreConfig) { c.FailOpen = true })
	if err != nil {
		return err
	}

	end, err := w.Outage()
	if err != nil {
		return fmt.Errorf("the outage: %w", err)
	}
	ended := sync.OnceFunc(end)
	defer ended()
	for _, e := range []event{known, fresh} {
		ctx, cancel := context.WithTimeout(closed.alive, 2*storeTimeout)
		r, err := closed.Send(ctx, e)
		cancel()
		if sqsfifo.FateOf(err) != sqsfifo.FateInDoubt {
			return fmt.Errorf("%s event, while the store does not answer: got %+v, %v, want an outcome in doubt", e.ID, r, err)
		}
	}
	if n := closed.requests.Load(); n > 0 {
		return fmt.Errorf("%d requests while the store does not answer, want none", n)
	}
	if r, err := failOpen.send(open); err != nil || r.Duplicate || failOpen.Stats().Store.Unclaimed != 1 {
		return fmt.Errorf("with FailOpen: got %+v, %v, %d without a claim, want it sent and counted", r, err, failOpen.Stats().Store.Unclaimed)
	}
	ended()

	// A claim whose answer was lost in the outage may have been granted. Wait until its
	// lease has ended.
	w.pass(pastLease)
	r, err := closed.send(known)
	if err := checkDuplicate(sqsfifo.Result{Receipt: r, Err: err}, stored, 0); err != nil {
		return fmt.Errorf("known event, after the outage: %w", err)
	}
	if r, err := closed.send(fresh); err != nil || r.Duplicate {
		return fmt.Errorf("fresh event, after the outage: got %+v, %v, want it sent", r, err)
	}
	if n := len(w.queue.Messages()); n != 3 {
		return fmt.Errorf("the queue has %d messages, want 3", n)
	}
	return errors.Join(closed.stop(), failOpen.stop())
}
