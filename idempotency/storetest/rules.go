package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// checkRules makes random calls one after another, and compares each answer and each record
// with the functions Decide, Grant and ApplyEnding of package idempotency. Tests of package
// idempotency hold these functions.
func checkRules(p *probe) {
	programs, steps := 12, 250
	if p.Advance == nil {
		programs, steps = 2, 200 // time passes by sleeping
	}
	fences := map[int64]bool{}
	for range programs {
		m := &program{probe: p, records: map[idempotency.Key]idempotency.Record{}, fences: fences}
		for range 6 {
			m.keys = append(m.keys, p.key())
		}
		// The processes of owner a began one after another.
		began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		for _, later := range []time.Duration{0, time.Millisecond, 24 * time.Hour} {
			m.tokens = append(m.tokens, idempotency.NewTokenOf("a", began.Add(later)))
		}
		m.tokens = append(m.tokens, idempotency.NewTokenOf("b", began.Add(time.Hour)), idempotency.NewToken(), idempotency.NewToken())
		for range steps {
			if m.step(); len(p.failed) > 0 {
				return
			}
		}
	}
}

// program makes random calls of a store. The field `records` has the expected records.
type program struct {
	*probe
	keys    []idempotency.Key
	tokens  []idempotency.Token
	records map[idempotency.Key]idempotency.Record
	fences  map[int64]bool // all fences of the check
	refs    []idempotency.Ref
	last    func() // the last call
	log     []string
}

func (m *program) step() {
	k := pick(m.rng, m.keys...)
	switch n := m.rng.IntN(24); {
	case n == 0:
		m.log = append(m.log, "time passes")
		m.pass()
		for _, k := range m.keys {
			m.compare(k)
		}
	case n < 4 && m.last != nil:
		m.last() // repeats the call, as after a lost answer
	case n < 14 || len(m.refs) == 0:
		c := m.randomClaim(k)
		m.last = func() { m.claim(c) }
		m.last()
	default:
		ref := m.refs[len(m.refs)-1-m.rng.IntN(min(len(m.refs), 12))]
		if n == 14 {
			ref.Key = k // probably a claim of another key
		}
		e := m.randomEnding()
		m.last = func() { m.end(ref, e) }
		m.last()
	}
}

func (m *program) claim(c idempotency.Claim) {
	m.log = append(m.log, fmt.Sprintf("claim %.3s token %.4s.. %v %v %+v", c.Key.ID(), c.Token, c.Fingerprint, c.Resend, c.Terms))
	found := m.records[c.Key]
	out, err := m.store.Claim(m.ctx, c)
	m.must(err, "claim")
	now := out.Record.ReadAt
	want := idempotency.NewOutcome(idempotency.Decide(found, c, now), found, c)
	if want.Decision.Granted() {
		fence := out.Record.Fence
		if want.Decision != idempotency.DecisionRenewed {
			if fence <= found.Fence || m.fences[fence] {
				m.fail("got the fence %d after %d, or a second time, after %q", fence, found.Fence, m.log)
			}
			m.fences[fence] = true
			m.refs = append(m.refs, out.Ref())
		}
		m.records[c.Key] = idempotency.Grant(found, c, want.Decision, fence, now)
		want = idempotency.NewOutcome(want.Decision, m.records[c.Key], c)
		m.sameRecord(fmt.Sprintf("granted after %q", m.log), out.Record, want.Record)
	}
	want.Record.ReadAt = now
	if out.Decision != want.Decision || out.Drift != want.Drift || (out.RetryAfter()-want.RetryAfter()).Abs() > tolerance {
		m.fail("got the decision %q, drift %v, retry after %v, want %q, %v, %v, after %q",
			out.Decision, out.Drift, out.RetryAfter(), want.Decision, want.Drift, want.RetryAfter(), m.log)
	}
	if out.Decision == idempotency.DecisionDuplicate && out.Record.Result.Hash() != found.Result.Hash() {
		m.fail("got the result %+v, want %+v, after %q", out.Record.Result, found.Result, m.log)
	}
	m.compare(c.Key)
}

