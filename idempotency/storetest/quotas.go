package storetest

import (
	"fmt"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// checkQuotas checks that a store with a quota limits the unfinished operations of each
// scope. It skips storage without OpenWithQuota.
func checkQuotas(p *probe) {
	if p.OpenWithQuota == nil {
		return
	}
	const quota = 3
	open := func() (idempotency.Store, error) { return p.OpenWithQuota(quota) }
	p.store = p.opening(open)
	in := func(scope string, change func(*idempotency.Claim)) idempotency.Claim {
		k := p.key()
		k.Scope = scope
		return with(k, func(c *idempotency.Claim) {
			c.Terms.Lease = p.short()
			change(c)
		})
	}
	same := func(*idempotency.Claim) {}
	refused := func(c idempotency.Claim, doing string) {
		out := p.do(c, idempotency.DecisionOverQuota, doing)
		if out.Quota != quota || !out.Record.Equal(idempotency.Record{}) {
			p.fail("%s: got the quota %d and the record %+v, want %d and no record", doing, out.Quota, out.Record, quota)
		}
		if r := p.lookup(c.Key); r.Status == idempotency.StatusRunning {
			p.fail("%s: the refused claim left a record: %+v", doing, r)
		}
	}
	var claims []idempotency.Claim
	var granted []idempotency.Outcome
	begin := func(doing string) {
		c := in("a", same)
		claims, granted = append(claims, c), append(granted, p.do(c, idempotency.DecisionNew, doing))
	}
	for i := range quota {
		begin(fmt.Sprintf("claim %d within the quota", i+1))
	}
	next := in("a", same)
	refused(next, "a claim beyond the quota")
	refused(next, "the same claim, repeated")
	p.do(in("b", same), idempotency.DecisionNew, "a claim of another scope")

	first := claims[0]
	p.do(first, idempotency.DecisionRenewed, "a claimant's own claim, in a scope without room")
	other := first
	other.Token = idempotency.NewToken()
	p.do(other, idempotency.DecisionInProgress, "another claim of an operation in progress, in a scope without room")
	p.pass()
	refused(next, "a claim beyond the quota, when all leases have ended")
	p.do(other, idempotency.DecisionUnresolved, "a claim of an unresolved operation, in a scope without room")
	other.Resend = true
	granted[0] = p.do(other, idempotency.DecisionReclaimed, "the resend of an unresolved operation, in a scope without room")
	here := p.store
	p.store = p.opening(open)
	refused(next, "a claim beyond the quota in another store over the storage")
	p.store = here

	end := func(e idempotency.Ending, doing string) idempotency.Claim {
		p.must(p.store.Finish(p.ctx, granted[0].Ref(), e), doing)
		c := claims[0]
		claims, granted = claims[1:], granted[1:]
		return c
	}
	p.must(p.store.Finish(p.ctx, granted[0].Ref(), idempotency.FailedWith(idempotency.Failure{Reason: "time-out"})), "an unknown outcome")
	refused(next, "a claim after an unknown outcome")
	done := end(idempotency.Completed(stored), "complete")
	begin("a claim after a completion")
	refused(next, "a claim beyond the quota, after a completion")
	p.do(done, idempotency.DecisionDuplicate, "a claim of a completed operation, in a scope without room")
	failed := end(idempotency.FailedWith(idempotency.Failure{Proof: idempotency.ProofForAll, Reason: "no"}), "fail")
	begin("a claim after a failure")
	refused(failed, "a claim of a failed operation, in a scope without room")
	released := end(idempotency.Released(), "release")
	begin("a claim after a release")
	refused(released, "a claim of a released operation, in a scope without room")
	end(idempotency.Completed(stored), "complete")

	one, two := in("a", same), in("a", same)
	repeated := one
	repeated.Token = idempotency.NewToken()
	outs, err := p.store.ClaimBatch(p.ctx, []idempotency.Claim{done, one, two, repeated, in("b", same), failed})
	p.must(err, "a batch")
	for i, want := range []idempotency.Decision{idempotency.DecisionDuplicate, idempotency.DecisionNew, idempotency.DecisionOverQuota, idempotency.DecisionInProgress, idempotency.DecisionNew, idempotency.DecisionOverQuota} {
		if outs[i].Decision != want {
			p.fail("claim %d of a batch in a scope with room for one: got the decision %q, want %q", i, outs[i].Decision, want)
		}
	}
	refused(next, "a claim after the batch")
	p.must(p.store.Finish(p.ctx, outs[1].Ref(), idempotency.Completed(stored)), "complete")
	p.do(failed, idempotency.DecisionNew, "a claim of a failed operation, in a scope with room")
}
