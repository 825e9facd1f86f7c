package sqlstoretest

import (
	"context"
	"database/sql"
	"errors"
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
				d := d.another(t)
				// Create the schema first: on PostgreSQL it contains the function
				// idempotency_clock(), which advancing() replaces.
				d.store(t, sqlstore.Config{})
				advance, clock := advancing(t, d)
				s := d.store(t, sqlstore.Config{Clock: clock, Ledger: true})
				lost, kept := claimOf("lost"), claimOf("kept")
				for _, c := range []*idempotency.Claim{&lost, &kept} {
					c.Terms.Lease, c.Terms.ResendFor = 10*time.Second, 265*time.Second
				}
				claim(t, s, lost, idempotency.DecisionNew)
				held := claim(t, s, kept, idempotency.DecisionNew)
				advance(10 * time.Minute)
				if restart {
					claim(t, s, claimOf("that another process commits"), idempotency.DecisionNew)
					s = d.store(t, sqlstore.Config{Clock: clock, Ledger: true})
				} else if _, err := s.Lookup(t.Context(), claimOf("absent").Key); err != nil {
					t.Fatal(err)
				}
				advance(-8 * time.Minute)

				again := lost
				again.Token = idempotency.NewToken()
				if out := claim(t, s, again, idempotency.DecisionUnresolved); out.Record.Reason == "" {
					t.Error("the record does not say why it is unresolved")
				}
				if n := s.Stats().ClockSteps; n != 1 {
					t.Errorf("%d steps of the clock, want 1", n)
				}
				claim(t, s, claimOf("later"), idempotency.DecisionNew)
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
					if line.Entry != nil && line.Entry.Event == ledger.EventInDoubt && line.Entry.Note != "" {
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

// The first call after a backward step of the clock changes nothing in the database: its
// transaction is rolled back. The next call still finds that the clock was set back.
func TestClockSetBackBeforeRollback(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		for name, first := range map[string]func(t *testing.T, s *sqlstore.Store, db *sql.DB){
			"a transaction of the caller": func(t *testing.T, s *sqlstore.Store, db *sql.DB) {
				tx, err := db.Begin()
				if err != nil {
					t.Fatal(err)
				}
				_, _ = s.ClaimTx(t.Context(), tx, claimOf("absent"))
				if err := tx.Rollback(); err != nil {
					t.Fatal(err)
				}
			},
			"a group": func(t *testing.T, s *sqlstore.Store, _ *sql.DB) {
				if _, err := s.Claim(t.Context(), claimOf("refused")); err == nil {
					t.Fatal("the database has accepted the row")
				}
			},
			"a purge": func(t *testing.T, s *sqlstore.Store, _ *sql.DB) {
				if n, err := s.Purge(t.Context()); n > 0 || err != nil {
					t.Fatal(n, err)
				}
			},
		} {
			t.Run(name, func(t *testing.T) {
				d := d.another(t)
				db := d.open(t)
				d.store(t, sqlstore.Config{DB: db})
				refuse := `CREATE TRIGGER refuse BEFORE INSERT ON idempotency_keys WHEN NEW.key = CAST('refused' AS BLOB) BEGIN SELECT RAISE(ABORT, 'refused'); END`
				if d.dialect == sqlstore.PostgreSQL {
					refuse = `ALTER TABLE idempotency_keys ADD CHECK (key <> 'refused'::bytea)`
				}
				if _, err := db.Exec(refuse); err != nil {
					t.Fatal(err)
				}
				advance, clock := advancing(t, d)
				s := d.store(t, sqlstore.Config{DB: db, Clock: clock})
				lost := claimOf("lost")
				lost.Terms.Lease, lost.Terms.ResendFor = 10*time.Second, 265*time.Second
				claim(t, s, lost, idempotency.DecisionNew)
				advance(10 * time.Minute)
				if _, err := s.Lookup(t.Context(), claimOf("absent").Key); err != nil {
					t.Fatal(err)
				}
				advance(-8 * time.Minute)
				first(t, s, db)
				lost.Token = idempotency.NewToken()
				claim(t, s, lost, idempotency.DecisionUnresolved)
				if n := s.Stats().ClockSteps; n != 1 {
					t.Errorf("%d steps of the clock, want 1", n)
				}
			})
		}
	})
}

