package store

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/producertest"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// Clients send 80 commands per second, in the long run for ten minutes. 6 percent are repeated up to ten
// minutes later, by any process. SQS receives no repeated command, and each is counted as a
// duplicate.
func TestStoreRetryStorm(t *testing.T) {
	commands := 48_000
	if testing.Short() {
		commands = 2400 // for half a minute
	}
	repeated := commands * 6 / 100
	synctest.Test(t, func(t *testing.T) {
		q, store := producertest.NewQueue(t, sqstest.Config{}), new(idempotency.Memory)
		rng := rand.New(rand.NewPCG(1, 2))
		event := func(i int) producertest.Scene {
			return producertest.Scene{ID: fmt.Sprint("command-", i), PathRow: fmt.Sprint("g", i%480), Acquired: producertest.Sample.Acquired}
		}
		begin := func() *sqsfifo.Producer[producertest.Scene] { return producertest.On(t, q, q, withStore(store)) }
		var mu sync.Mutex
		processes := []*sqsfifo.Producer[producertest.Scene]{begin(), begin()}
		one := func() *sqsfifo.Producer[producertest.Scene] {
			mu.Lock()
			defer mu.Unlock()
			return processes[rng.IntN(len(processes))]
		}
		var stored, duplicates int64
		restart := func(i int) {
			mu.Lock()
			old := processes[i]
			processes[i] = begin()
			mu.Unlock()
			closed(t, old)
			s := old.Stats()
			stored, duplicates = stored+s.Outcomes.Stored, duplicates+s.Outcomes.Duplicates
			assert.Zero(t, s.Outcomes.NotStored+s.Outcomes.InDoubt+s.Outcomes.Altered)
		}
		again := func(s producertest.Scene) {
			r, err := one().Send(t.Context(), s)
			assert.NoError(t, err)
			assert.NotEmpty(t, r.MessageID)
		}

		var later sync.WaitGroup
		attempts := 0
		for i := range commands {
			one().SendAsync(t.Context(), event(i), func(_ sqsfifo.Receipt, err error) { assert.NoError(t, err) })
			if i*repeated/commands != (i+1)*repeated/commands {
				attempts++
				wait := []time.Duration{0, time.Second, 10 * time.Minute}[attempts%3]
				wait = time.Duration(float64(wait) * (0.5 + float64(attempts%100)/200))
				later.Go(func() {
					time.Sleep(wait)
					again(event(i))
				})
			}
			time.Sleep(time.Second / 80)
			if (i+1)%(commands/10) == 0 {
				restart(i * 10 / commands % 2)
			}
		}
		later.Wait()
		restart(0)
		restart(1)
		for _, p := range processes {
			closed(t, p)
		}
		require.Equal(t, repeated, attempts)
		require.Len(t, q.Messages(), commands)
		require.EqualValues(t, commands, stored)
		require.EqualValues(t, repeated, duplicates)
		require.Empty(t, q.Suppressed(), "not even SQS had to")
	})
}
