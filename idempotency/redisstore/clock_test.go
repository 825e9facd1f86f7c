package redisstore_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/redisstore"
)

// The server's clock is set back while operations run. The store then does not know when
// these operations began, and permits no second run (Unresolved). Their claimants can
// still finish them. Operations claimed later, and operations that are always safe to
// repeat (ResendFor is Forever), are not affected.
func TestClockSetBack(t *testing.T) {
	client := sharedServer(t).client()
	defer client.Close()
	for _, name := range []string{"the same process", "another process", "another process, after a lookup", "another process, after a refused claim", "a bucket of a cluster"} {
		t.Run(name, func(t *testing.T) {
			prefix := newPrefix()
			var log bytes.Buffer
			open := func() *redisstore.Store {
				s, err := redisstore.OpenWithOffset(t.Context(), redisstore.Config{Client: client, Prefix: prefix, Logger: slog.New(slog.NewTextHandler(&log, nil))}, prefix+"offset")
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { s.Close() })
				if name == "a bucket of a cluster" {
					redisstore.WatchBuckets(s)
				}
				return s
			}
			advance := func(d time.Duration) {
				t.Helper()
				if err := client.IncrBy(t.Context(), prefix+"offset", int64(d.Seconds())).Err(); err != nil {
					t.Fatal(err)
				}
			}
			lookup := func(s *redisstore.Store, c idempotency.Claim) idempotency.Record {
				t.Helper()
				r, err := s.Lookup(t.Context(), c.Key)
				if err != nil {
					t.Fatal(err)
				}
				return r[0]
			}
			short := func(value string) idempotency.Claim {
				c := claimOf(value)
				c.Terms.Lease, c.Terms.ResendFor = 10*time.Second, 265*time.Second
				return c
			}
			s := open()
			lost, kept, always := short("lost"), short("kept"), short("always safe")
			always.Terms.ResendFor = idempotency.Forever
			for _, c := range []idempotency.Claim{lost, always} {
				claim(t, s, c, idempotency.DecisionNew)
			}
			held := claim(t, s, kept, idempotency.DecisionNew)
			advance(10 * time.Minute)
			recent := short("recent")
			switch name {
			case "another process":
				claim(t, s, recent, idempotency.DecisionNew)
				s = open()
			case "another process, after a lookup":
				// In the second of the claim, the store has already read the time. The claim
				// must write the clock record anyway.
				lookup(s, claimOf("absent"))
				claim(t, s, recent, idempotency.DecisionNew)
				s = open()
			case "another process, after a refused claim":
				other := short("lost")
				other.Fingerprint.Sum[0]++
				claim(t, s, other, idempotency.DecisionConflict)
				claim(t, s, recent, idempotency.DecisionNew)
				s = open()
			case "the same process":
				lookup(s, claimOf("absent"))
				claim(t, s, recent, idempotency.DecisionNew)
			default:
				for _, c := range []idempotency.Claim{lost, kept, always, recent} {
					lookup(s, c)
				}
				claim(t, s, recent, idempotency.DecisionNew)
			}
			advance(-8 * time.Minute)

			again := func(c idempotency.Claim) idempotency.Claim {
				c.Token = idempotency.NewToken()
				return c
			}
			if r := lookup(s, lost); !r.ResendUntil.IsZero() {
				t.Errorf("a lookup shows the end of safe resends %v", r.ResendUntil)
			}
			if out := claim(t, s, again(lost), idempotency.DecisionUnresolved); out.Record.Reason == "" {
				t.Error("the record does not say why it is unresolved")
			}
			claim(t, s, again(always), idempotency.DecisionReclaimed)
			// In a cluster, a claim detects the clock step only for the bucket of its key.
			// This claim detects the step for the bucket of "recent". It gets InProgress,
			// because the lease of "recent" has not ended.
			claim(t, s, again(recent), idempotency.DecisionInProgress)
			later := short("later")
			first := claim(t, s, later, idempotency.DecisionNew)
			// In a cluster each bucket counts the step of the clock, so there is no fixed
			// count.
			if name != "a bucket of a cluster" {
				if n := s.Stats().ClockSteps; n != 1 || strings.Count(log.String(), "set back") != 1 {
					t.Errorf("%d steps of the clock, want 1; the log is %s", n, log.String())
				}
			}
			if err := s.Finish(t.Context(), held.Ref(), idempotency.Completed(idempotency.Result{})); err != nil {
				t.Errorf("the claimant itself: %v", err)
			}
			claim(t, s, again(kept), idempotency.DecisionDuplicate)
			advance(30 * time.Second)
			if out := claim(t, s, again(later), idempotency.DecisionReclaimed); out.Record.Fence <= first.Record.Fence {
				t.Errorf("fence %d after %d", out.Record.Fence, first.Record.Fence)
			}
			// After this advance, 8.5 minutes have passed since the claim of the key
			// "recent". The server's clock was set back after the claim, so it shows only
			// 30 seconds more than at the claim.
			advance(8 * time.Minute)
			claim(t, s, again(recent), idempotency.DecisionUnresolved)
			resend := again(lost)
			resend.Resend = true
			claim(t, s, resend, idempotency.DecisionReclaimed)
			advance(20 * time.Second)
			claim(t, s, again(lost), idempotency.DecisionUnresolved)
		})
	}
}

// A clock set back by 4 s, less than the tolerance of 5 s, has no effect.
func TestClockSlews(t *testing.T) {
	client := sharedServer(t).client()
	defer client.Close()
	prefix := newPrefix()
	s, err := redisstore.OpenWithOffset(t.Context(), redisstore.Config{Client: client, Prefix: prefix}, prefix+"offset")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c := claimOf("a")
	c.Terms.Lease, c.Terms.ResendFor = time.Second, 265*time.Second
	claim(t, s, c, idempotency.DecisionNew)
	for _, by := range []int64{60, -4} {
		if err := client.IncrBy(t.Context(), prefix+"offset", by).Err(); err != nil {
			t.Fatal(err)
		}
		claim(t, s, claimOf(newPrefix()), idempotency.DecisionNew)
	}
	c.Token = idempotency.NewToken()
	claim(t, s, c, idempotency.DecisionReclaimed)
	if n := s.Stats().ClockSteps; n != 0 {
		t.Errorf("%d steps of the clock, want none", n)
	}
}