// A service that only uses ClaimTx and CompleteTx records the time, so that a later process
// detects that the clock was set back. It refuses claims until this is recorded.
func TestClockSetBackOnlyCallersTransactions(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		db := d.open(t)
		d.store(t, sqlstore.Config{DB: db})
		advance, clock := advancing(t, d)
		s := d.store(t, sqlstore.Config{DB: db, Clock: clock})
		in := func(s *sqlstore.Store, c idempotency.Claim) (out idempotency.Outcome, err error) {
			tx, err := db.Begin()
			if err != nil {
				t.Fatal(err)
			}
			out, err = s.ClaimTx(t.Context(), tx, c)
			if err != nil {
				return out, errors.Join(err, tx.Rollback())
			}
			return out, tx.Commit()
		}
		lost := claimOf("lost")
		lost.Terms.Lease, lost.Terms.ResendFor = 10*time.Second, 265*time.Second
		if out, err := in(s, lost); err != nil || out.Decision != idempotency.DecisionNew {
			t.Fatal(out.Decision, err)
		}
		for recorded := 0; recorded == 0; { // a concurrent recording would be skipped
			if err := db.QueryRow(`SELECT value FROM idempotency_meta WHERE name = 'clock'`).Scan(&recorded); err != nil {
				t.Fatal(err)
			}
		}
		advance(10 * time.Minute)
		if _, err := in(s, claimOf("later")); err != nil {
			t.Fatal(err)
		}
		s.Close()
		s = d.store(t, sqlstore.Config{DB: db, Clock: clock})
		advance(-8 * time.Minute)
		lost.Token = idempotency.NewToken()
		refused := 0
		for {
			out, err := in(s, lost)
			if errors.Is(err, idempotency.ErrBusy) {
				refused++
				continue
			}
			if err != nil || out.Decision != idempotency.DecisionUnresolved {
				t.Error(out.Decision, err)
			}
			break
		}
		if n := s.Stats().ClockSteps; n != 1 || refused == 0 {
			t.Errorf("%d steps of the clock and %d refused claims, want 1 and some", n, refused)
		}
	})
}

// A claim waits for the lock of a caller's transaction while time passes. The claim reads
// the clock after the wait, so the store finds no backward step.
func TestClockReadAfterWait(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		db := d.open(t)
		d.store(t, sqlstore.Config{DB: db})
		advance, clock := advancing(t, d)
		s := d.store(t, sqlstore.Config{DB: db, Clock: clock})
		tx, err := db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.ClaimTx(t.Context(), tx, claimOf("a")); err != nil {
			t.Fatal(err)
		}
		var waiting sync.WaitGroup
		waiting.Go(func() { claim(t, s, claimOf("b"), idempotency.DecisionNew) })
		time.Sleep(100 * time.Millisecond)
		advance(time.Minute)
		if _, err := s.Lookup(t.Context(), claimOf("absent").Key); err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		waiting.Wait()
		if n := s.Stats().ClockSteps; n != 0 {
			t.Errorf("%d steps of the clock, want 0", n)
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
		claim(t, s, c, idempotency.DecisionNew)
		advance(time.Minute)
		claim(t, s, claimOf("b"), idempotency.DecisionNew)
		advance(-4 * time.Second)
		c.Token = idempotency.NewToken()
		claim(t, s, c, idempotency.DecisionReclaimed)
	})
}

// Purge deletes the row of a released claim, even if the claim's TTL is Forever, and keeps
// the row of a completed claim.
func TestPurgeReleased(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		s := d.store(t, sqlstore.Config{})
		c := claimOf("a")
		c.Terms.TTL = idempotency.Forever
		if err := s.Finish(t.Context(), claim(t, s, c, idempotency.DecisionNew).Ref(), idempotency.Released()); err != nil {
			t.Fatal(err)
		}
		kept := claimOf("b")
		kept.Terms.TTL = idempotency.Forever
		if err := s.Finish(t.Context(), claim(t, s, kept, idempotency.DecisionNew).Ref(), idempotency.Completed(idempotency.Result{})); err != nil {
			t.Fatal(err)
		}
		if n, err := s.Purge(t.Context()); err != nil || n != 1 {
			t.Errorf("purged %d, %v, want the released row", n, err)
		}
		claim(t, s, kept, idempotency.DecisionDuplicate)
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
