package sqlstoretest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/ledger"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/sqlstore"
)

// The database's clock is set back after the end of an operation's resend time. The
// operation stays unresolved, even in another store. Later claims work, and an earlier
// claim can still be finished.
func TestClockSetBack(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		for name, restart := range map[string]bool{"the same process": false, "another process": true} {
			t.Run(name, func(t *testing.T) {
				d := d
				if d.dialect == sqlstore.PostgreSQL {
					d = newPostgreSQL(t)
				} else {
					d = newSQLite(t)
				}
				// Create the schema first: on PostgreSQL it contains the function
				// idempotency_clock(), which advancing() replaces.
				d.store(t, sqlstore.Config{})
				advance, clock := advancing(t, d)
				s := d.store(t, sqlstore.Config{Clock: clock, Ledger: true})
				lost, kept := claimOf("lost"), claimOf("kept")
				for _, c := range []*idempotency.Claim{&lost, &kept} {
					c.Terms.Lease, c.Terms.ResendFor = 10*time.Second, 265*time.Second
				}
				claim(t, s, lost, idempotency.New)
				held := claim(t, s, kept, idempotency.New)
				advance(10 * time.Minute)
				if restart {
					claim(t, s, claimOf("that another process commits"), idempotency.New)
					s = d.store(t, sqlstore.Config{Clock: clock, Ledger: true})
				} else if _, err := s.Lookup(t.Context(), claimOf("absent").Key); err != nil {
					t.Fatal(err)
				}
				advance(-8 * time.Minute)

				again := lost
				again.Token = idempotency.NewToken()
				if out := claim(t, s, again, idempotency.Unresolved); out.Record.Reason == "" {
					t.Error("the record does not say why it is unresolved")
				}
				if n := s.Stats().ClockSteps; n != 1 {
					t.Errorf("%d steps of the clock, want 1", n)
				}
				claim(t, s, claimOf("later"), idempotency.New)
				if err := s.Finish(t.Context(), held.Ref(), idempotency.Completed(idempotency.Result{})); err != nil {
					t.Errorf("the claimant itself: %v", err)
				}
				if n := s.Stats().ClockSteps; n != 1 {
					t.Errorf("%d steps of the clock after more writes, want 1", n)
				}
				seal(t, sealer(t, s.Ledger()))
				entries := 0
				for line, err := range s.Ledger().Lines(t.Context(), ledger.Head{}) {
					if err != nil {
						t.Fatal(err)
					}
					if line.Entry != nil && line.Entry.Event == ledger.InDoubt && line.Entry.Note != "" {
						entries++
					}
				}
				if entries < 2 {
					t.Errorf("the ledger has %d of the operations that were held", entries)
				}
			})
		}
	})
}

// If the database's clock steps back by less than the tolerance, an operation whose lease
// has ended can still be claimed again. After a larger step, it would be unresolved.
func TestClockSlews(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		d.store(t, sqlstore.Config{})
		advance, clock := advancing(t, d)
		s := d.store(t, sqlstore.Config{Clock: clock})
		c := claimOf("a")
		c.Terms.Lease, c.Terms.ResendFor = time.Second, 265*time.Second
		claim(t, s, c, idempotency.New)
		advance(time.Minute)
		claim(t, s, claimOf("b"), idempotency.New)
		advance(-4 * time.Second)
		c.Token = idempotency.NewToken()
		claim(t, s, c, idempotency.Reclaimed)
	})
}

// Purge deletes the row of a released claim, even if the claim's TTL is Forever, and keeps
// the row of a completed claim.
func TestPurgeReleased(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		s := d.store(t, sqlstore.Config{})
		c := claimOf("a")
		c.Terms.TTL = idempotency.Forever
		if err := s.Finish(t.Context(), claim(t, s, c, idempotency.New).Ref(), idempotency.Released()); err != nil {
			t.Fatal(err)
		}
		kept := claimOf("b")
		kept.Terms.TTL = idempotency.Forever
		if err := s.Finish(t.Context(), claim(t, s, kept, idempotency.New).Ref(), idempotency.Completed(idempotency.Result{})); err != nil {
			t.Fatal(err)
		}
		if n, err := s.Purge(t.Context()); err != nil || n != 1 {
			t.Errorf("purged %d, %v, want the released row", n, err)
		}
		claim(t, s, kept, idempotency.Duplicate)
	})
}

// Purge succeeds during writes, even if the database's default isolation level is
// SERIALIZABLE.
func TestPurgeUnderSerializableDefault(t *testing.T) {
	d := newPostgreSQL(t)
	d.source += "&default_transaction_isolation=serializable"
	s := d.store(t, sqlstore.Config{})
	stop := make(chan struct{})
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				c := claimOf(fmt.Sprintf("%d-%d", w, i%50))
				c.Terms.Lease, c.Terms.TTL = time.Millisecond, time.Millisecond
				if out, err := s.Claim(t.Context(), c); err != nil {
					t.Error(err)
				} else if out.Decision.Granted() {
					_ = s.Finish(t.Context(), out.Ref(), idempotency.Completed(idempotency.Result{}))
				}
			}
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var purged int64
	for calls := 0; ctx.Err() == nil && (calls < 100 || purged == 0); calls++ {
		n, err := s.Purge(ctx)
		if err != nil {
			t.Error(err)
		}
		purged += n
	}
	close(stop)
	writers.Wait()
	if purged == 0 {
		t.Error("nothing was purged")
	}
}
