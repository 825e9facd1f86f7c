// Package seedtest runs randomized tests: one subtest for each seed, which determines the
// random choices. Each subtest runs in its own bubble of virtual time.
package seedtest

import (
	"flag"
	"strconv"
	"testing"
	"testing/synctest"
)

// Seeds holds the two flags that select the seeds of a test.
type Seeds struct{ many, only *int }

// Flags registers two flags for a test: name.seeds, the number of seeds, and name.seed, a
// single seed. Call Flags once, in the declaration of a package variable of the test.
func Flags(name, test string) Seeds {
	return Seeds{
		many: flag.Int(name+".seeds", 0, "number of seeds of "+test+"; 0 is the usual one"),
		only: flag.Int(name+".seed", -1, "the only seed of "+test),
	}
}

// Run runs f once per seed, in parallel subtests, each in its own synctest bubble. Run
// waits for all subtests and returns the number of seeds.
//
// The seeds are 0 to n-1. The number n is the parameter `usual`, or the parameter `short`
// under go test -short. The flag name.seeds sets another number of seeds, and the flag
// name.seed runs a single seed.
func (s Seeds) Run(t *testing.T, usual, short int, f func(t *testing.T, seed uint64)) int {
	t.Helper()
	from, to := 0, usual
	switch {
	case *s.only >= 0:
		from, to = *s.only, *s.only+1
	case *s.many > 0:
		to = *s.many
	case testing.Short():
		to = short
	}
	t.Run("seeds", func(t *testing.T) {
		for seed := from; seed < to; seed++ {
			t.Run(strconv.Itoa(seed), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { f(t, uint64(seed)) })
			})
		}
	})
	return to - from
}
