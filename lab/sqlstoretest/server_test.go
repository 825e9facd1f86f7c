//go:build unix

package sqlstoretest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/ledger"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/sqlstore"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/pgserver"
)

// The server is stopped in immediate mode, or killed, during many concurrent claims. No
// acknowledged change is lost, no key is granted twice, and the sealed ledger has each
// change.
func TestKilledServer(t *testing.T) {
	const rounds = 10
	srv := pgserver.New(t)
	d := postgresAt(t, srv.Source())
	s := d.store(t, sqlstore.Config{GroupTimeout: 5 * time.Second, Ledger: true})
	var heads []ledger.Head
	sealing, stopSealing := context.WithCancel(t.Context())
	var sealers sync.WaitGroup
	k := sealer(t, s.Ledger(), func(c *sqlstore.SealerConfig) {
		c.Interval = time.Millisecond
		c.Sink = func(_ context.Context, h ledger.Head) error {
			heads = append(heads, h)
			return nil
		}
	})
	sealers.Go(func() { _ = k.Run(sealing) })
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	claims, completed, repeated := 0, 0, 0
	for round := range rounds {
		var mu sync.Mutex
		wins := map[string][]idempotency.Outcome{}
		done := map[string]bool{}
		stop := make(chan struct{})
		var wg sync.WaitGroup
		for w := range 16 {
			wg.Go(func() {
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					default:
					}
					value := fmt.Sprintf("%d-%d", round, i*8+w/2) // two callers per key
					c := claimOf(value)
					out, again, err := untilAnswered(func(ctx context.Context) (idempotency.Outcome, error) { return s.Claim(ctx, c) })
					if err != nil {
						t.Errorf("claim: %v", err)
						return
					}
					mu.Lock()
					repeated += again
					if out.Decision.Granted() {
						wins[value] = append(wins[value], out)
					}
					mu.Unlock()
					if !out.Decision.Granted() || i%2 == 1 {
						continue
					}
					_, again, err = untilAnswered(func(ctx context.Context) (struct{}, error) {
						return struct{}{}, s.Finish(ctx, out.Ref(), idempotency.Completed(idempotency.Result{Response: []byte(value)}))
					})
					if err != nil {
						t.Errorf("complete: %v", err)
						return
					}
					mu.Lock()
					repeated += again
					done[value] = true
					mu.Unlock()
				}
			})
		}
		time.Sleep(time.Duration(50+rng.IntN(300)) * time.Millisecond)
		srv.Stop([]syscall.Signal{syscall.SIGQUIT, syscall.SIGKILL}[round%2])
		srv.Start(t)
		time.Sleep(50 * time.Millisecond)
		close(stop)
		wg.Wait()
		for value, outs := range wins {
			if len(outs) != 1 {
				t.Errorf("key %s was won %d times", value, len(outs))
			}
			records, err := s.Lookup(t.Context(), claimOf(value).Key)
			if err != nil {
				t.Fatal(err)
			}
			want := idempotency.StatusRunning
			if done[value] {
				want = idempotency.StatusSucceeded
			}
			if r := records[0]; r.Status != want || r.Fence != outs[0].Record.Fence {
				t.Errorf("key %s: the record is %v with fence %d, want %v with %d", value, r.Status, r.Fence, want, outs[0].Record.Fence)
			}
		}
		claims, completed = claims+len(wins), completed+len(done)
	}
	checkCount(t, d, s)
	stopSealing()
	sealers.Wait()
	db := d.open(t)
	heads = append(heads, untilSealed(t, s, db, d))
	report := verify(t, s.Ledger(), heads...)
	checkEntries(t, s.Ledger(), db, report)
	t.Logf("%d entries under %d seals; %d heads that were kept before and after the kills hold", report.Entries, report.Seals, len(heads))
	t.Logf("seed %d: the server was killed %d times; %d claims and %d completions acknowledged, %d calls repeated, none lost, none won twice", seed, rounds, claims, completed, repeated)
	if repeated == 0 {
		t.Error("no call was interrupted")
	}
}

// untilAnswered repeats a call until the server answers.
func untilAnswered[T any](call func(context.Context) (T, error)) (out T, repeated int, err error) {
	for deadline := time.Now().Add(time.Minute); ; repeated++ {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		out, err = call(ctx)
		cancel()
		if err == nil || errors.Is(err, idempotency.ErrStaleClaim) || time.Now().After(deadline) {
			return out, repeated, err
		}
		time.Sleep(20 * time.Millisecond)
	}
}
