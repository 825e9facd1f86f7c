package storetest

import (
	"errors"
	"fmt"
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

// decisionTable lists, for each state of a key, the decisions on six further claims.
// These claims repeat the key's first claim with changes:
//
//   - otherToken: another Token
//   - repeated: none
//   - otherPayload: another Token and Fingerprint
//   - sameToken: another Fingerprint
//   - otherSpec: another Token and Fingerprint.Spec
//   - resend: another Token, and Resend set
var decisionTable = []struct {
	state                                                            string
	otherToken, repeated, otherPayload, sameToken, otherSpec, resend idempotency.Decision
}{
	{"nothing", idempotency.DecisionNew, idempotency.DecisionNew, idempotency.DecisionNew, idempotency.DecisionNew, idempotency.DecisionNew, idempotency.DecisionNew},
	{"released", idempotency.DecisionNew, idempotency.DecisionNew, idempotency.DecisionNew, idempotency.DecisionNew, idempotency.DecisionNew, idempotency.DecisionNew},
	{"running", idempotency.DecisionInProgress, idempotency.DecisionRenewed, idempotency.DecisionConflict, idempotency.DecisionConflict, idempotency.DecisionIncomparable, idempotency.DecisionInProgress},
	{"running, lease over, safe", idempotency.DecisionReclaimed, idempotency.DecisionRenewed, idempotency.DecisionConflict, idempotency.DecisionConflict, idempotency.DecisionIncomparable, idempotency.DecisionReclaimed},
	{"running, lease over, always safe", idempotency.DecisionReclaimed, idempotency.DecisionRenewed, idempotency.DecisionConflict, idempotency.DecisionConflict, idempotency.DecisionIncomparable, idempotency.DecisionReclaimed},
	{"running, lease over, no longer safe", idempotency.DecisionUnresolved, idempotency.DecisionRenewed, idempotency.DecisionConflict, idempotency.DecisionConflict, idempotency.DecisionIncomparable, idempotency.DecisionReclaimed},
	{"running, lease over, never safe", idempotency.DecisionUnresolved, idempotency.DecisionRenewed, idempotency.DecisionConflict, idempotency.DecisionConflict, idempotency.DecisionIncomparable, idempotency.DecisionReclaimed},
	{"running, lease and TTL over", idempotency.DecisionUnresolved, idempotency.DecisionRenewed, idempotency.DecisionConflict, idempotency.DecisionConflict, idempotency.DecisionIncomparable, idempotency.DecisionReclaimed},
	{"succeeded", idempotency.DecisionDuplicate, idempotency.DecisionDuplicate, idempotency.DecisionConflict, idempotency.DecisionConflict, idempotency.DecisionIncomparable, idempotency.DecisionDuplicate},
	{"succeeded for ever", idempotency.DecisionDuplicate, idempotency.DecisionDuplicate, idempotency.DecisionConflict, idempotency.DecisionConflict, idempotency.DecisionIncomparable, idempotency.DecisionDuplicate},
	{"succeeded, expired", idempotency.DecisionNew, idempotency.DecisionNew, idempotency.DecisionNew, idempotency.DecisionNew, idempotency.DecisionNew, idempotency.DecisionNew},
	{"failed", idempotency.DecisionNew, idempotency.DecisionNew, idempotency.DecisionConflict, idempotency.DecisionConflict, idempotency.DecisionIncomparable, idempotency.DecisionNew},
	{"failed, expired", idempotency.DecisionNew, idempotency.DecisionNew, idempotency.DecisionNew, idempotency.DecisionNew, idempotency.DecisionNew, idempotency.DecisionNew},
}

func checkDecisions(p *probe) {
	other := idempotency.FingerprintOf("test/1", []byte("another payload"))
	spec := idempotency.FingerprintOf("test/2", []byte("payload"))
	for _, row := range decisionTable {
		for _, column := range []struct {
			name   string
			want   idempotency.Decision
			change func(*idempotency.Claim)
		}{
			{"an equal fingerprint", row.otherToken, func(*idempotency.Claim) {}},
			{"its own token", row.repeated, func(c *idempotency.Claim) { c.Token = token }},
			{"another fingerprint", row.otherPayload, func(c *idempotency.Claim) { c.Fingerprint = other }},
			{"its own token and another fingerprint", row.sameToken, func(c *idempotency.Claim) { c.Token, c.Fingerprint = token, other }},
			{"another spec", row.otherSpec, func(c *idempotency.Claim) { c.Fingerprint = spec }},
			{"Resend", row.resend, func(c *idempotency.Claim) { c.Resend = true }},
		} {
			k := p.key()
			states[row.state](p, k)
			doing := fmt.Sprintf("%s, claimed with %s", row.state, column.name)
			before := p.lookup(k)
			out := p.do(with(k, column.change), column.want, doing)
			after := p.lookup(k)
			switch {
			case !column.want.Granted() && !before.Equal(after):
				p.fail("%s: a claim that was not granted changed the record from %+v to %+v", doing, before, after)
			case column.want == idempotency.DecisionDuplicate && out.Record.Result.Hash() != stored.Hash():
				p.fail("%s: got the result %+v, want the stored one", doing, out.Record.Result)
			case column.want == idempotency.DecisionInProgress && (out.RetryAfter() < long/2 || out.RetryAfter() > long):
				p.fail("%s: RetryAfter is %v, want what is left of the lease of %v", doing, out.RetryAfter(), long)
			}
		}
	}
}

// checkGrants claims a key in each state that permits the claim, and compares the record
// with idempotency.Grant. The claim has another body than the key's first claim: if the
// decision is Reclaimed, the store must keep the first body and report Drift.
func checkGrants(p *probe) {
	for _, row := range decisionTable {
		if !row.otherToken.Granted() {
			continue
		}
		k := p.key()
		states[row.state](p, k)
		before := p.lookup(k)
		c := with(k, func(c *idempotency.Claim) {
			c.Body, c.Group, c.ExactHash = []byte("later body"), "later group", idempotency.ExactHashOf([]byte("later body"), "later group")
			c.Terms = idempotency.Terms{Lease: 2 * long, TTL: 48 * long, ResendFor: 3 * long}
			c.Dataset = idempotency.Dataset{ID: "noaa", Version: "v1.0.0", SourceURI: "s3://b/k", ArtifactChecksum: "sha256:00", CARELabel: "CARE-1", ReplaySafe: true}
		})
		out := p.do(c, row.otherToken, row.state)
		want := idempotency.Grant(before, c, row.otherToken, out.Record.Fence, out.Record.ReadAt)
		if row.state == "released" {
			want.Generation = 1 // the first claim began generation 1, and its release keeps the number
		}
		p.sameRecord(row.state+", granted", out.Record, want)
		p.sameRecord(row.state+", looked up", p.lookup(k), want)
		if want := row.otherToken == idempotency.DecisionReclaimed; out.Drift != want {
			p.fail("%s: Drift is %v, want %v: the bytes differ from those that are stored, if any are", row.state, out.Drift, want)
		}
	}
	// After a claim of a failed key and its release, the record must have its old Status,
	// Created and Expires.
	k := p.key()
	states["failed"](p, k)
	before := p.lookup(k)
	p.pass()
	out := p.do(claim(k), idempotency.DecisionNew, "claim of a failed record")
	p.must(p.store.Finish(p.ctx, out.Ref(), idempotency.Released()), "release")
	after := p.lookup(k)
	if after.Status != idempotency.StatusFailed || !after.Created.Equal(before.Created) || !after.Expires.Equal(before.Expires) {
		p.fail("failed, claimed and released: got %v, created %v, expires %v, want failed, %v, %v", after.Status, after.Created, after.Expires, before.Created, before.Expires)
	}
}

// sameRecord compares the required fields. It does not compare Prior, which is internal
// to a store. Times may differ by the delay between two clock readings in one call.
func (p *probe) sameRecord(doing string, got, want idempotency.Record) {
	near := func(name string, g, w time.Time) {
		if g.IsZero() != w.IsZero() || g.Sub(w).Abs() > 2*time.Second {
			p.fail("%s: %s is %v, want %v", doing, name, g, w)
		}
	}
	near("LeaseUntil", got.LeaseUntil, want.LeaseUntil)
	near("DoubtSince", got.DoubtSince, want.DoubtSince)
	near("ResendUntil", got.ResendUntil, want.ResendUntil)
	near("Created", got.Created, want.Created)
	near("Expires", got.Expires, want.Expires)
	got.LeaseUntil, got.DoubtSince, got.ResendUntil, got.Created, got.Expires = want.LeaseUntil, want.DoubtSince, want.ResendUntil, want.Created, want.Expires
	got.Prior = want.Prior
	if !got.Equal(want) {
		p.fail("%s: the record is %+v, want %+v", doing, got, want)
	}
}

// transitionTable lists ways to end a claim. Each row has the expected record afterwards,
// and the decision on the next claim of the key.
var transitionTable = []struct {
	name     string
	before   string // state of the key before the claim, or "" for an unused key
	t        func(p *probe, ref idempotency.Ref) error
	status   idempotency.Status
	doubt    bool
	next     idempotency.Decision
	conflict idempotency.Decision // decision on a next claim with another fingerprint
}{
	{"completed", "", complete, idempotency.StatusSucceeded, false, idempotency.DecisionDuplicate, idempotency.DecisionConflict},
	{"failed with proof", "", fail(idempotency.ProofForClaim), idempotency.StatusFailed, false, idempotency.DecisionNew, idempotency.DecisionConflict},
	{"failed with proof for all", "", fail(idempotency.ProofForAll), idempotency.StatusFailed, false, idempotency.DecisionNew, idempotency.DecisionConflict},
	{"failed without proof", "", fail(idempotency.ProofNone), idempotency.StatusRunning, true, idempotency.DecisionUnresolved, idempotency.DecisionConflict},
	{"released", "", release, idempotency.StatusAbsent, false, idempotency.DecisionNew, idempotency.DecisionNew},
	{"a failed one released", "failed", release, idempotency.StatusFailed, false, idempotency.DecisionNew, idempotency.DecisionConflict},
	{"an expired one released", "succeeded, expired", release, idempotency.StatusAbsent, false, idempotency.DecisionNew, idempotency.DecisionNew},
	{"reclaimed, completed", "running, lease over, safe", complete, idempotency.StatusSucceeded, false, idempotency.DecisionDuplicate, idempotency.DecisionConflict},
	{"reclaimed, failed with proof for the claim", "running, lease over, safe", fail(idempotency.ProofForClaim), idempotency.StatusRunning, true, idempotency.DecisionReclaimed, idempotency.DecisionConflict},
	{"reclaimed, failed with proof for all", "running, lease over, safe", fail(idempotency.ProofForAll), idempotency.StatusFailed, false, idempotency.DecisionNew, idempotency.DecisionConflict},
	{"reclaimed, failed without proof", "running, lease over, safe", fail(idempotency.ProofNone), idempotency.StatusRunning, true, idempotency.DecisionReclaimed, idempotency.DecisionConflict},
	{"reclaimed, released", "running, lease over, safe", release, idempotency.StatusRunning, true, idempotency.DecisionReclaimed, idempotency.DecisionConflict},
	{"run again, failed with proof for the claim", "running, lease over, never safe", fail(idempotency.ProofForClaim), idempotency.StatusRunning, true, idempotency.DecisionUnresolved, idempotency.DecisionConflict},
	{"run again, released", "running, lease over, never safe", release, idempotency.StatusRunning, true, idempotency.DecisionUnresolved, idempotency.DecisionConflict},
}

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

func checkTransitions(p *probe) {
	for _, row := range transitionTable {
		for _, next := range []struct {
			payload string
			want    idempotency.Decision
		}{{"payload", row.next}, {"another payload", row.conflict}} {
			k := p.key()
			var doubt time.Time
			if row.before != "" {
				states[row.before](p, k)
				doubt = p.lookup(k).DoubtSince
			}
			c := with(k, func(c *idempotency.Claim) { c.Resend = row.before != "" })
			out, err := p.store.Claim(p.ctx, c)
			p.must(err, row.name)
			if !out.Decision.Granted() {
				p.fail("%s: the claim was not granted but %v", row.name, out.Decision)
				continue
			}
			p.must(row.t(p, out.Ref()), row.name)
			r := p.lookup(k)
			if r.Status != row.status || r.DoubtSince.IsZero() == row.doubt {
				p.fail("%s: the record is %v, in doubt since %v, want %v, in doubt: %v", row.name, r.Status, r.DoubtSince, row.status, row.doubt)
			}
			if row.doubt && !doubt.IsZero() && !r.DoubtSince.Equal(doubt) {
				p.fail("%s: in doubt since %v, want %v, when the first attempt began", row.name, r.DoubtSince, doubt)
			}
			p.do(with(k, func(c *idempotency.Claim) { c.Fingerprint = fingerprint(next.payload) }), next.want, row.name+", claimed with "+next.payload)
		}
	}
}

func extend(p *probe, ref idempotency.Ref) error { return p.store.Extend(p.ctx, ref, 2*long) }

func checkExtensions(p *probe) {
	for name, state := range map[string]string{"running": "running", "lease over": "running, lease over, never safe"} {
		k := p.key()
		claimed := states[state](p, k)
		before := p.lookup(k)
		p.must(extend(p, claimed.Ref()), "extend, "+name)
		p.must(p.store.Extend(p.ctx, claimed.Ref(), time.Millisecond), "extend by less, "+name)
		after := p.lookup(k)
		if d := after.LeaseUntil.Sub(after.ReadAt); (d - 2*long).Abs() > time.Minute {
			p.fail("extend, %s: the lease ends in %v, want %v", name, d, 2*long)
		}
		if before.LeaseUntil = after.LeaseUntil; !after.Equal(before) {
			p.fail("extend, %s: the record is %+v, want %+v", name, after, before)
		}
		p.do(claim(k), idempotency.DecisionInProgress, "claim during an extended lease")
		p.must(complete(p, claimed.Ref()), "complete after an extension")
		p.stale("extend after the end", extend(p, claimed.Ref()), claimed.Ref())
	}
	for _, lease := range []time.Duration{0, -time.Second, time.Microsecond} {
		var invalid *idempotency.InvalidError
		if err := p.store.Extend(p.ctx, idempotency.Ref{Key: p.key(), Fence: 1}, lease); !errors.As(err, &invalid) {
			p.fail("extend by %v: got %v, want an InvalidError", lease, err)
		}
	}
	k := p.key()
	claimed := p.do(with(k, func(c *idempotency.Claim) { c.Terms.TTL = idempotency.Forever }), idempotency.DecisionNew, "claim")
	p.must(p.store.Extend(p.ctx, claimed.Ref(), idempotency.Forever), "extend without an end")
	if r := p.lookup(k); r.LeaseUntil.Year() != 9999 {
		p.fail("extend without an end: the lease ends at %v, want the year 9999", r.LeaseUntil)
	}
}

func checkOwners(p *probe) {
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	owned := func(k idempotency.Key, owner string, began time.Time, resend time.Duration) idempotency.Claim {
		return with(k, func(c *idempotency.Claim) {
			c.Token, c.Terms.ResendFor = idempotency.NewTokenOf(owner, began), resend
		})
	}
	for _, row := range []struct {
		name   string
		owner  string
		began  time.Time
		resend time.Duration
		want   idempotency.Decision
	}{
		{"the same process", "a", began, long, idempotency.DecisionInProgress},
		{"a later process", "a", began.Add(time.Millisecond), long, idempotency.DecisionReclaimed},
		{"a process of the next day", "a", began.Add(24 * time.Hour), long, idempotency.DecisionReclaimed},
		{"an earlier process", "a", began.Add(-time.Hour), long, idempotency.DecisionInProgress},
		{"a later process of another owner", "b", began.Add(time.Hour), long, idempotency.DecisionInProgress},
		{"a later process, and no safe resend", "a", began.Add(time.Hour), 0, idempotency.DecisionUnresolved},
	} {
		k := p.key()
		first := p.do(owned(k, "a", began, row.resend), idempotency.DecisionNew, "first claim of an owner")
		out := p.do(owned(k, row.owner, row.began, row.resend), row.want, "claim of "+row.name)
		if row.want != idempotency.DecisionReclaimed {
			continue
		}
		p.stale("complete the claim of the earlier process", complete(p, first.Ref()), first.Ref())
		p.must(complete(p, out.Ref()), "complete the claim of the later process")
	}
	k := p.key()
	p.do(claim(k), idempotency.DecisionNew, "first claim without an owner")
	p.do(claim(k), idempotency.DecisionInProgress, "claim without an owner")
}

func checkFences(p *probe) {
	transitions := map[string]func(*probe, idempotency.Ref) error{
		"Complete": complete, "Release": release, "Extend": extend,
		"Fail without proof": fail(idempotency.ProofNone), "Fail": fail(idempotency.ProofForClaim), "Fail for all": fail(idempotency.ProofForAll),
	}
	for name, transition := range transitions {
		// After a second claim, ending or extending the first claim must change nothing
		// and return ErrStaleClaim.
		for after, end := range map[string]func(*probe, idempotency.Ref) error{
			"runs": nil, "has succeeded": complete, "has failed": fail(idempotency.ProofForAll), "was released": release,
		} {
			doing := fmt.Sprintf("%s of a zombie while the next claim %s", name, after)
			k := p.key()
			zombie := states["running, lease over, safe"](p, k)
			next := p.do(claim(k), idempotency.DecisionReclaimed, doing)
			if next.Record.Fence <= zombie.Record.Fence {
				p.fail("%s: the fence went from %d to %d", doing, zombie.Record.Fence, next.Record.Fence)
			}
			if end != nil {
				p.must(end(p, next.Ref()), doing)
			}
			before := p.lookup(k)
			p.stale(doing, transition(p, zombie.Ref()), zombie.Ref())
			if after := p.lookup(k); !after.Equal(before) {
				p.fail("%s: changed the record from %+v to %+v", doing, before, after)
			}
		}
		// This key has no claim to end or extend.
		ref := idempotency.Ref{Key: p.key(), Fence: 1}
		p.stale(name+" of no claim", transition(p, ref), ref)
		// After the completion, any other call for the claim must return ErrStaleClaim.
		k := p.key()
		ended := states["succeeded"](p, k)
		if name != "Complete" {
			p.stale(name+" after Complete", transition(p, ended.Ref()), ended.Ref())
		} else {
			p.stale("Complete with another result", p.store.Finish(p.ctx, ended.Ref(), idempotency.Completed(idempotency.Result{Response: []byte("other")})), ended.Ref())
		}
	}
	// The lease is over, but no other claim was granted: the claim can still be
	// completed.
	k := p.key()
	late := states["running, lease over, never safe"](p, k)
	p.must(p.store.Finish(p.ctx, late.Ref(), idempotency.Completed(stored)), "Complete after the lease")
	p.do(claim(k), idempotency.DecisionDuplicate, "claim after a late completion")
	// All fences differ. The fences of a key grow, even after a release.
	seen, k := map[int64]bool{}, p.key()
	last := int64(0)
	for range 20 {
		out := p.do(claim(k), idempotency.DecisionNew, "claim after a release")
		if out.Record.Fence <= last || seen[out.Record.Fence] {
			p.fail("fence %d after %d", out.Record.Fence, last)
		}
		last = out.Record.Fence
		seen[last] = true
		p.must(p.store.Finish(p.ctx, out.Ref(), idempotency.Released()), "release")
		o := p.do(claim(p.key()), idempotency.DecisionNew, "claim")
		if seen[o.Record.Fence] {
			p.fail("fence %d was given twice", o.Record.Fence)
		}
		seen[o.Record.Fence] = true
	}
}

func (p *probe) stale(doing string, err error, ref idempotency.Ref) {
	var stale *idempotency.StaleClaimError
	if !errors.Is(err, idempotency.ErrStaleClaim) || !errors.As(err, &stale) {
		p.fail("%s: got %v, want a StaleClaimError", doing, err)
	} else if stale.Fence != ref.Fence || stale.ID != ref.Key.ID() {
		p.fail("%s: the StaleClaimError is about claim %d of %v, want %d of %v", doing, stale.Fence, stale.ID, ref.Fence, ref.Key.ID())
	}
}

func checkRepeats(p *probe) {
	for name, transition := range map[string]func(*probe, idempotency.Ref) error{
		"Complete": complete, "Release": release,
		"Fail without proof": fail(idempotency.ProofNone), "Fail": fail(idempotency.ProofForClaim), "Fail for all": fail(idempotency.ProofForAll),
	} {
		for _, before := range []string{"nothing", "running, lease over, safe"} {
			k := p.key()
			states[before](p, k)
			out, err := p.store.Claim(p.ctx, claim(k))
			p.must(err, name)
			p.must(transition(p, out.Ref()), name)
			first := p.lookup(k)
			p.must(transition(p, out.Ref()), name+" repeated")
			if second := p.lookup(k); !first.Equal(second) {
				p.fail("%s repeated: the record went from %+v to %+v", name, first, second)
			}
		}
	}
	// A claim repeated after a lost answer is Renewed, with the same fence and one more
	// attempt.
	for _, before := range []string{"nothing", "failed", "succeeded, expired", "running, lease over, safe"} {
		k := p.key()
		states[before](p, k)
		c := claim(k)
		first, err := p.store.Claim(p.ctx, c)
		p.must(err, before)
		second := p.do(c, idempotency.DecisionRenewed, "claim repeated, after "+before)
		if first.Record.Fence != second.Record.Fence {
			p.fail("claim repeated, after %s: fence %d became %d", before, first.Record.Fence, second.Record.Fence)
		}
		if second.Record.Attempts != first.Record.Attempts+1 {
			p.fail("claim repeated, after %s: attempts went from %d to %d", before, first.Record.Attempts, second.Record.Attempts)
		}
	}
}