func (m *program) end(ref idempotency.Ref, e idempotency.Ending) {
	m.log = append(m.log, fmt.Sprintf("%v %.3s fence %d %+v", e, ref.Key.ID(), ref.Fence, e))
	want, wantErr := idempotency.ApplyEnding(m.records[ref.Key], ref, e, m.lookup(ref.Key).ReadAt)
	m.records[ref.Key] = want
	err := finish(m.ctx, m.store, ref, e)
	switch {
	case wantErr != nil:
		m.stale(fmt.Sprintf("after %q", m.log), err, ref)
	case err != nil:
		m.fail("got %v, want no error, after %q", err, m.log)
	}
	m.compare(ref.Key)
}

// compare looks k up and compares the record with the expected one, which then takes over
// the record's times: the store read its clock a little later than this program.
func (m *program) compare(k idempotency.Key) {
	got, want := m.lookup(k), m.records[k]
	if want.Status == idempotency.StatusAbsent {
		if got.Status != idempotency.StatusAbsent {
			m.fail("looked up %+v, want nothing, after %q", got, m.log)
		}
		return
	}
	m.sameRecord(fmt.Sprintf("looked up after %q", m.log), got, want)
	got.Prior = want.Prior
	m.records[k] = got
}

func (m *program) randomClaim(k idempotency.Key) idempotency.Claim {
	c := claim(k)
	c.Token = pick(m.rng, m.tokens...)
	c.Fingerprint = pick(m.rng, c.Fingerprint, c.Fingerprint, c.Fingerprint, c.Fingerprint, c.Fingerprint, c.Fingerprint,
		fingerprint("another"), idempotency.FingerprintOf("test/2", []byte("payload")))
	c.Body, c.Group = []byte(pick(m.rng, "body", "other body")), pick(m.rng, "group", "other group")
	c.ExactHash = idempotency.ExactHashOf(c.Body, c.Group)
	c.Dataset.ID = pick(m.rng, "", "noaa")
	c.Terms.Lease = pick(m.rng, m.short(), long)
	c.Terms.TTL = max(c.Terms.Lease, pick(m.rng, m.short(), 24*long, idempotency.Forever))
	c.Terms.ResendFor = pick(m.rng, 0, m.short(), 24*long, idempotency.Forever)
	c.Resend = m.rng.IntN(6) == 0
	return c
}

func finish(ctx context.Context, s idempotency.Store, ref idempotency.Ref, e idempotency.Ending) error {
	if lease, ok := e.Lease(); ok {
		return s.Extend(ctx, ref, lease)
	}
	return s.Finish(ctx, ref, e)
}

func (m *program) randomEnding() idempotency.Ending {
	switch n := m.rng.IntN(7); n {
	case 6:
		return idempotency.Extended(pick(m.rng, time.Millisecond, m.short(), long, 2*long, idempotency.Forever))
	case 0, 1:
		return idempotency.Completed(idempotency.Result{Response: []byte(pick(m.rng, "a", "b"))})
	case 2:
		return idempotency.Released()
	default:
		return idempotency.FailedWith(idempotency.Failure{Proof: idempotency.Proof(n - 3), Reason: pick(m.rng, "", "because")})
	}
}

func pick[T any](rng *rand.Rand, of ...T) T { return of[rng.IntN(len(of))] }

// tolerance is the largest accepted difference of two times that were computed from two
// clock readings.
const tolerance = 2 * time.Second

// sameRecord compares the required fields. It does not compare Prior, which is internal
// to a store.
func (p *probe) sameRecord(doing string, got, want idempotency.Record) {
	near := func(name string, g, w time.Time) {
		if g.IsZero() != w.IsZero() || g.Sub(w).Abs() > tolerance {
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

func (p *probe) stale(doing string, err error, ref idempotency.Ref) {
	var stale *idempotency.StaleClaimError
	if !errors.Is(err, idempotency.ErrStaleClaim) || !errors.As(err, &stale) {
		p.fail("%s: got %v, want a StaleClaimError", doing, err)
	} else if stale.Fence != ref.Fence || stale.ID != ref.Key.ID() {
		p.fail("%s: the StaleClaimError is about claim %d of %v, want %d of %v", doing, stale.Fence, stale.ID, ref.Fence, ref.Key.ID())
	}
}
