package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/redisstore"
)

// The Lua scripts follow the rules of package idempotency. Random claims, endings and
// pauses over one key give the same decisions and records as the functions Decide, Grant
// and Finish, including microseconds and the field Prior.
func TestScriptsAreTheRules(t *testing.T) {
	client := sharedServer(t).client()
	defer client.Close()
	const programs, steps = 300, 30
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	prefix := newPrefix()
	ctx := context.Background()
	s, err := redisstore.OpenWithOffset(ctx, redisstore.Config{Client: client, Prefix: prefix}, prefix+"offset")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	seen := map[string]int{}
	for p := range programs {
		key := idempotency.Key{Scope: "rules", Operation: "op", Value: fmt.Sprint(p)}
		tokens := []idempotency.Token{idempotency.NewToken(), idempotency.NewToken()}
		var model idempotency.Record
		var refs []idempotency.Ref
		var log []string
		for range steps {
			switch n := rng.IntN(10); {
			case n < 5 || len(refs) == 0:
				c := randomClaim(rng, key, tokens)
				log = append(log, fmt.Sprintf("claim %.4s %v %+v again %v", c.Token, c.Fingerprint, c.Terms, c.Resend))
				out, err := s.Claim(ctx, c)
				if err != nil {
					t.Fatal(err)
				}
				now := out.Record.ReadAt
				d := idempotency.Decide(model, c, now)
				if d != out.Decision {
					t.Fatalf("seed %d: got %v, want %v, after %q", seed, out.Decision, d, log)
				}
				if d.Granted() {
					model = idempotency.Grant(model, c, d, out.Record.Fence, now)
					refs = append(refs, out.Ref())
				}
				if want := idempotency.NewOutcome(d, model, c); !out.Record.Equal(model) || out.Drift != want.Drift {
					t.Fatalf("seed %d: got %+v, drift %v, want %+v, drift %v, after %q", seed, out.Record, out.Drift, model, want.Drift, log)
				}
				seen[d.String()]++
			case n < 8:
				ref := refs[max(0, len(refs)-1-rng.IntN(3))]
				transition := randomTransition(rng)
				log = append(log, fmt.Sprintf("finish %d %+v", ref.Fence, transition))
				before, lookupErr := s.Lookup(ctx, key)
				if lookupErr != nil {
					t.Fatal(lookupErr)
				}
				err := finish(ctx, s, ref, transition)
				records, lookupErr := s.Lookup(ctx, key)
				if lookupErr != nil {
					t.Fatal(lookupErr)
				}
				// Some endings end the lease at the server's time, which the test does
				// not know exactly. Copy it from the record.
				now := records[0].ReadAt
				next, wantErr := idempotency.ApplyEnding(model, ref, transition, now)
				if wantErr == nil && next.LeaseUntil.Equal(now) && records[0].LeaseUntil.Before(now) && !records[0].LeaseUntil.Before(before[0].ReadAt) {
					next.LeaseUntil = records[0].LeaseUntil
				}
				if next.Status == idempotency.StatusAbsent {
					// After a release, idempotency.ApplyEnding returns a record with LeaseUntil,
					// but the store returns a record without it.
					next.LeaseUntil = time.Time{}
				}
				if (err == nil) != (wantErr == nil) || err != nil && !sameStale(err, wantErr) {
					t.Fatalf("seed %d: got %v, want %v, after %q", seed, err, wantErr, log)
				}
				model = next
				if next.Status == idempotency.StatusAbsent {
					if r := records[0]; !r.Equal(idempotency.Record{Key: key}) {
						t.Fatalf("seed %d: got %+v, want nothing, after %q", seed, r, log)
					}
				} else if !records[0].Equal(model) {
					t.Fatalf("seed %d: got %+v, want %+v, after %q", seed, records[0], model, log)
				}
				seen[fmt.Sprintf("finished: %v, stale: %v", next.Status, wantErr != nil)]++
			default:
				d := time.Duration(1+rng.IntN(90)) * time.Second
				log = append(log, "passes "+d.String())
				if err := client.IncrBy(ctx, prefix+"offset", int64(d.Seconds())).Err(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	t.Logf("seed %d: %v", seed, seen)
	for _, d := range []idempotency.Decision{
		idempotency.DecisionNew, idempotency.DecisionRenewed, idempotency.DecisionReclaimed, idempotency.DecisionDuplicate, idempotency.DecisionConflict,
		idempotency.DecisionInProgress, idempotency.DecisionUnresolved, idempotency.DecisionIncomparable,
	} {
		if seen[d.String()] == 0 {
			t.Errorf("seed %d: no claim came to %v", seed, d)
		}
	}
}

func sameStale(got, want error) bool {
	var g, w *idempotency.StaleClaimError
	return errors.As(got, &g) && errors.As(want, &w) && *g == *w
}

func randomClaim(rng *rand.Rand, key idempotency.Key, tokens []idempotency.Token) idempotency.Claim {
	body := []byte(pick(rng, "", "body", "other body"))
	group := pick(rng, "", "group")
	c := idempotency.Claim{
		Key: key, Token: pick(rng, tokens...), Body: body, Group: group,
		Fingerprint: idempotency.FingerprintOf(pick(rng, "test/1", "test/1", "test/1", "test/1", "test/1", "test/1", "test/1", "test/1", "test/1", "test/2"), []byte(pick(rng, "a", "a", "a", "a", "a", "b"))),
		ExactHash:   pick(rng, idempotency.ExactHash{}, idempotency.ExactHashOf(body, group)),
		Resend:      rng.IntN(8) == 0,
		Dataset:     idempotency.Dataset{ID: pick(rng, "", "noaa"), ReplaySafe: rng.IntN(2) == 0},
		Terms: idempotency.Terms{
			Lease: pick(rng, 10*time.Second, time.Minute+1234567*time.Nanosecond, time.Hour, 290*365*24*time.Hour),
			TTL:   pick(rng, time.Minute, 2*time.Hour, 24*time.Hour, 291*365*24*time.Hour, idempotency.Forever), ResendFor: pick(rng, 0, 1, time.Minute, time.Hour, idempotency.Forever),
		},
	}
	c.Terms.Lease = min(c.Terms.Lease, c.Terms.TTL)
	if c.Terms.TTL == idempotency.Forever && rng.IntN(8) == 0 {
		c.Terms.Lease = idempotency.Forever
	}
	return c
}

func randomTransition(rng *rand.Rand) idempotency.Ending {
	switch n := rng.IntN(6); n {
	case 0, 1:
		return idempotency.Completed(idempotency.Result{Response: []byte(pick(rng, "", "a")), MessageID: pick(rng, "", "m")})
	case 2:
		return idempotency.Released()
	default:
		return idempotency.FailedWith(idempotency.Failure{Proof: idempotency.Proof(n - 3), Reason: pick(rng, "", "because")})
	}
}

func finish(ctx context.Context, s idempotency.Store, ref idempotency.Ref, t idempotency.Ending) error {
	if result, ok := t.Result(); ok {
		return s.Finish(ctx, ref, idempotency.Completed(result))
	}
	if failure, ok := t.Failure(); ok {
		return s.Finish(ctx, ref, idempotency.FailedWith(failure))
	}
	return s.Finish(ctx, ref, idempotency.Released())
}

func pick[T any](rng *rand.Rand, of ...T) T { return of[rng.IntN(len(of))] }
