package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/redisstore"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/storetest"
)

// The suite of package storetest passes with the server's clock and with an adjustable
// clock.
func TestStore(t *testing.T) {
	client := sharedServer(t).client()
	defer client.Close()
	t.Run("server's clock", func(t *testing.T) {
		storetest.Run(t, func(*testing.T) storetest.Storage {
			prefix := newPrefix()
			return storetest.Storage{Open: func() (idempotency.Store, error) {
				return redisstore.Open(context.Background(), redisstore.Config{Client: client, Prefix: prefix})
			}}
		})
	})
	t.Run("advanced clock", func(t *testing.T) {
		storetest.Run(t, func(*testing.T) storetest.Storage {
			prefix := newPrefix()
			return storetest.Storage{
				Open: func() (idempotency.Store, error) {
					return redisstore.OpenWithOffset(context.Background(), redisstore.Config{Client: client, Prefix: prefix}, prefix+"offset")
				},
				Advance: func(d time.Duration) {
					if err := client.IncrBy(context.Background(), prefix+"offset", int64(d.Seconds())).Err(); err != nil {
						t.Error(err)
					}
				},
			}
		})
	})
}

// If the server does not answer, a call returns when its context ends. The error says
// that the change may have been made, and a repeated call finds the change. Close waits
// for running calls.
func TestSilentServer(t *testing.T) {
	server := newServer(t, durable...)
	client := server.client()
	defer client.Close()
	s := newStore(t, server, redisstore.Config{Client: client})
	finished := claim(t, s, claimOf("finished"), idempotency.DecisionNew)
	pause := func() {
		if err := client.Do(t.Context(), "CLIENT", "PAUSE", 400, "ALL").Err(); err != nil {
			t.Fatal(err)
		}
	}
	canceled := func(doing string, write bool, call func(context.Context) error) {
		t.Helper()
		pause()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		err := call(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, idempotency.ErrAmbiguous) != write {
			t.Errorf("%s: got %v, want context.DeadlineExceeded, ambiguous: %v", doing, err, write)
		}
		if err := client.Ping(t.Context()).Err(); err != nil { // waits until the pause is over
			t.Fatal(err)
		}
	}
	c := claimOf("a")
	canceled("claim", true, func(ctx context.Context) error { _, err := s.Claim(ctx, c); return err })
	claim(t, s, c, idempotency.DecisionRenewed)
	canceled("complete", true, func(ctx context.Context) error {
		return s.Finish(ctx, finished.Ref(), idempotency.Completed(idempotency.Result{}))
	})
	if err := s.Finish(t.Context(), finished.Ref(), idempotency.Completed(idempotency.Result{})); err != nil {
		t.Error(err)
	}
	canceled("lookup", false, func(ctx context.Context) error { _, err := s.Lookup(ctx, c.Key); return err })
	canceled("scan", false, func(ctx context.Context) error {
		for _, err := range s.Scan(ctx, idempotency.Filter{}) {
			if err != nil {
				return err
			}
		}
		return nil
	})
	d := claimOf("d")
	pause()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := s.Claim(ctx, d); err == nil {
		t.Error("a claim was answered by a server that is paused")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Claim(t.Context(), d); !errors.Is(err, idempotency.ErrClosed) {
		t.Errorf("a claim after Close: got %v, want ErrClosed", err)
	}
	if n := client.PoolStats(); n.TotalConns != n.IdleConns {
		t.Errorf("after Close, %d of %d connections are idle", n.IdleConns, n.TotalConns)
	}
}

// The server loses its scripts at a restart and at SCRIPT FLUSH.
func TestScriptFlush(t *testing.T) {
	server := newServer(t, durable...)
	client := server.client()
	defer client.Close()
	s := newStore(t, server, redisstore.Config{Client: client})
	for i := range 3 {
		c := claimOf(fmt.Sprint(i))
		outs, err := s.ClaimBatch(t.Context(), []idempotency.Claim{c, claimOf(fmt.Sprint(i, "b")), c})
		if err != nil || outs[0].Decision != idempotency.DecisionNew || outs[1].Decision != idempotency.DecisionNew || outs[2].Decision != idempotency.DecisionRenewed {
			t.Fatalf("got %v, %v, want new, new, renewed", outs, err)
		}
		if err := client.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// A foreign value at the Redis key of a record causes an error and stays unchanged.
func TestForeignKeys(t *testing.T) {
	server := newServer(t, durable...)
	client := server.client()
	defer client.Close()
	s := newStore(t, server, redisstore.Config{Client: client})
	c := claimOf("a")
	name := redisstore.RecordName(s, c.Key)
	if err := client.Set(t.Context(), name, "x", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if out, err := s.Claim(t.Context(), c); err == nil {
		t.Errorf("claim of a key with a text: got %v", out)
	}
	if got := client.Get(t.Context(), name).Val(); got != "x" {
		t.Errorf("the text became %q", got)
	}
	if err := client.Do(t.Context(), "DEL", name).Err(); err != nil {
		t.Fatal(err)
	}
	if err := client.HSet(t.Context(), name, "status", "strange").Err(); err != nil {
		t.Fatal(err)
	}
	if r, err := s.Lookup(t.Context(), c.Key); err == nil {
		t.Errorf("lookup of a strange record: got %v", r)
	}
}

// A scan returns only the records of its store. The prefix of one store may begin with
// the prefix of another store, or look like a pattern.
func TestPrefixes(t *testing.T) {
	server := newServer(t, durable...)
	client := server.client()
	defer client.Close()
	prefixes := []string{"", "a", "a*", "aa", "[a]", `a\`, "idempotency:", "idempotency:test.run:"}
	for _, prefix := range prefixes {
		s, err := redisstore.Open(t.Context(), redisstore.Config{Client: client, Prefix: prefix})
		if err != nil {
			t.Fatal(err)
		}
		for _, operation := range []string{"test.run", "test", "*", "[a-z]*", `\`, "test.run:idempotency:test.run"} {
			c := claimOf("of " + prefix)
			c.Key.Operation = operation
			claim(t, s, c, idempotency.DecisionNew)
		}
	}
	for _, prefix := range prefixes {
		s, err := redisstore.Open(t.Context(), redisstore.Config{Client: client, Prefix: prefix})
		if err != nil {
			t.Fatal(err)
		}
		for operation, want := range map[string]int{"": 6, "test": 1, "*": 1, "[a-z]*": 1, `\`: 1, "t": 0} {
			n := 0
			for r, err := range s.Scan(t.Context(), idempotency.Filter{Operation: operation}) {
				if err != nil || r.Key.Value != "of "+prefix {
					t.Fatalf("scan of prefix %q: got the record %q, %v", prefix, r.Key.Value, err)
				}
				n++
			}
			if n != want {
				t.Errorf("scan of prefix %q and operation %q: %d records, want %d", prefix, operation, n, want)
			}
		}
	}
}

// An operation is attempted twice. The first outcome is unknown, and the second attempt
// certainly had no effect (ProofForClaim), so the operation stays in doubt. The second
// attempt has ended: a result reported for it later is refused.
func TestEndedInDoubt(t *testing.T) {
	client := sharedServer(t).client()
	defer client.Close()
	s := newStore(t, nil, redisstore.Config{Client: client})
	c := claimOf("a")
	first := claim(t, s, c, idempotency.DecisionNew)
	if err := s.Finish(t.Context(), first.Ref(), idempotency.FailedWith(idempotency.Failure{})); err != nil {
		t.Fatal(err)
	}
	c.Token, c.Resend = idempotency.NewToken(), true
	second := claim(t, s, c, idempotency.DecisionReclaimed)
	for range 2 {
		if err := s.Finish(t.Context(), second.Ref(), idempotency.FailedWith(idempotency.Failure{Proof: idempotency.ProofForClaim})); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Finish(t.Context(), second.Ref(), idempotency.Completed(idempotency.Result{})); !errors.Is(err, idempotency.ErrStaleClaim) {
		t.Errorf("a completion after a failure: got %v, want a stale claim", err)
	}
}
