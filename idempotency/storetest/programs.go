package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// checkPrograms makes random sequential calls and compares each answer and each record
// with Decide, Grant and Finish of package idempotency.
func checkPrograms(p *probe) {
	const programs, steps = 12, 40
	for range programs {
		program{probe: p, records: map[idempotency.Key]idempotency.Record{}, keys: []idempotency.Key{p.key(), p.key()}}.run(steps)
		if len(p.failed) > 0 {
			return
		}
	}
}

// program makes random calls of a store. The field `records` has the expected records.
type program struct {
	*probe
	records map[idempotency.Key]idempotency.Record
	keys    []idempotency.Key
}

func (m program) run(steps int) {
	var refs []idempotency.Ref
	tokens := []idempotency.Token{idempotency.NewToken(), idempotency.NewToken(), idempotency.NewToken()}
	var log []string
	for range steps {
		k := m.keys[m.rng.IntN(len(m.keys))]
		switch n := m.rng.IntN(10); {
		case n < 5 || len(refs) == 0:
			c := m.randomClaim(k, tokens)
			log = append(log, fmt.Sprintf("claim %.3s token %.4s %v %+v", k.ID(), c.Token, c.Fingerprint, c.Terms))
			out, err := m.store.Claim(m.ctx, c)
			m.must(err, "claim")
			found := m.records[k]
			d := idempotency.Decide(found, c, out.Record.ReadAt)
			if d != out.Decision {
				m.fail("got the decision %q, want %q, after %q", out.Decision, d, log)
				return
			}
			if d.Granted() {
				m.records[k] = idempotency.Grant(found, c, d, out.Record.Fence, out.Record.ReadAt)
				m.sameRecord(fmt.Sprintf("granted after %q", log), out.Record, m.records[k])
				refs = append(refs, out.Ref())
			}
		case n < 9:
			ref := refs[len(refs)-1-m.rng.IntN(min(len(refs), 3))]
			name, t := m.randomEnding()
			log = append(log, fmt.Sprintf("%s %.3s fence %d", name, ref.Key.ID(), ref.Fence))
			now := m.lookup(ref.Key).ReadAt
			want, wantErr := idempotency.ApplyEnding(m.records[ref.Key], ref, t, now)
			err := finish(m.ctx, m.store, ref, t)
			if (err == nil) != (wantErr == nil) {
				m.fail("got %v, want %v, after %q", err, wantErr, log)
				return
			}
			m.records[ref.Key] = want
		default:
			if m.Advance == nil {
				continue
			}
			log = append(log, "time passes")
			m.pass()
		}
		for _, k := range m.keys {
			got, want := m.lookup(k), m.records[k]
			if want.Status == idempotency.StatusAbsent {
				if got.Status != idempotency.StatusAbsent {
					m.fail("looked up %+v, want nothing, after %q", got, log)
				}
				continue
			}
			m.sameRecord(fmt.Sprintf("looked up after %q", log), got, want)
		}
		if len(m.failed) > 0 {
			return
		}
	}
}

func (m program) randomClaim(k idempotency.Key, tokens []idempotency.Token) idempotency.Claim {
	c := claim(k)
	c.Token = pick(m.rng, tokens...)
	c.Fingerprint = fingerprint(pick(m.rng, "payload", "payload", "payload", "another"))
	c.Body = []byte(pick(m.rng, "body", "other body"))
	c.ExactHash = idempotency.ExactHashOf(c.Body, c.Group)
	c.Terms.ResendFor = pick(m.rng, 0, 24*long, idempotency.Forever)
	c.Terms.TTL = pick(m.rng, 24*long, idempotency.Forever)
	if m.Advance != nil {
		c.Terms.Lease = pick(m.rng, m.short(), long)
		c.Terms.TTL = max(c.Terms.Lease, pick(m.rng, m.short(), 24*long, idempotency.Forever))
		c.Terms.ResendFor = pick(m.rng, 0, m.short(), 24*long)
	}
	c.Resend = m.rng.IntN(6) == 0
	return c
}

func finish(ctx context.Context, s idempotency.Store, ref idempotency.Ref, e idempotency.Ending) error {
	if lease, ok := e.Lease(); ok {
		return s.Extend(ctx, ref, lease)
	}
	return s.Finish(ctx, ref, e)
}

func (m program) randomEnding() (string, idempotency.Ending) {
	switch n := m.rng.IntN(7); n {
	case 6:
		// A lease shorter than m.short() could end between two calls of this program.
		lease := pick(m.rng, m.short(), long, 2*long, idempotency.Forever)
		return fmt.Sprintf("extend by %v", lease), idempotency.Extended(lease)
	case 0, 1:
		return "complete", idempotency.Completed(idempotency.Result{Response: []byte(pick(m.rng, "a", "b"))})
	case 2:
		return "release", idempotency.Released()
	default:
		f := idempotency.Failure{Proof: idempotency.Proof(n - 3), Reason: pick(m.rng, "", "because")}
		return fmt.Sprintf("fail with proof %d", f.Proof), idempotency.FailedWith(f)
	}
}

func pick[T any](rng *rand.Rand, of ...T) T { return of[rng.IntN(len(of))] }
