package storetest

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// claimable lists the states of a key in which exactly one of many racing claims must be
// granted.
var claimable = []string{"nothing", "released", "failed", "running, lease over, safe", "succeeded, expired"}

// checkRaces runs 64 goroutines that each claim the same 50 keys, through three stores.
// Each key must be granted exactly once.
func checkRaces(p *probe) {
	const keys, claimers = 50, 64
	all := make([]idempotency.Key, keys)
	for i := range all {
		all[i] = p.key()
	}
	p.prepare(all)
	stores := []idempotency.Store{p.store, p.open(), p.open()}
	var wins [keys]atomic.Int64
	var wg sync.WaitGroup
	for w := range claimers {
		order := p.rng.Perm(keys)
		wg.Go(func() {
			for _, i := range order {
				out, err := stores[w%len(stores)].Claim(p.ctx, claim(all[i]))
				switch {
				case err != nil:
					p.fail("claim: %v", err)
				case out.Decision.Granted():
					wins[i].Add(1)
				case out.Decision != idempotency.DecisionInProgress:
					p.fail("a racing claim over %s: got %v, want one grant, and InProgress for the others", claimable[i%len(claimable)], out.Decision)
				}
			}
		})
	}
	wg.Wait()
	for i := range all {
		if w := wins[i].Load(); w != 1 {
			p.fail("%d claimers raced for a key with %s: %d were granted, want 1", claimers, claimable[i%len(claimable)], w)
		}
	}
}

// prepare brings the keys into the states listed in claimable, in turn. One wait at the
// end lets all short leases and TTLs expire.
func (p *probe) prepare(keys []idempotency.Key) {
	for i, k := range keys {
		c := claim(k)
		if name := claimable[i%len(claimable)]; name == "nothing" {
			continue
		} else if name == "running, lease over, safe" {
			c.Terms.Lease, c.Terms.ResendFor = p.short(), 24*long
		} else if name == "succeeded, expired" {
			c.Terms.Lease, c.Terms.TTL = p.short(), p.short()
		}
		out := p.do(c, idempotency.DecisionNew, "first claim")
		switch claimable[i%len(claimable)] {
		case "released":
			p.must(release(p, out.Ref()), "release")
		case "failed":
			p.must(fail(idempotency.ProofForClaim)(p, out.Ref()), "fail")
		case "succeeded, expired":
			p.must(complete(p, out.Ref()), "complete")
		}
	}
	p.pass()
}

func checkBatches(p *probe) {
	a, b, c := p.key(), p.key(), p.key()
	states["succeeded"](p, b)
	again := claim(a)
	batch := []idempotency.Claim{
		claim(a), claim(b), claim(a), again, with(a, func(c *idempotency.Claim) { c.Fingerprint = fingerprint("another") }),
		with(c, func(c *idempotency.Claim) { c.Token = token }), with(c, func(c *idempotency.Claim) { c.Token = token }),
	}
	want := []idempotency.Decision{
		idempotency.DecisionNew, idempotency.DecisionDuplicate, idempotency.DecisionInProgress, idempotency.DecisionInProgress, idempotency.DecisionConflict,
		idempotency.DecisionNew, idempotency.DecisionRenewed,
	}
	outs, err := p.store.ClaimBatch(p.ctx, batch)
	p.must(err, "batch")
	if len(outs) != len(batch) {
		p.fail("a batch of %d claims has %d outcomes", len(batch), len(outs))
		return
	}
	for i, out := range outs {
		if out.Decision != want[i] {
			p.fail("claim %d of a batch: got %v, want %v", i, out.Decision, want[i])
		}
		if out.Record.Key != batch[i].Key {
			p.fail("claim %d of a batch: the record is of another key", i)
		}
	}
	// After a claim that conflicts with a failed key, the next claim of the batch is
	// still granted.
	f := p.key()
	states["failed"](p, f)
	outs, err = p.store.ClaimBatch(p.ctx, []idempotency.Claim{with(f, func(c *idempotency.Claim) { c.Fingerprint = fingerprint("another") }), claim(f)})
	p.must(err, "batch")
	if outs[0].Decision != idempotency.DecisionConflict || outs[1].Decision != idempotency.DecisionNew {
		p.fail("a conflicting and a matching claim of a failed key: got %v and %v, want conflict and new", outs[0].Decision, outs[1].Decision)
	}
	// The largest batch and the empty batch.
	var full []idempotency.Claim
	for range idempotency.MaxBatch {
		full = append(full, claim(p.key()))
	}
	outs, err = p.store.ClaimBatch(p.ctx, full)
	p.must(err, "a batch of MaxBatch claims")
	if slices.ContainsFunc(outs, func(o idempotency.Outcome) bool { return o.Decision != idempotency.DecisionNew }) {
		p.fail("a batch of new keys: got %v", outs)
	}
	if outs, err = p.store.ClaimBatch(p.ctx, nil); err != nil || len(outs) != 0 {
		p.fail("an empty batch: got %v, %v, want nothing", outs, err)
	}
}

