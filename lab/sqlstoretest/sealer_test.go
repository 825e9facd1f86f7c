package sqlstoretest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/ledger"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/sqlstore"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/storetest"
)

// While a transaction is open, a seal (a hash of ledger entries) covers only the entries of
// earlier transactions, even if later transactions have committed. After the commit, the
// next seal covers the remaining entries in the order of transaction numbers.
func TestSealBesideAnOpenTransaction(t *testing.T) {
	d := newPostgreSQL(t)
	db := d.open(t)
	s := d.store(t, sqlstore.Config{DB: db, Ledger: true})
	k := sealer(t, s.Ledger())
	claim(t, s, claimOf("before"), idempotency.DecisionNew)
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := s.ClaimTx(t.Context(), tx, claimOf("open")); err != nil {
		t.Fatal(err)
	}
	claim(t, s, claimOf("after"), idempotency.DecisionNew)
	first := seal(t, k)
	if got := events(t, s.Ledger()); len(got) != 1 || got[0] != "before claimed in_progress" {
		t.Errorf("sealed beside an open transaction: %q", got)
	}
	if again := seal(t, k); again != first {
		t.Errorf("head %v became %v without an entry", first, again)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	last := seal(t, k)
	if got := fmt.Sprint(events(t, s.Ledger())); got != "[before claimed in_progress open claimed in_progress after claimed in_progress]" {
		t.Errorf("got %s", got)
	}
	verify(t, s.Ledger(), first, last)
}

// Two sealers never write the same seal. The second sealer takes over after the lease
// of the first sealer has ended or was given back.
func TestTwoSealers(t *testing.T) {
	d := newPostgreSQL(t)
	s := d.store(t, sqlstore.Config{Ledger: true})
	long := func(c *sqlstore.SealerConfig) { c.Lease = time.Hour }
	a, b := sealer(t, s.Ledger(), long), sealer(t, s.Ledger(), long)
	claim(t, s, claimOf("a"), idempotency.DecisionNew)
	seal(t, a)
	if _, err := b.Seal(t.Context()); !errors.Is(err, sqlstore.ErrOtherSealer) {
		t.Errorf("got %v, want ErrOtherSealer", err)
	}
	// The first sealer's lease has ended, but its row is locked. The second sealer must not
	// wait.
	db := d.open(t)
	if _, err := db.Exec(`UPDATE idempotency_sealer SET lease_until = 0`); err != nil {
		t.Fatal(err)
	}
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(`SELECT * FROM idempotency_sealer FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	if _, err := b.Seal(ctx); !errors.Is(err, sqlstore.ErrOtherSealer) {
		t.Errorf("got %v, want ErrOtherSealer", err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	claim(t, s, claimOf("b"), idempotency.DecisionNew)
	seal(t, b)
	if _, err := a.Seal(t.Context()); !errors.Is(err, sqlstore.ErrOtherSealer) {
		t.Errorf("got %v, want ErrOtherSealer", err)
	}
	// Each sealer gets a new fence (number) with its lease, and writes it into its seals.
	fences := map[int64]bool{}
	for line, err := range s.Ledger().Lines(t.Context(), ledger.Head{}) {
		if err != nil {
			t.Fatal(err)
		}
		if line.Seal != nil {
			fences[line.Seal.Fence] = true
		}
	}
	if len(fences) != 2 {
		t.Errorf("fences %v, want two", fences)
	}
}

// Three sealers run during many concurrent claims, and one sealer runs later. Each entry is
// sealed once. Verify accepts the ledger with all heads that the sealers have passed to
// SealerConfig.Sink.
func TestSealersInAStorm(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		s := d.store(t, sqlstore.Config{Ledger: true})
		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex
		var heads []ledger.Head
		var failing atomic.Int32
		var sealers, writers sync.WaitGroup
		for range 3 {
			k := sealer(t, s.Ledger(), func(c *sqlstore.SealerConfig) {
				c.Interval, c.Lease = time.Millisecond, 20*time.Millisecond
				c.Sink = func(_ context.Context, h ledger.Head) error {
					if failing.Add(1)%3 == 0 {
						return errors.New("the sink is down")
					}
					mu.Lock()
					defer mu.Unlock()
					heads = append(heads, h)
					return nil
				}
			})
			sealers.Go(func() {
				if err := k.Run(ctx); err != nil {
					t.Error(err)
				}
			})
		}
		const callers, each = 16, 40
		for w := range callers {
			writers.Go(func() {
				for i := range each {
					if _, err := s.Claim(t.Context(), claimOf(fmt.Sprint(w, "-", i))); err != nil {
						t.Error(err)
					}
				}
			})
		}
		// Verify, called during the claims, sees only complete seals.
		sealers.Go(func() {
			for n := 0; ctx.Err() == nil || n == 0; n++ {
				time.Sleep(10 * time.Millisecond)
				mu.Lock()
				kept := slices.Clone(heads)
				mu.Unlock()
				if _, err := s.Ledger().Verify(t.Context(), kept...); err != nil {
					t.Errorf("in the storm: %v", err)
				}
			}
		})
		writers.Wait()
		time.Sleep(50 * time.Millisecond)
		cancel()
		sealers.Wait()
		// If a sealer was stopped while it took the lease, wait until the lease ends.
		k := sealer(t, s.Ledger())
		for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
			if _, err := k.Seal(t.Context()); !errors.Is(err, sqlstore.ErrOtherSealer) {
				break
			}
		}
		head := seal(t, k)
		if report := verify(t, s.Ledger(), append(heads, head)...); report.Entries != callers*each || report.Confirmed != head.N {
			t.Errorf("%+v, want %d entries", report, callers*each)
		}
		if len(heads) < 2 {
			t.Errorf("%d heads were kept", len(heads))
		}
	})
}

// Seals hold a bounded number of entries, even for a larger transaction.
func TestSealsAreBounded(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		s := d.store(t, sqlstore.Config{Ledger: true})
		annotations := make([]ledger.Annotation, 2*ledger.MaxSealed+1)
		for i := range annotations {
			annotations[i] = ledger.Annotation{Event: ledger.EventReplayTriggered, Key: claimOf(fmt.Sprint(i)).Key}
		}
		if err := s.Ledger().Append(t.Context(), annotations...); err != nil {
			t.Fatal(err)
		}
		claim(t, s, claimOf("a"), idempotency.DecisionNew)
		head := seal(t, sealer(t, s.Ledger()))
		if report := verify(t, s.Ledger(), head); report.Entries != int64(len(annotations))+1 || report.Seals < 3 || report.Seals > 4 {
			t.Errorf("%+v", report)
		}
		if got := events(t, s.Ledger()); got[0] != "0 replay_triggered" || got[len(annotations)-1] != fmt.Sprintf("%d replay_triggered", len(annotations)-1) {
			t.Errorf("the annotations are out of order: %q ... %q", got[0], got[len(annotations)-1])
		}
	})
}

// A database is restored into another server, with lower transaction numbers. A store
// opened before the restore refuses to write. A later store begins a new epoch: its entries
// come after all restored entries.
func TestLedgerInAnotherServer(t *testing.T) {
	d := newPostgreSQL(t)
	s := d.store(t, sqlstore.Config{Ledger: true})
	claim(t, s, claimOf("before"), idempotency.DecisionNew)
	first := seal(t, sealer(t, s.Ledger()))
	claim(t, s, claimOf("not sealed"), idempotency.DecisionNew)
	// Make the database look restored from another server with higher transaction numbers.
	db := d.open(t)
	if _, err := db.Exec(`UPDATE idempotency_sealer SET server = 1, horizon = 1000000000000, lease_until = 0`); err != nil {
		t.Fatal(err)
	}
	var setting *idempotency.InvalidError
	if _, err := s.Claim(t.Context(), claimOf("unnoticed")); !errors.As(err, &setting) || setting.Field != "server" {
		t.Errorf("got %v, want a InvalidError", err)
	}
	if r, err := s.Lookup(t.Context(), claimOf("unnoticed").Key); err != nil || r[0].Status != idempotency.StatusAbsent {
		t.Errorf("the claim without an entry is %v, %v", r[0].Status, err)
	}
	s = d.store(t, sqlstore.Config{Ledger: true})
	claim(t, s, claimOf("after"), idempotency.DecisionNew)
	last := seal(t, sealer(t, s.Ledger()))
	if got := fmt.Sprint(events(t, s.Ledger())); got != "[before claimed in_progress not sealed claimed in_progress after claimed in_progress]" {
		t.Errorf("got %s", got)
	}
	report := verify(t, s.Ledger(), first, last)
	if report.Seals != 3 || last.N != 3 {
		t.Errorf("%+v, want a seal of the old epoch and one of the new", report)
	}
	// The first store after the restore began epoch 2 of the ledger. A second store does not
	// begin epoch 3.
	d.store(t, sqlstore.Config{Ledger: true})
	var epoch int64
	if err := db.QueryRow(`SELECT epoch FROM idempotency_sealer`).Scan(&epoch); err != nil || epoch != 2 {
		t.Errorf("epoch %d, %v, want 2", epoch, err)
	}
}

// The test kills processes that write to a ledger and seal it, during their calls. Afterwards
// the ledger has exactly one entry per change of a record, and Verify accepts the seals.
func TestLedgerOfKilledClients(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		s := d.store(t, sqlstore.Config{Ledger: true})
		db := d.open(t)
		var heads []ledger.Head
		config := d.killConfig(true)
		config.Round = func() {
			// On PostgreSQL, the killed sealer still has the lease. End the lease, so that
			// untilSealed can seal.
			if d.dialect == sqlstore.PostgreSQL {
				if _, err := db.Exec(`UPDATE idempotency_sealer SET lease_until = 0`); err != nil {
					t.Fatal(err)
				}
			}
			heads = append(heads, untilSealed(t, s, db, d))
		}
		storetest.KillClients(t, s, config)
		report := verify(t, s.Ledger(), heads...)
		checkEntries(t, s.Ledger(), db, report)
		t.Logf("%d entries under %d seals, all %d heads hold", report.Entries, report.Seals, len(heads))
	})
}

// untilSealed makes seals until all entries are sealed, and returns the last head. On
// PostgreSQL this can take several seals, because a killed client's transaction may end
// later than the client.
func untilSealed(t *testing.T, s *sqlstore.Store, db *sql.DB, d database) ledger.Head {
	t.Helper()
	k := sealer(t, s.Ledger())
	for deadline := time.Now().Add(30 * time.Second); ; {
		head, err := k.Seal(t.Context())
		left := int64(0)
		if err == nil && d.dialect == sqlstore.PostgreSQL {
			err = db.QueryRow(`SELECT count(*) FROM idempotency_ledger WHERE (epoch, xid, seq) >= (SELECT epoch, end_transaction, end_seq FROM idempotency_seals WHERE n = $1)`, head.N).Scan(&left)
		}
		if err == nil && left == 0 {
			return head
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d entries are not sealed: %v", left, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// checkEntries compares the ledger with the store's records. The ledger must have one claim
// for each record, with the same fence (number), and one completion for each operation that
// succeeded. It must have no other claims or completions.
func checkEntries(t *testing.T, l *sqlstore.Ledger, db *sql.DB, report ledger.Report) {
	t.Helper()
	claimed, completed := map[int64]int{}, map[int64]int{}
	n := int64(0)
	for line, err := range l.Lines(t.Context(), ledger.Head{}) {
		if err != nil {
			t.Fatal(err)
		}
		if line.Entry == nil {
			continue
		}
		n++
		switch line.Entry.Event {
		case ledger.EventClaimed, ledger.EventReclaimed:
			claimed[line.Entry.Fence]++
		case ledger.EventCompleted:
			completed[line.Entry.Fence]++
		}
	}
	if n != report.Entries {
		t.Errorf("%d entries were read and %d verified", n, report.Entries)
	}
	rows, err := db.Query(`SELECT fence, status FROM idempotency_keys`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var fence int64
		var status string
		if err := rows.Scan(&fence, &status); err != nil {
			t.Fatal(err)
		}
		want := 0
		if status == "succeeded" {
			want = 1
		}
		if claimed[fence] != 1 || completed[fence] != want {
			t.Errorf("the record with fence %d is %s, and the ledger has %d claims and %d completions of it", fence, status, claimed[fence], completed[fence])
		}
		delete(claimed, fence)
		delete(completed, fence)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	if len(claimed)+len(completed) > 0 {
		t.Errorf("the ledger has %d claims and %d completions that no record has", len(claimed), len(completed))
	}
}

// Run passes the head (the number and hash of the last seal) to SealerConfig.Sink, and
// repeats this after an error. When Run ends, another sealer can begin immediately.
func TestSealerRun(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		s := d.store(t, sqlstore.Config{Ledger: true})
		claim(t, s, claimOf("a"), idempotency.DecisionNew)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		var offered []ledger.Head
		k := sealer(t, s.Ledger(), func(c *sqlstore.SealerConfig) {
			c.Interval, c.Lease = time.Millisecond, time.Hour
			c.Sink = func(_ context.Context, h ledger.Head) error {
				offered = append(offered, h)
				switch len(offered) {
				case 1:
					return errors.New("the sink is down")
				case 2:
					claim(t, s, claimOf("b"), idempotency.DecisionNew)
				case 3:
					cancel()
				}
				return nil
			}
		})
		if err := k.Run(ctx); err != nil {
			t.Error(err)
		}
		if len(offered) != 3 || offered[0] != offered[1] || offered[2].N != 2 {
			t.Errorf("the sink got %v, want the first head twice, then the second", offered)
		}
		head := seal(t, sealer(t, s.Ledger()))
		verify(t, s.Ledger(), append(offered, head)...)
	})
}
