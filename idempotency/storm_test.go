package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// Clients send 48,000 commands, and 6 percent of them twice, possibly at the same time.
// Each command must have one effect.
func TestRetryStorm(t *testing.T) {
	const commands, repeated = 48000, 2880
	store := new(idempotency.Memory)
	g := newGuard(t, store, nil)
	effects := make([]atomic.Int32, commands)
	do := func(i int) error {
		for {
			_, err := g.Do(context.Background(), request(fmt.Sprint(i), fmt.Sprint("command ", i)), func(context.Context, idempotency.Outcome) (idempotency.Result, error) {
				effects[i].Add(1)
				return idempotency.Result{Response: fmt.Append(nil, i)}, nil
			})
			var busy *idempotency.InProgressError
			// An InProgressError means that the first try of the command still runs: try
			// again. Any other result is final.
			if !errors.As(err, &busy) {
				return err
			}
			runtime.Gosched()
		}
	}
	work := make(chan int)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for i := range work {
				if err := do(i); err != nil {
					t.Errorf("command %d: %v", i, err)
				}
			}
		})
	}
	duplicates := 0
	for i := range commands {
		work <- i
		if i*repeated/commands != (i+1)*repeated/commands {
			work <- max(0, i-i%97) // a recent command, at most 96 back
			duplicates++
		}
	}
	close(work)
	wg.Wait()
	for i := range effects {
		if n := effects[i].Load(); n != 1 {
			t.Errorf("command %d had %d effects", i, n)
		}
	}
	s := g.Stats()
	if duplicates != repeated || s.Originals != commands || s.Duplicates != repeated {
		t.Errorf("%d repeated, counted %+v, want %d originals and %d duplicates", duplicates, s, commands, repeated)
	}
	t.Logf("%d commands, %d repeated: %+v, 0 accepted twice", commands, duplicates, s)
}
