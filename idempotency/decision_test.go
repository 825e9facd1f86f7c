package idempotency_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

var t0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func newClaim() idempotency.Claim {
	body := []byte("body")
	return idempotency.Claim{
		Key: idempotency.Key{Scope: "s", Operation: "o", Value: "v"}, Token: idempotency.NewToken(),
		Fingerprint: idempotency.FingerprintOf("test/1", body), ExactHash: idempotency.ExactHashOf(body, ""), Body: body,
		Terms: idempotency.Terms{Lease: time.Minute, TTL: time.Hour, ResendFor: 5 * time.Minute},
	}
}

// A lease, window or TTL is over at its end time.
func TestDecideAtInstants(t *testing.T) {
	c := newClaim()
	running := idempotency.Grant(idempotency.Record{}, c, idempotency.DecisionNew, 1, t0)
	done, err := idempotency.ApplyEnding(running, idempotency.Ref{Key: c.Key, Fence: 1}, idempotency.Completed(idempotency.Result{}), t0)
	if err != nil {
		t.Fatal(err)
	}
	failed, err := idempotency.ApplyEnding(running, idempotency.Ref{Key: c.Key, Fence: 1}, idempotency.FailedWith(idempotency.Failure{Proof: idempotency.ProofForAll}), t0)
	if err != nil {
		t.Fatal(err)
	}
	other := newClaim()
	payload := newClaim()
	payload.Fingerprint = idempotency.FingerprintOf("test/1", []byte("other"))
	for _, tc := range []struct {
		found idempotency.Record
		c     idempotency.Claim
		after time.Duration
		want  idempotency.Decision
	}{
		{running, other, time.Minute - 1, idempotency.DecisionInProgress},
		{running, other, time.Minute, idempotency.DecisionReclaimed},
		{running, other, 5*time.Minute - 1, idempotency.DecisionReclaimed},
		{running, other, 5 * time.Minute, idempotency.DecisionUnresolved},
		{running, other, 100 * time.Hour, idempotency.DecisionUnresolved}, // a TTL never ends a running operation
		{running, c, 100 * time.Hour, idempotency.DecisionRenewed},
		{done, other, time.Hour - 1, idempotency.DecisionDuplicate},
		{done, other, time.Hour, idempotency.DecisionNew},
		{done, payload, time.Hour - 1, idempotency.DecisionConflict},
		{done, payload, time.Hour, idempotency.DecisionNew},
		{failed, payload, time.Hour - 1, idempotency.DecisionConflict},
		{failed, payload, time.Hour, idempotency.DecisionNew},
	} {
		if got := idempotency.Decide(tc.found, tc.c, t0.Add(tc.after)); got != tc.want {
			t.Errorf("%v after %v: got %v, want %v", tc.found.Status, tc.after, got, tc.want)
		}
	}
	// Neither the released record nor this claim has a token. Two empty tokens must not
	// count as the same claimant.
	released := running
	released.Token = idempotency.Token{}
	if got := idempotency.Decide(released, idempotency.Claim{Fingerprint: c.Fingerprint}, t0); got != idempotency.DecisionInProgress {
		t.Errorf("no token: got %v, want in progress", got)
	}
}

