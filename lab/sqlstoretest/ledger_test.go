package sqlstoretest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/ledger"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/sqlstore"
)

func sealer(t testing.TB, l *sqlstore.Ledger, change ...func(*sqlstore.SealerConfig)) *sqlstore.Sealer {
	t.Helper()
	config := sqlstore.SealerConfig{Ledger: l}
	for _, f := range change {
		f(&config)
	}
	k, err := sqlstore.NewSealer(config)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func seal(t testing.TB, k *sqlstore.Sealer) ledger.Head {
	t.Helper()
	waitForOthers(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	h, err := k.Seal(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func verify(t testing.TB, l *sqlstore.Ledger, keptHeads ...ledger.Head) ledger.Report {
	t.Helper()
	report, err := l.Verify(context.Background(), keptHeads...)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// events returns the events of the sealed entries in a short form.
func events(t testing.TB, l *sqlstore.Ledger) (out []string) {
	t.Helper()
	for line, err := range l.Lines(context.Background(), ledger.Head{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e := line.Entry; e != nil {
			out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", e.Key.Value, e.Event, e.Status, e.Note)))
		}
	}
	return out
}

// The ledger has one entry for each change of a key, in order. A call that changes nothing,
// such as a claim of a completed key, adds no entry.
func TestLedgerEvents(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		advance, clock := advancing(t, migrated(t, d))
		db := d.open(t)
		s := d.store(t, sqlstore.Config{DB: db, Ledger: true, Clock: clock})
		l := s.Ledger()
		ctx := t.Context()
		do := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		a := claimOf("a")
		a.Dataset = idempotency.Dataset{ID: "noaa", Version: "v1.0.0", SourceURI: "https://example.org", ArtifactChecksum: "sha256:00", CARELabel: "restricted", ReplaySafe: true}
		out := claim(t, s, a, idempotency.DecisionNew)
		claim(t, s, a, idempotency.DecisionRenewed)
		claim(t, s, claimOf("a"), idempotency.DecisionInProgress)
		do(s.Finish(ctx, out.Ref(), idempotency.FailedWith(idempotency.Failure{Reason: "timed out"})))
		claim(t, s, claimOf("a"), idempotency.DecisionUnresolved)
		again := a
		again.Token, again.Resend = idempotency.NewToken(), true
		out = claim(t, s, again, idempotency.DecisionReclaimed)
		do(l.Append(ctx,
			ledger.Annotation{Event: ledger.EventMasked, Key: a.Key, Fence: out.Record.Fence, Dataset: a.Dataset, Note: "coordinates to 0.1 degrees"},
			ledger.Annotation{Event: ledger.EventReplayTriggered, Key: a.Key, Note: "run 7"}))
		do(s.Finish(ctx, out.Ref(), idempotency.Completed(idempotency.Result{Response: []byte("r")})))
		do(s.Finish(ctx, out.Ref(), idempotency.Completed(idempotency.Result{Response: []byte("r")}))) // repeated after a lost answer
		claim(t, s, claimOf("a"), idempotency.DecisionDuplicate)
		conflict := claimOf("a")
		conflict.Fingerprint.Sum[0]++
		claim(t, s, conflict, idempotency.DecisionConflict)
		if err := s.Finish(ctx, idempotency.Ref{Key: a.Key, Fence: 1}, idempotency.Completed(idempotency.Result{})); !errors.Is(err, idempotency.ErrStaleClaim) {
			t.Error(err)
		}
		out = claim(t, s, claimOf("b"), idempotency.DecisionNew)
		do(s.Finish(ctx, out.Ref(), idempotency.FailedWith(idempotency.Failure{Proof: idempotency.ProofForClaim, Reason: "refused"})))
		out = claim(t, s, claimOf("b"), idempotency.DecisionNew)
		do(s.Finish(ctx, out.Ref(), idempotency.Released()))
		out = claim(t, s, claimOf("c"), idempotency.DecisionNew)
		do(s.Finish(ctx, out.Ref(), idempotency.Released()))

		// Two transactions of the caller: one commits, one rolls back.
		for _, value := range []string{"rolled back", "in a transaction"} {
			tx, err := db.BeginTx(ctx, nil)
			do(err)
			c := claimOf(value)
			out, err := s.ClaimTx(ctx, tx, c)
			do(err)
			do(l.AppendTx(ctx, tx, ledger.Annotation{Event: ledger.EventCAREEnforced, Key: c.Key, Fence: out.Record.Fence}))
			do(s.CompleteTx(ctx, tx, out.Ref(), idempotency.Result{}))
			if value == "rolled back" {
				do(tx.Rollback())
			} else {
				do(tx.Commit())
			}
		}
		advance(48 * time.Hour)
		if n, err := s.Purge(ctx); err != nil || n != 4 {
			t.Errorf("purged %d, %v, want 4", n, err)
		}
		head := seal(t, sealer(t, l))
		want := []string{
			"a claimed in_progress", "a renewed in_progress", "a in_doubt in_progress timed out", "a reclaimed in_progress",
			"a masked  coordinates to 0.1 degrees", "a replay_triggered  run 7", "a completed succeeded",
			"b claimed in_progress", "b failed failed refused", "b claimed in_progress", "b released failed",
			"c claimed in_progress", "c released released",
			"in a transaction claimed in_progress", "in a transaction care_enforced", "in a transaction completed succeeded",
			"a purged absent", "b purged absent", "c purged absent", "in a transaction purged absent",
		}
		got := events(t, l)
		slices.Sort(got[len(got)-4:])
		if !slices.Equal(got, want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if report := verify(t, l, head); report.Entries != int64(len(want)) || report.Confirmed != head.N {
			t.Errorf("%+v", report)
		}
		for line := range l.Lines(ctx, ledger.Head{}) {
			e := line.Entry
			if e == nil || e.Event != ledger.EventCompleted || e.Key.Value != "a" {
				continue
			}
			result := idempotency.Result{Response: []byte("r")}
			if e.Dataset != a.Dataset || e.Fingerprint != a.Fingerprint || e.Body != ledger.Hash(a.ExactHash) || e.Response != result.Hash() || e.Attempts != 3 || e.Generation != 1 || e.Fence == 0 || e.At.IsZero() {
				t.Errorf("the completion is %+v", e)
			}
		}
	})
}

func migrated(t testing.TB, d database) database {
	t.Helper()
	if err := sqlstore.Migrate(context.Background(), d.open(t), d.dialect); err != nil {
		t.Fatal(err)
	}
	return d
}

// Open refuses a database with a ledger if Config.Ledger is off. OpenLedger reads the
// ledger without a store.
func TestLedgerIsKept(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		s := d.store(t, sqlstore.Config{})
		if s.Ledger() != nil {
			t.Error("a store without a ledger has one")
		}
		claim(t, s, claimOf("before"), idempotency.DecisionNew)
		s = d.store(t, sqlstore.Config{Ledger: true})
		claim(t, s, claimOf("after"), idempotency.DecisionNew)
		var setting *idempotency.InvalidError
		if _, err := sqlstore.Open(t.Context(), sqlstore.Config{DB: d.open(t), Dialect: d.dialect}); !errors.As(err, &setting) || setting.Field != "Config.Ledger" {
			t.Errorf("got %v, want a InvalidError", err)
		}
		seal(t, sealer(t, s.Ledger()))
		l, err := sqlstore.OpenLedger(t.Context(), d.open(t), d.dialect)
		if err != nil {
			t.Fatal(err)
		}
		if got := events(t, l); !slices.Equal(got, []string{"after claimed in_progress"}) {
			t.Errorf("got %q", got)
		}
		if _, err := sqlstore.OpenLedger(t.Context(), d.open(t), 9); err == nil {
			t.Error("an unknown dialect was accepted")
		}
		if err := s.Ledger().Append(t.Context(), ledger.Annotation{Event: "forged"}); err == nil {
			t.Error("an annotation with an unknown event was accepted")
		}
	})
}

// 64 concurrent callers change keys, and the store writes several changes in one
// transaction. The ledger has one entry for each change. Three consecutive exports form one
// file that Verify accepts.
func TestLedgerOfGroups(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		s := d.store(t, sqlstore.Config{Ledger: true})
		k := sealer(t, s.Ledger())
		var file bytes.Buffer
		var head ledger.Head
		const writers, each = 64, 10
		for range 3 {
			var wg sync.WaitGroup
			for w := range writers {
				wg.Go(func() {
					for i := range each {
						out, err := s.Claim(t.Context(), claimOf(fmt.Sprint(head.N, w, i)))
						if err == nil {
							err = s.Finish(t.Context(), out.Ref(), idempotency.Completed(idempotency.Result{}))
						}
						if err != nil {
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
			seal(t, k)
			var err error
			if head, err = s.Ledger().Export(t.Context(), &file, head); err != nil {
				t.Fatal(err)
			}
		}
		want := int64(3 * writers * each * 2)
		if report := verify(t, s.Ledger(), head); report.Entries != want || report.Head != head {
			t.Errorf("%+v, want %d entries", report, want)
		}
		report, err := ledger.Verify(ledger.Read(&file), head)
		if err != nil || report.Entries != want || report.Confirmed != head.N {
			t.Errorf("the file: %+v, %v", report, err)
		}
		once := map[string]int{}
		for _, e := range events(t, s.Ledger()) {
			once[e]++
		}
		if int64(len(once)) != want {
			t.Errorf("%d different entries, want %d", len(once), want)
		}
	})
}

// If the writer of an export fails, Export returns the head (number and hash) of the last
// seal that was written completely. Verify accepts the written part up to this seal, so the
// next export can continue there.
func TestInterruptedExport(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		s := d.store(t, sqlstore.Config{Ledger: true})
		k := sealer(t, s.Ledger())
		var heads []ledger.Head
		for i := range 3 {
			for j := range 3 {
				claim(t, s, claimOf(fmt.Sprint(i, j)), idempotency.DecisionNew)
			}
			heads = append(heads, seal(t, k))
		}
		var whole bytes.Buffer
		last, err := s.Ledger().Export(t.Context(), &whole, ledger.Head{})
		if err != nil || last != heads[2] {
			t.Fatalf("got %v, %v", last, err)
		}
		for limit := range whole.Len() {
			if limit%97 != 0 {
				continue
			}
			w := &limited{left: limit}
			head, err := s.Ledger().Export(t.Context(), w, ledger.Head{})
			if !errors.Is(err, errFull) {
				t.Fatalf("%d bytes: got %v", limit, err)
			}
			if head.N > 0 {
				_, err := ledger.Verify(ledger.Read(&w.Buffer), head)
				tampered := new(ledger.TamperError)
				if err != nil && (!errors.As(err, &tampered) || tampered.Kind == ledger.FaultTruncated || tampered.Seal != 0 && tampered.Seal <= head.N) {
					t.Errorf("%d bytes, head %v: %v", limit, head, err)
				}
			}
		}
	})
}

var errFull = errors.New("the disk is full")

// limited is a writer that fails when its byte limit, the field `left`, is used up.
type limited struct {
	bytes.Buffer
	left int
}

func (w *limited) Write(b []byte) (int, error) {
	n := min(len(b), w.left)
	w.left -= n
	w.Buffer.Write(b[:n])
	if n < len(b) {
		return n, errFull
	}
	return n, nil
}
