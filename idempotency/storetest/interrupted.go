package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// checkCancellation cancels contexts before and during each call, at random points, and
// repeats the call until an answer arrives.
func checkCancellation(p *probe) {
	ended, cancel := context.WithCancel(p.ctx)
	cancel()
	k := p.key()
	if _, err := p.store.Claim(ended, claim(k)); !errors.Is(err, context.Canceled) {
		p.fail("claim with a context that has ended: got %v, want context.Canceled", err)
	}
	if _, err := p.store.Lookup(ended, k); !errors.Is(err, context.Canceled) {
		p.fail("lookup with a context that has ended: got %v, want context.Canceled", err)
	}
	if r := p.lookup(k); r.Status != idempotency.StatusAbsent {
		p.fail("a claim whose context had ended before was made: the record is %v", r.Status)
	}

	start := time.Now()
	p.do(claim(p.key()), idempotency.DecisionNew, "claim")
	took := time.Since(start)
	var wg sync.WaitGroup
	for w := range 16 {
		seed := p.rng.Uint64()
		wg.Go(func() {
			for i := range 12 {
				p.interrupt(idempotency.Key{Scope: "cancel", Operation: "op", Value: fmt.Sprint(p.seed, w, i)}, time.Duration(seed>>uint(4*i))%(2*took+1))
			}
		})
	}
	wg.Wait()
}

// interrupt claims the key k and ends the claim with a result. It tries each of the two
// calls until an answer arrives, at most four times. The contexts of the first three tries
// end after the parameter `delay`.
func (p *probe) interrupt(k idempotency.Key, delay time.Duration) {
	call := func(f func(context.Context) error) (attempts int, err error) {
		for attempts = 1; ; attempts++ {
			ctx, cancel := p.ctx, context.CancelFunc(func() {})
			if attempts < 4 {
				ctx, cancel = context.WithTimeout(p.ctx, delay)
			}
			if err = f(ctx); attempts == 4 || err == nil {
				cancel()
				return attempts, err
			}
			expired := ctx.Err() != nil
			cancel()
			if !expired {
				return attempts, err
			}
			if !errors.Is(err, context.DeadlineExceeded) {
				p.fail("a call whose context ended: got %v, want an error that wraps context.DeadlineExceeded", err)
			}
		}
	}
	c := claim(k)
	var out idempotency.Outcome
	attempts, err := call(func(ctx context.Context) (err error) { out, err = p.store.Claim(ctx, c); return err })
	switch {
	case err != nil:
		p.fail("claim after %d attempts: %v", attempts, err)
		return
	case out.Decision != idempotency.DecisionNew && (attempts == 1 || out.Decision != idempotency.DecisionRenewed):
		p.fail("claim after %d attempts with one token: got %v, want new or renewed", attempts, out.Decision)
		return
	}
	if attempts, err = call(func(ctx context.Context) error { return p.store.Finish(ctx, out.Ref(), idempotency.Completed(stored)) }); err != nil {
		p.fail("complete after %d attempts: %v", attempts, err)
	}
	if dup, err := p.store.Claim(p.ctx, claim(k)); err != nil || dup.Decision != idempotency.DecisionDuplicate {
		p.fail("claim after a completion of %d attempts: got %v, %v, want duplicate", attempts, dup.Decision, err)
	}
}

func checkReopening(p *probe) {
	// Two stores over one storage see each other's changes immediately.
	second := p.open()
	k := p.key()
	out := p.do(claim(k), idempotency.DecisionNew, "claim")
	if o, err := second.Claim(p.ctx, claim(k)); err != nil || o.Decision != idempotency.DecisionInProgress {
		p.fail("a claim through another store: got %v, %v, want in progress", o.Decision, err)
	}
	p.must(second.Finish(p.ctx, out.Ref(), idempotency.Completed(stored)), "completion through another store")
	p.do(claim(k), idempotency.DecisionDuplicate, "claim after another store's completion")
	if p.Volatile {
		return
	}
	var keys []idempotency.Key
	var before []idempotency.Record
	last := map[idempotency.Key]int64{}
	given := map[int64]bool{}
	for name := range states {
		k := p.key()
		out := states[name](p, k)
		last[k], given[out.Record.Fence] = out.Record.Fence, true
		keys, before = append(keys, k), append(before, p.lookup(k))
	}
	p.close()
	p.store = p.open()
	after, err := p.store.Lookup(p.ctx, keys...)
	p.must(err, "lookup")
	for i := range keys {
		if before[i].Expired(after[i].ReadAt) && after[i].Status == idempotency.StatusAbsent {
			continue // a store may delete an expired record
		}
		if !before[i].Equal(after[i]) {
			p.fail("reopened: the record %+v became %+v", before[i], after[i])
		}
	}
	for _, k := range keys {
		out, err := p.store.Claim(p.ctx, claim(k))
		switch {
		case err != nil:
			p.fail("reopened: claim: %v", err)
		case !out.Decision.Granted():
		case out.Record.Fence <= last[k]:
			p.fail("reopened: fence %d was given after fence %d of the same key", out.Record.Fence, last[k])
		case given[out.Record.Fence]:
			p.fail("reopened: fence %d was given to another key before", out.Record.Fence)
		default:
			given[out.Record.Fence] = true
		}
	}
}
