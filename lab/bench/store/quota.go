package main

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/sqlstore"
	"github.com/kansas-frontier-matrix/sqsfifo/lab/bench/internal/meter"
)

// quotas prints the cost of a store's Quota for a claim and its completion, relative to a
// database without the index for quotas. The processor time does not include the PostgreSQL
// server.
func quotas(name string, open func() (*sql.DB, func()), dialect sqlstore.Dialect, length time.Duration, rounds int) {
	ctx := context.Background()
	sides := []struct {
		name       string
		index      bool
		quota      int64
		unresolved int64
	}{
		{"without the index", false, 0, 0},
		{"with the index", true, 0, 0},
		{"with a quota", true, 2000, 0},
		{"with 1,000 unresolved", true, 2000, 1000},
	}
	stores := make([]*sqlstore.Store, len(sides))
	rates, times := make([][]float64, len(sides)), make([][]float64, len(sides))
	var keys atomic.Int64
	for i, side := range sides {
		db, drop := open()
		defer drop()
		defer db.Close()
		meter.Check(sqlstore.Migrate(ctx, db, dialect))
		if !side.index {
			_, err := db.Exec(`DROP INDEX idempotency_keys_unfinished`)
			meter.Check(err)
		}
		s, err := sqlstore.Open(ctx, sqlstore.Config{DB: db, Dialect: dialect, Quota: side.quota})
		meter.Check(err)
		defer s.Close()
		for range side.unresolved {
			_, err := s.Claim(ctx, newClaim(keys.Add(1)))
			meter.Check(err)
		}
		stores[i] = s
	}
	for round := range rounds {
		for n := range sides {
			i := (n + round) % len(sides)
			start, before := keys.Load(), meter.ProcessorTime()
			r, _ := rate(length, func(c idempotency.Claim) (idempotency.Decision, error) {
				out, err := stores[i].Claim(ctx, c)
				if err != nil {
					return 0, err
				}
				return out.Decision, stores[i].Finish(ctx, out.Ref(), idempotency.Completed(idempotency.Result{MessageID: "m"}))
			}, func(*rand.Rand, *idempotency.Claim) idempotency.Claim { return newClaim(keys.Add(1)) })
			rates[i] = append(rates[i], r)
			times[i] = append(times[i], float64((meter.ProcessorTime()-before).Nanoseconds())/float64(keys.Load()-start)/1000)
		}
	}
	fmt.Printf("%s, %d writers, a claim and its completion\n", name, writers)
	for i, side := range sides {
		fmt.Printf("  %-22s %9.0f operations/s, %.2f times the rate without the index; %.1f us of processor time, %.2f times\n",
			side.name, meter.Median(rates[i]), meter.Median(ratios(rates[i], rates[0])), meter.Median(times[i]), meter.Median(ratios(times[i], times[0])))
	}
}

// ratios returns the quotients x[i]/y[i].
func ratios(x, y []float64) []float64 {
	out := make([]float64, len(x))
	for i := range x {
		out[i] = x[i] / y[i]
	}
	return out
}
