package idempotency_test

import (
	"errors"
	"testing"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// claimed returns the record of a new key after the claim of newClaim, with changed terms.
func claimed(t *testing.T, terms idempotency.Terms) idempotency.Record {
	t.Helper()
	c := newClaim()
	c.Token, c.Terms = idempotency.Token{1, 2, 3}, terms
	return idempotency.Grant(idempotency.Record{}, c, idempotency.DecisionNew, 1, t0)
}

// ended returns the record after the end of its claim.
func ended(t *testing.T, r idempotency.Record, e idempotency.Ending, now time.Time) idempotency.Record {
	t.Helper()
	r, err := idempotency.ApplyEnding(r, idempotency.Ref{Key: r.Key, Fence: r.Fence}, e, now)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

var (
	completed = idempotency.Completed(idempotency.Result{Response: []byte("r")})
	released  = idempotency.Released()
)

func failedWith(p idempotency.Proof) idempotency.Ending {
	return idempotency.FailedWith(idempotency.Failure{Proof: p, Reason: "because"})
}

// states returns a record for each state of a key at t0 + 2 minutes.
func states(t *testing.T) map[string]idempotency.Record {
	t.Helper()
	const long, day = time.Hour, 24 * time.Hour
	live := claimed(t, idempotency.Terms{Lease: long, TTL: day})
	short := idempotency.Terms{Lease: time.Minute, TTL: time.Minute}
	return map[string]idempotency.Record{
		"nothing":                             {},
		"released":                            ended(t, live, released, t0),
		"running":                             live,
		"running, lease over, safe":           claimed(t, idempotency.Terms{Lease: time.Minute, TTL: day, ResendFor: day}),
		"running, lease over, always safe":    claimed(t, idempotency.Terms{Lease: time.Minute, TTL: day, ResendFor: idempotency.Forever}),
		"running, lease over, no longer safe": claimed(t, idempotency.Terms{Lease: time.Minute, TTL: day, ResendFor: time.Minute}),
		"running, lease over, never safe":     claimed(t, idempotency.Terms{Lease: time.Minute, TTL: day}),
		"running, lease and TTL over":         claimed(t, short),
		"succeeded":                           ended(t, live, completed, t0),
		"succeeded for ever":                  ended(t, claimed(t, idempotency.Terms{Lease: long, TTL: idempotency.Forever}), completed, t0),
		"succeeded, expired":                  ended(t, claimed(t, short), completed, t0),
		"failed":                              ended(t, live, failedWith(idempotency.ProofForClaim), t0),
		"failed, expired":                     ended(t, claimed(t, short), failedWith(idempotency.ProofForClaim), t0),
	}
}

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

func TestDecideInEachState(t *testing.T) {
	now := t0.Add(2 * time.Minute)
	for _, row := range decisionTable {
		found := states(t)[row.state]
		own, other := idempotency.Token{1, 2, 3}, idempotency.FingerprintOf("test/1", []byte("another payload"))
		for name, column := range map[string]struct {
			want   idempotency.Decision
			change func(*idempotency.Claim)
		}{
			"an equal fingerprint":                  {row.otherToken, func(*idempotency.Claim) {}},
			"its own token":                         {row.repeated, func(c *idempotency.Claim) { c.Token = own }},
			"another fingerprint":                   {row.otherPayload, func(c *idempotency.Claim) { c.Fingerprint = other }},
			"its own token and another fingerprint": {row.sameToken, func(c *idempotency.Claim) { c.Token, c.Fingerprint = own, other }},
			"another spec":                          {row.otherSpec, func(c *idempotency.Claim) { c.Fingerprint.Spec = "test/2" }},
			"Resend":                                {row.resend, func(c *idempotency.Claim) { c.Resend = true }},
		} {
			c := newClaim()
			column.change(&c)
			if got := idempotency.Decide(found, c, now); got != column.want {
				t.Errorf("%s, claimed with %s: got %v, want %v", row.state, name, got, column.want)
			}
		}
	}
}

// The later process of an owner ends the lease of an earlier process, and no other claim
// does.
func TestDecideOnOwners(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, tc := range map[string]struct {
		owner  string
		later  time.Duration
		resend time.Duration
		want   idempotency.Decision
	}{
		"the same process":                    {"a", 0, time.Hour, idempotency.DecisionInProgress},
		"a later process":                     {"a", time.Millisecond, time.Hour, idempotency.DecisionReclaimed},
		"a process of the next day":           {"a", 24 * time.Hour, time.Hour, idempotency.DecisionReclaimed},
		"an earlier process":                  {"a", -time.Hour, time.Hour, idempotency.DecisionInProgress},
		"a later process of another owner":    {"b", time.Hour, time.Hour, idempotency.DecisionInProgress},
		"a later process, and no safe resend": {"a", time.Hour, 0, idempotency.DecisionUnresolved},
	} {
		first, next := newClaim(), newClaim()
		first.Token, first.Terms = idempotency.NewTokenOf("a", began), idempotency.Terms{Lease: time.Hour, TTL: 24 * time.Hour, ResendFor: tc.resend}
		next.Token = idempotency.NewTokenOf(tc.owner, began.Add(tc.later))
		found := idempotency.Grant(idempotency.Record{}, first, idempotency.DecisionNew, 1, t0)
		if got := idempotency.Decide(found, next, t0.Add(time.Minute)); got != tc.want {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
}

// A grant keeps the stored request of a running operation and its times. A claim of any
// other key begins a request, and a generation unless the key was only released.
func TestGrantInEachState(t *testing.T) {
	now := t0.Add(2 * time.Minute)
	for state, found := range states(t) {
		c := newClaim()
		c.Body, c.Group, c.Terms = []byte("later"), "later", idempotency.Terms{Lease: 2 * time.Hour, TTL: 48 * time.Hour, ResendFor: 3 * time.Hour}
		c.ExactHash, c.Resend = idempotency.ExactHashOf(c.Body, c.Group), true
		d := idempotency.Decide(found, c, now)
		if !d.Granted() {
			continue
		}
		r := idempotency.Grant(found, c, d, 2, now)
		attempts := int64(1)
		if d == idempotency.DecisionReclaimed || state == "failed" {
			attempts = 2
		}
		if r.Status != idempotency.StatusRunning || r.Fence != 2 || r.Token != c.Token || !r.LeaseUntil.Equal(now.Add(2*time.Hour)) || r.Attempts != attempts {
			t.Errorf("%s: granted as %v: %+v", state, d, r)
		}
		drift := idempotency.NewOutcome(d, r, c).Drift
		if d == idempotency.DecisionReclaimed {
			if string(r.Body) != "body" || !r.Created.Equal(found.Created) || !r.Expires.Equal(found.Expires) || !r.DoubtSince.Equal(found.DoubtSince) || !r.ResendUntil.Equal(found.ResendUntil) || r.Generation != found.Generation || !drift {
				t.Errorf("%s: reclaimed: %+v, drift %v, want the stored request and its times", state, r, drift)
			}
			continue
		}
		generation := found.Generation
		if found.Status != idempotency.StatusFailed && state != "released" || state == "failed, expired" {
			generation++
		}
		if string(r.Body) != "later" || !r.Created.Equal(now) || !r.Expires.Equal(now.Add(48*time.Hour)) || !r.ResendUntil.Equal(now.Add(3*time.Hour)) || r.Generation != generation || drift {
			t.Errorf("%s: new: %+v, drift %v, want the claim's request in generation %d", state, r, drift, generation)
		}
	}
}

// endingTable lists ways to end a claim. Each row has the expected record afterwards, and
// the decision on the next claim of the key.
var endingTable = []struct {
	name     string
	before   string // state of the key before the claim
	e        idempotency.Ending
	status   idempotency.Status
	doubt    bool
	next     idempotency.Decision
	conflict idempotency.Decision // decision on a next claim with another fingerprint
}{
	{"completed", "nothing", completed, idempotency.StatusSucceeded, false, idempotency.DecisionDuplicate, idempotency.DecisionConflict},
	{"failed with proof", "nothing", failedWith(idempotency.ProofForClaim), idempotency.StatusFailed, false, idempotency.DecisionNew, idempotency.DecisionConflict},
	{"failed with proof for all", "nothing", failedWith(idempotency.ProofForAll), idempotency.StatusFailed, false, idempotency.DecisionNew, idempotency.DecisionConflict},
	{"failed without proof", "nothing", failedWith(idempotency.ProofNone), idempotency.StatusRunning, true, idempotency.DecisionUnresolved, idempotency.DecisionConflict},
	{"released", "nothing", released, idempotency.StatusAbsent, false, idempotency.DecisionNew, idempotency.DecisionNew},
	{"a failed one released", "failed", released, idempotency.StatusFailed, false, idempotency.DecisionNew, idempotency.DecisionConflict},
	{"an expired one released", "succeeded, expired", released, idempotency.StatusAbsent, false, idempotency.DecisionNew, idempotency.DecisionNew},
	{"reclaimed, completed", "running, lease over, safe", completed, idempotency.StatusSucceeded, false, idempotency.DecisionDuplicate, idempotency.DecisionConflict},
	{"reclaimed, failed with proof for the claim", "running, lease over, safe", failedWith(idempotency.ProofForClaim), idempotency.StatusRunning, true, idempotency.DecisionReclaimed, idempotency.DecisionConflict},
	{"reclaimed, failed with proof for all", "running, lease over, safe", failedWith(idempotency.ProofForAll), idempotency.StatusFailed, false, idempotency.DecisionNew, idempotency.DecisionConflict},
	{"reclaimed, failed without proof", "running, lease over, safe", failedWith(idempotency.ProofNone), idempotency.StatusRunning, true, idempotency.DecisionReclaimed, idempotency.DecisionConflict},
	{"reclaimed, released", "running, lease over, safe", released, idempotency.StatusRunning, true, idempotency.DecisionReclaimed, idempotency.DecisionConflict},
	{"run again, failed with proof for the claim", "running, lease over, never safe", failedWith(idempotency.ProofForClaim), idempotency.StatusRunning, true, idempotency.DecisionUnresolved, idempotency.DecisionConflict},
	{"run again, released", "running, lease over, never safe", released, idempotency.StatusRunning, true, idempotency.DecisionUnresolved, idempotency.DecisionConflict},
}

// Only proof ends a doubt. A repeated ending changes nothing, and a claim that was
// overtaken changes nothing.
func TestEndings(t *testing.T) {
	now := t0.Add(2 * time.Minute)
	for _, row := range endingTable {
		before := states(t)[row.before]
		c := newClaim()
		c.Resend, c.Terms.ResendFor = true, 0
		d := idempotency.Decide(before, c, now)
		running := idempotency.Grant(before, c, d, 2, now)
		r := ended(t, running, row.e, now)
		if r.Status != row.status || r.DoubtSince.IsZero() == row.doubt {
			t.Errorf("%s: the record is %v, in doubt since %v, want %v, in doubt: %v", row.name, r.Status, r.DoubtSince, row.status, row.doubt)
		}
		if row.doubt && !before.DoubtSince.IsZero() && !r.DoubtSince.Equal(before.DoubtSince) {
			t.Errorf("%s: in doubt since %v, want %v, when the first attempt began", row.name, r.DoubtSince, before.DoubtSince)
		}
		if row.status == idempotency.StatusFailed && row.before == "failed" && (!r.Created.Equal(before.Created) || !r.Expires.Equal(before.Expires)) {
			t.Errorf("%s: got %+v, want the times of before the claim", row.name, r)
		}
		if again := ended(t, r, row.e, now); !again.Equal(r) {
			t.Errorf("%s: repeated: %+v became %+v", row.name, r, again)
		}
		next := newClaim()
		if got := idempotency.Decide(r, next, now); got != row.next {
			t.Errorf("%s: the next claim is %v, want %v", row.name, got, row.next)
		}
		next.Fingerprint = idempotency.FingerprintOf("test/1", []byte("another payload"))
		if got := idempotency.Decide(r, next, now); got != row.conflict {
			t.Errorf("%s: the next claim with another payload is %v, want %v", row.name, got, row.conflict)
		}
	}
}

// An ending of a claim that was overtaken, or that ended in another way, is refused.
func TestStaleEndings(t *testing.T) {
	now := t0.Add(2 * time.Minute)
	all := map[string]idempotency.Ending{
		"complete": completed, "release": released, "extend": idempotency.Extended(time.Hour),
		"fail without proof": failedWith(idempotency.ProofNone), "fail": failedWith(idempotency.ProofForClaim), "fail for all": failedWith(idempotency.ProofForAll),
	}
	first := claimed(t, idempotency.Terms{Lease: time.Minute, TTL: 24 * time.Hour, ResendFor: 24 * time.Hour})
	overtaken := idempotency.Grant(first, newClaim(), idempotency.DecisionReclaimed, 2, now)
	for name, e := range all {
		for after, r := range map[string]idempotency.Record{
			"nothing": {}, "runs": overtaken, "succeeded": ended(t, overtaken, completed, now),
			"failed": ended(t, overtaken, failedWith(idempotency.ProofForAll), now), "released": ended(t, overtaken, released, now),
			"completed itself": ended(t, first, idempotency.Completed(idempotency.Result{Response: []byte("other")}), now),
		} {
			var stale *idempotency.StaleClaimError
			got, err := idempotency.ApplyEnding(r, idempotency.Ref{Key: first.Key, Fence: 1}, e, now)
			if !errors.As(err, &stale) || stale.Fence != 1 || stale.Found != r.Fence || !got.Equal(r) {
				t.Errorf("%s, while the next claim %s: got %+v, %v", name, after, got, err)
			}
		}
	}
	if r := ended(t, first, completed, now); r.Status != idempotency.StatusSucceeded {
		t.Errorf("completed after the lease: %+v", r)
	}
}

// An extension moves the end of the lease, never back, and changes nothing else.
func TestExtensions(t *testing.T) {
	r := claimed(t, idempotency.Terms{Lease: time.Minute, TTL: idempotency.Forever})
	longer := ended(t, r, idempotency.Extended(2*time.Hour), t0.Add(2*time.Minute))
	want := r
	want.LeaseUntil = t0.Add(2*time.Hour + 2*time.Minute)
	if !longer.Equal(want) {
		t.Errorf("extended: got %+v, want %+v", longer, want)
	}
	if got := ended(t, longer, idempotency.Extended(time.Millisecond), t0.Add(3*time.Minute)); !got.Equal(want) {
		t.Errorf("extended by less: got %+v, want %+v", got, want)
	}
	if got := ended(t, longer, idempotency.Extended(idempotency.Forever), t0); got.LeaseUntil.Year() != 9999 {
		t.Errorf("extended without an end: the lease ends at %v", got.LeaseUntil)
	}
}
