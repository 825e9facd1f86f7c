package storetest

import (
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// with returns a claim of k with a long lease and TTL, modified by the function `change`.
func with(k idempotency.Key, change func(*idempotency.Claim)) idempotency.Claim {
	c := claim(k)
	change(&c)
	return c
}

var token = idempotency.Token{1, 2, 3}

// states has functions that bring a key into a state and return the outcome of its first
// claim. A running claim has the token in the variable `token`.
var states = map[string]func(p *probe, k idempotency.Key) idempotency.Outcome{
	"nothing": func(*probe, idempotency.Key) idempotency.Outcome { return idempotency.Outcome{} },
	"released": func(p *probe, k idempotency.Key) idempotency.Outcome {
		out := p.do(claim(k), idempotency.DecisionNew, "first claim")
		p.must(p.store.Finish(p.ctx, out.Ref(), idempotency.Released()), "release")
		return out
	},
	"running": func(p *probe, k idempotency.Key) idempotency.Outcome {
		return p.do(with(k, func(c *idempotency.Claim) { c.Token = token }), idempotency.DecisionNew, "first claim")
	},
	"running, lease over, safe": func(p *probe, k idempotency.Key) idempotency.Outcome {
		return p.lapsed(k, 24*long)
	},
	"running, lease over, always safe": func(p *probe, k idempotency.Key) idempotency.Outcome {
		return p.lapsed(k, idempotency.Forever)
	},
	"running, lease over, no longer safe": func(p *probe, k idempotency.Key) idempotency.Outcome {
		return p.lapsed(k, p.short())
	},
	"running, lease over, never safe": func(p *probe, k idempotency.Key) idempotency.Outcome {
		return p.lapsed(k, 0)
	},
	"running, lease and TTL over": func(p *probe, k idempotency.Key) idempotency.Outcome {
		out := p.do(with(k, func(c *idempotency.Claim) { c.Token, c.Terms.Lease, c.Terms.TTL = token, p.short(), p.short() }), idempotency.DecisionNew, "first claim")
		p.pass()
		return out
	},
	"succeeded": func(p *probe, k idempotency.Key) idempotency.Outcome {
		return p.succeeded(k, 24*long)
	},
	"succeeded for ever": func(p *probe, k idempotency.Key) idempotency.Outcome {
		return p.succeeded(k, idempotency.Forever)
	},
	"succeeded, expired": func(p *probe, k idempotency.Key) idempotency.Outcome {
		out := p.succeeded(k, p.short())
		p.pass()
		return out
	},
	"failed": func(p *probe, k idempotency.Key) idempotency.Outcome {
		return p.failedBefore(k, 24*long)
	},
	"failed, expired": func(p *probe, k idempotency.Key) idempotency.Outcome {
		out := p.failedBefore(k, p.short())
		p.pass()
		return out
	},
}

func (p *probe) lapsed(k idempotency.Key, resendFor time.Duration) idempotency.Outcome {
	out := p.do(with(k, func(c *idempotency.Claim) { c.Token, c.Terms.Lease, c.Terms.ResendFor = token, p.short(), resendFor }), idempotency.DecisionNew, "first claim")
	p.pass()
	return out
}

func (p *probe) succeeded(k idempotency.Key, ttl time.Duration) idempotency.Outcome {
	out := p.do(with(k, func(c *idempotency.Claim) { c.Token, c.Terms.TTL, c.Terms.Lease = token, ttl, min(ttl, long) }), idempotency.DecisionNew, "first claim")
	p.must(p.store.Finish(p.ctx, out.Ref(), idempotency.Completed(stored)), "complete")
	return out
}

func (p *probe) failedBefore(k idempotency.Key, ttl time.Duration) idempotency.Outcome {
	out := p.do(with(k, func(c *idempotency.Claim) { c.Token, c.Terms.TTL, c.Terms.Lease = token, ttl, min(ttl, long) }), idempotency.DecisionNew, "first claim")
	p.must(p.store.Finish(p.ctx, out.Ref(), idempotency.FailedWith(idempotency.Failure{Proof: idempotency.ProofForClaim, Reason: "refused"})), "fail")
	return out
}

var stored = idempotency.Result{Response: []byte(`{"n":1e3,"n":1E3}`), MessageID: "m-1", SequenceNumber: "18870000000000000001"}

func complete(p *probe, ref idempotency.Ref) error {
	return p.store.Finish(p.ctx, ref, idempotency.Completed(stored))
}

func release(p *probe, ref idempotency.Ref) error {
	return p.store.Finish(p.ctx, ref, idempotency.Released())
}

func fail(proof idempotency.Proof) func(*probe, idempotency.Ref) error {
	return func(p *probe, ref idempotency.Ref) error {
		return p.store.Finish(p.ctx, ref, idempotency.FailedWith(idempotency.Failure{Proof: proof, Reason: "because"}))
	}
}
