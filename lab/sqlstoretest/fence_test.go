//go:build unix

package sqlstoretest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/sqlstore"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/pgserver"
)

// The PostgreSQL server is stopped during many concurrent calls of ClaimTx. No two claims
// get the same fence (number). A claim of a lost transaction cannot complete the operation
// of a later claim.
func TestFencesSurviveKilledServer(t *testing.T) {
	const rounds = 20
	srv := pgserver.New(t)
	d := postgresAt(t, srv.Source())
	db := d.open(t)
	s := d.store(t, sqlstore.Config{DB: db, GroupTimeout: 5 * time.Second})
	rng := rand.New(rand.NewPCG(rand.Uint64(), 0))
	var mu sync.Mutex
	given := map[int64]string{} // the claim (its key and round of the test), by fence
	give := func(fence int64, to string) {
		mu.Lock()
		defer mu.Unlock()
		if was, ok := given[fence]; ok && was != to {
			t.Errorf("fence %d was given to %s and to %s", fence, was, to)
		}
		given[fence] = to
	}
	dead, overtaken := 0, 0
	for round := range rounds {
		lost := map[string]idempotency.Outcome{} // claims by key, granted in a transaction without a confirmed commit
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		begun := make(chan struct{}, 16)
		for w := range 16 {
			wg.Go(func() {
				for i := 0; ctx.Err() == nil; i++ {
					// A transaction with 200 claims takes long, so it is usually open when the
					// server stops.
					claims := 1 + rand.IntN(3)
					if w > 0 {
						claims = 200
					}
					made, committed := claimsInTx(ctx, db, s, fmt.Sprintf("%d-%d-%d", round, w, i), claims, begun)
					for _, out := range made {
						give(out.Record.Fence, fmt.Sprintf("%s in round %d", out.Record.Key.Value, round))
						if !committed {
							mu.Lock()
							lost[out.Record.Key.Value] = out
							mu.Unlock()
						}
					}
				}
			})
		}
		for range 16 {
			<-begun
		}
		time.Sleep(time.Duration(rng.IntN(200)) * time.Millisecond)
		srv.Stop(syscall.SIGQUIT)
		stop()
		wg.Wait()
		srv.Start(t)
		for value, out := range lost {
			living, _, err := untilAnswered(func(ctx context.Context) (idempotency.Outcome, error) { return s.Claim(ctx, claimOf(value)) })
			if err != nil {
				t.Fatal(err)
			}
			// Any decision except New means that the key has a record: the transaction above
			// was committed, and only its confirmation was lost.
			if living.Decision != idempotency.DecisionNew {
				continue
			}
			give(living.Record.Fence, fmt.Sprintf("%s after round %d", value, round))
			dead++
			_, _, err = untilAnswered(func(ctx context.Context) (struct{}, error) {
				return struct{}{}, s.Finish(ctx, out.Ref(), idempotency.Completed(idempotency.Result{}))
			})
			if !errors.Is(err, idempotency.ErrStaleClaim) {
				t.Errorf("the dead claim %d of %s completed the living claim %d: %v", out.Record.Fence, value, living.Record.Fence, err)
				overtaken++
			}
		}
	}
	t.Logf("%d immediate stops: %d fences, %d claims that died before their commit, %d of them completed a living claim", rounds, len(given), dead, overtaken)
	if dead == 0 {
		t.Error("no claim died")
	}
}

// claimsInTx makes claims in one transaction until the server fails. It reports whether
// the commit succeeded.
func claimsInTx(ctx context.Context, db *sql.DB, s *sqlstore.Store, prefix string, n int, begun chan<- struct{}) (made []idempotency.Outcome, committed bool) {
	tx, err := db.BeginTx(context.WithoutCancel(ctx), nil)
	if err != nil {
		return nil, false
	}
	defer tx.Rollback()
	for i := range n {
		out, err := s.ClaimTx(ctx, tx, claimOf(fmt.Sprintf("%s-%d", prefix, i)))
		if err != nil {
			return made, false
		}
		if out.Decision == idempotency.DecisionNew {
			made = append(made, out)
		}
		select {
		case begun <- struct{}{}:
		default:
		}
	}
	return made, tx.Commit() == nil
}