// checkWrites calls Write three times: with completions and claims of which some must be
// refused, with an invalid claim, and without any argument.
func checkWrites(p *probe) {
	w, ok := p.store.(idempotency.Writer)
	if !ok {
		return
	}
	done, taken, open := p.key(), p.key(), p.key()
	first := p.do(claim(done), idempotency.DecisionNew, "first claim")
	old := p.do(with(taken, func(c *idempotency.Claim) { c.Terms.Lease, c.Terms.ResendFor = p.short(), long }), idempotency.DecisionNew, "short claim")
	p.pass()
	p.do(claim(taken), idempotency.DecisionReclaimed, "claim after the lease")
	completed := idempotency.Completed(stored)
	failures, outs, err := w.Write(p.ctx, []idempotency.ClaimEnding{{Ref: first.Ref(), Ending: completed}, {Ref: old.Ref(), Ending: completed}, {}}, []idempotency.Claim{claim(open), claim(taken), claim(open)})
	p.must(err, "write")
	if len(failures) != 3 || len(outs) != 3 {
		p.fail("Write returned %d errors for 3 endings and %d outcomes for 3 claims", len(failures), len(outs))
		return
	}
	p.must(failures[0], "complete in a Write")
	p.stale("complete in a Write after another claim", failures[1], old.Ref())
	p.refused("an ending of nothing in a Write", failures[2])
	for i, want := range []idempotency.Decision{idempotency.DecisionNew, idempotency.DecisionInProgress, idempotency.DecisionInProgress} {
		if outs[i].Decision != want {
			p.fail("claim %d of a Write: got the decision %q, want %q", i, outs[i].Decision, want)
		}
	}
	if r := p.lookup(done); r.Status != idempotency.StatusSucceeded || r.Result.Hash() != stored.Hash() {
		p.fail("the record after a completion in a Write is %+v", r)
	}
	failures, _, err = w.Write(p.ctx, []idempotency.ClaimEnding{{Ref: outs[0].Ref(), Ending: completed}}, []idempotency.Claim{{}})
	p.must(errors.Join(failures...), "complete in a Write with an invalid claim")
	p.refused("an invalid claim in a Write", err)
	failures, outs, err = w.Write(p.ctx, nil, nil)
	if err != nil || len(failures)+len(outs) > 0 {
		p.fail("a Write of nothing: %v, %v, %v", failures, outs, err)
	}
}

func (p *probe) refused(doing string, err error) {
	var invalid *idempotency.InvalidError
	if !errors.As(err, &invalid) {
		p.fail("%s: got %v, want an InvalidError", doing, err)
	}
}

// checkBatchRaces runs 20 goroutines. Each goroutine claims the same 50 keys in random
// order, 10 keys at a time. Each key must be granted exactly once; other claims get
// InProgress.
func checkBatchRaces(p *probe) {
	const keys, batches, size, rounds = 50, 20, 10, 5
	all := make([]idempotency.Key, keys)
	for i := range all {
		all[i] = p.key()
	}
	p.prepare(all)
	stores := []idempotency.Store{p.store, p.open(), p.open()}
	var mu sync.Mutex
	wins := map[idempotency.Key]int{}
	var wg sync.WaitGroup
	for w := range batches {
		order := p.rng.Perm(keys)
		wg.Go(func() {
			for r := range rounds {
				var batch []idempotency.Claim
				for _, i := range order[r*size : (r+1)*size] {
					batch = append(batch, claim(all[i]))
				}
				outs, err := stores[w%len(stores)].ClaimBatch(p.ctx, batch)
				if err != nil {
					p.fail("batch: %v", err)
					continue
				}
				mu.Lock()
				for i, out := range outs {
					if out.Decision.Granted() {
						wins[batch[i].Key]++
					} else if out.Decision != idempotency.DecisionInProgress {
						p.fail("a racing batch: got %v, want a grant or InProgress", out.Decision)
					}
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for i, k := range all {
		if wins[k] != 1 {
			p.fail("batches raced for a key with %s: %d were granted, want 1", claimable[i%len(claimable)], wins[k])
		}
	}
}