// Random claims and endings of one key must keep these rules:
//
//   - A granted claim increases the record's Fence, unless it is DecisionRenewed.
//   - A claim granted as DecisionRenewed or DecisionReclaimed does not change the stored request.
//   - While an attempt may have taken effect, no claim is granted as DecisionNew.
func TestRulesKeepTheirInvariants(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		var r idempotency.Record
		now, fence := t0, int64(0)
		tokens := []idempotency.Token{idempotency.NewToken(), idempotency.NewToken(), idempotency.NewToken()}
		unrecordedEffect := false // an attempt took effect, and no completion is recorded
		for range 60 {
			if rng.IntN(3) > 0 {
				now = now.Add(time.Duration(rng.Int64N(int64(2 * time.Minute))))
			}
			before := r
			if rng.IntN(2) == 0 {
				c := newClaim()
				c.Token = tokens[rng.IntN(len(tokens))]
				c.Resend = rng.IntN(10) == 0
				c.Body = []byte{byte(rng.IntN(3))}
				if rng.IntN(5) == 0 {
					c.Fingerprint = idempotency.FingerprintOf("test/1", []byte("other"))
				}
				d := idempotency.Decide(r, c, now)
				if !d.Granted() {
					continue
				}
				fence++
				r = idempotency.Grant(r, c, d, fence, now)
				switch {
				case d == idempotency.DecisionNew && before.Status == idempotency.StatusRunning:
					t.Fatal("a running operation began anew")
				case d == idempotency.DecisionNew && unrecordedEffect:
					t.Fatal("an operation in doubt began anew")
				case d != idempotency.DecisionNew && (string(r.Body) != string(before.Body) || r.Fingerprint != before.Fingerprint || !r.DoubtSince.Equal(before.DoubtSince)):
					t.Fatal("a later claim changed the stored bytes, the fingerprint or the begin of the doubt")
				case r.Fence < before.Fence, d != idempotency.DecisionRenewed && r.Fence <= before.Fence:
					t.Fatal("a fence did not grow")
				case r.DoubtSince.IsZero():
					t.Fatal("a claim without a doubt")
				}
				// Half of the granted claims take effect. The record does not show an
				// effect until the claim is completed.
				unrecordedEffect = unrecordedEffect || rng.IntN(2) == 0
				continue
			}
			ref := idempotency.Ref{Key: newClaim().Key, Fence: max(1, r.Fence-int64(rng.IntN(2)))}
			var tr idempotency.Ending
			completes := false
			switch rng.IntN(4) {
			case 0:
				tr, completes = idempotency.Completed(idempotency.Result{}), true
			// Cases 1 and 2 report that this claim had no effect. Skip them if only this
			// claim can have caused the unrecorded effect.
			case 1:
				if unrecordedEffect && r.Prior.Status != idempotency.StatusRunning {
					continue
				}
				tr = idempotency.Released()
			case 2:
				if unrecordedEffect && r.Prior.Status != idempotency.StatusRunning {
					continue
				}
				tr = idempotency.FailedWith(idempotency.Failure{Proof: idempotency.ProofForClaim})
			case 3:
				tr = idempotency.FailedWith(idempotency.Failure{})
			}
			next, err := idempotency.ApplyEnding(r, ref, tr, now)
			if err != nil {
				if !next.Equal(before) {
					t.Fatal("a stale transition changed the record")
				}
				continue
			}
			r = next
			if completes && r.Status == idempotency.StatusSucceeded {
				unrecordedEffect = false
			}
			if unrecordedEffect && (r.Status != idempotency.StatusRunning || r.DoubtSince.IsZero()) {
				t.Fatalf("an effect without proof is %v, in doubt since %v", r.Status, r.DoubtSince)
			}
		}
	}
}

func TestTimesThatOverflow(t *testing.T) {
	c := newClaim()
	c.Terms = idempotency.Terms{Lease: idempotency.Forever, TTL: idempotency.Forever, ResendFor: idempotency.Forever}
	r := idempotency.Grant(idempotency.Record{}, c, idempotency.DecisionNew, 1, t0)
	if !r.Expires.IsZero() || r.LeaseUntil.Year() != 9999 || r.ResendUntil.Year() != 9999 {
		t.Errorf("for ever became lease %v, resend %v, expires %v", r.LeaseUntil, r.ResendUntil, r.Expires)
	}
	c.Terms.TTL--
	if r = idempotency.Grant(idempotency.Record{}, c, idempotency.DecisionNew, 1, t0); !r.Expires.After(t0) {
		t.Errorf("a long TTL ends at %v", r.Expires)
	}
}
