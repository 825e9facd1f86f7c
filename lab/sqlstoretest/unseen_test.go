package sqlstoretest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/sqlstore"
)

// After a lookup found no record, a claim of the key skips the read before its transaction.
// The transaction still decides by the record in the database, because another store may
// have added the record after the lookup.
func TestClaimAfterLookup(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		s, other := d.store(t, sqlstore.Config{}), d.store(t, sqlstore.Config{})
		look := func(s *sqlstore.Store, name string) {
			t.Helper()
			if r, err := s.Lookup(t.Context(), claimOf(name).Key); err != nil || r[0].Status != idempotency.StatusAbsent {
				t.Fatalf("got %v, %v, want no record", r, err)
			}
		}
		look(s, "new")
		before := s.Stats()
		claim(t, s, claimOf("new"), idempotency.DecisionNew)
		if after := s.Stats(); after.Reads != before.Reads {
			t.Errorf("%d reads for a claim after a lookup, want none", after.Reads-before.Reads)
		}
		before = s.Stats()
		claim(t, s, claimOf("new"), idempotency.DecisionInProgress)
		if after := s.Stats(); after.Reads != before.Reads+1 || after.Transactions != before.Transactions {
			t.Errorf("%+v after %+v, want one read and no transaction", after, before)
		}

		look(s, "settled elsewhere")
		out := claim(t, other, claimOf("settled elsewhere"), idempotency.DecisionNew)
		if err := other.Finish(t.Context(), out.Ref(), idempotency.Completed(idempotency.Result{MessageID: "m"})); err != nil {
			t.Fatal(err)
		}
		if out := claim(t, s, claimOf("settled elsewhere"), idempotency.DecisionDuplicate); out.Record.Result.MessageID != "m" {
			t.Errorf("the result is %+v, want that of the other store", out.Record.Result)
		}
		look(s, "released elsewhere")
		out = claim(t, other, claimOf("released elsewhere"), idempotency.DecisionNew)
		if err := other.Finish(t.Context(), out.Ref(), idempotency.Released()); err != nil {
			t.Fatal(err)
		}
		if again := claim(t, s, claimOf("released elsewhere"), idempotency.DecisionNew); again.Record.Fence <= out.Record.Fence {
			t.Errorf("fence %d after %d", again.Record.Fence, out.Record.Fence)
		}

		n, err := s.Count(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		full := d.store(t, sqlstore.Config{Capacity: n + 1})
		look(full, "the last")
		claim(t, other, claimOf("the last"), idempotency.DecisionNew)
		claim(t, full, claimOf("the last"), idempotency.DecisionInProgress) // and not Full
	})
}

// A store works if its database has only one connection.
func TestOneConnection(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		db := d.open(t)
		db.SetMaxOpenConns(1)
		s := d.store(t, sqlstore.Config{DB: db})
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for n := range 20 {
					c := claimOf(fmt.Sprint(i, n))
					// Look up every second key. For the other keys, Claim itself reads
					// before its transaction.
					if n%2 == 0 {
						if _, err := s.Lookup(ctx, c.Key); err != nil {
							t.Error(err)
						}
					}
					out, err := s.Claim(ctx, c)
					if err != nil {
						t.Error(err)
						continue
					}
					if err := s.Finish(ctx, out.Ref(), idempotency.Completed(idempotency.Result{})); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
	})
}
