package sqlstoretest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/sqlstore"
)

// The test runs 48,000 commands, as many as in ten minutes at 80 per second. It repeats 6
// percent of the commands, half of these with a new store. No repeated command has an
// effect.
func TestRetryStorm(t *testing.T) {
	commands := 48000
	if testing.Short() {
		commands = 4800
	}
	repeated := commands * 6 / 100
	each(t, func(t *testing.T, d database) {
		policy, err := idempotency.NewPolicy(idempotency.PolicyConfig{
			TTL: 135 * time.Second * 10, Caller: 10 * time.Second, Retry: 90 * time.Second, Network: 30 * time.Second, Clock: 5 * time.Second, Lease: time.Minute,
			Rate: 80, Capacity: 129600, StoreTimeout: 30 * time.Second,
		})
		if err != nil {
			t.Fatal(err)
		}
		effects := make([]atomic.Int32, commands)
		var originals, duplicates int64
		var seconds float64
		later := rand.Perm(commands)[:repeated/2] // commands to repeat after the restart
		for half := range 2 {
			s := d.store(t, sqlstore.Config{Capacity: 129600})
			g, err := idempotency.NewGuard(idempotency.GuardConfig{Store: s, Policy: policy})
			if err != nil {
				t.Fatal(err)
			}
			work := make(chan int)
			var wg sync.WaitGroup
			start := time.Now()
			for range 64 {
				wg.Go(func() {
					for i := range work {
						if err := command(g, i, &effects[i]); err != nil {
							t.Errorf("command %d: %v", i, err)
						}
					}
				})
			}
			if half == 0 {
				for i := range commands {
					work <- i
					if i*(repeated-len(later))/commands != (i+1)*(repeated-len(later))/commands {
						work <- max(0, i-i%97) // repeat one of the last 97 commands
					}
				}
			} else {
				for _, i := range later {
					work <- i
				}
			}
			close(work)
			wg.Wait()
			seconds += time.Since(start).Seconds()
			originals += g.Stats().Originals
			duplicates += g.Stats().Duplicates
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
		twice := 0
		for i := range effects {
			if n := effects[i].Load(); n != 1 {
				twice++
				t.Errorf("command %d had %d effects", i, n)
			}
		}
		if originals != int64(commands) || duplicates != int64(repeated) {
			t.Errorf("%d originals and %d duplicates, want %d and %d", originals, duplicates, commands, repeated)
		}
		t.Logf("%d original commands, %d duplicate attempts, %d accepted, in %.0f s", originals, duplicates, twice, seconds)
	})
}

// command runs the command, and retries while another attempt is running.
func command(g *idempotency.Guard, i int, effects *atomic.Int32) error {
	body := fmt.Appendf(nil, `{"command":%d,"value":1e3}`, i)
	for {
		_, err := g.Do(context.Background(), idempotency.Request{
			Key:         idempotency.Key{Scope: "client", Operation: "actuate", Value: fmt.Sprint(i)},
			Fingerprint: idempotency.FingerprintOf("test/1", body), Body: body,
		}, func(context.Context, idempotency.Outcome) (idempotency.Result, error) {
			effects.Add(1)
			return idempotency.Result{Response: fmt.Append(nil, i)}, nil
		})
		var busy *idempotency.InProgressError
		if !errors.As(err, &busy) {
			return err
		}
		runtime.Gosched()
	}
}
