package sqstest_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// shrink returns a list of steps for which the function `fails` still returns true, if
// possible a shorter list. It removes a part of the list if `fails` returns true for the
// rest: first one half or the other, then smaller parts, and at last single steps.
func shrink(steps []step, fails func([]step) bool) []step {
	for size := (len(steps) + 1) / 2; size > 0; {
		shorter := false
		for at := 0; at < len(steps); {
			without := slices.Concat(steps[:at], steps[min(at+size, len(steps)):])
			if fails(without) {
				steps, shorter = without, true
			} else {
				at += size
			}
		}
		if !shorter {
			size /= 2
		}
	}
	return steps
}

// holdToModel plays the steps on queue and model. If their results differ, it fails the
// test with a shorter list of steps that still shows a difference.
func holdToModel(t *testing.T, variant int, steps []step) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		err := play(variant, interval, steps)
		if err == nil {
			return
		}
		var d *difference
		if errors.As(err, &d) {
			steps = shrink(steps[:d.at+1], func(s []step) bool { return play(variant, interval, s) != nil })
			err = play(variant, interval, steps)
		}
		t.Fatalf("%s: %v\n%s", variants[variant].name, err, listing(steps))
	})
}

func listing(steps []step) string {
	var b strings.Builder
	for _, s := range steps {
		fmt.Fprintln(&b, s)
	}
	return b.String()
}

func randomSteps(rng *rand.Rand, n int) []step {
	likely := []kind{send, send, send, batch, receive, receive, receive, receive, bury, remove, remove, change, sleep, sleep, purge, redrive}
	steps := make([]step, n)
	for i := range steps {
		s := step{kind: likely[rng.IntN(len(likely))]}
		switch s.kind {
		case send, batch:
			s.a, s.b = rng.IntN(30), rng.IntN(4)
		case receive, bury:
			s.a, s.b, s.c = rng.IntN(10), rng.IntN(90), max(0, rng.IntN(6)-3)
		case remove, change:
			s.a, s.b = rng.IntN(6), rng.IntN(60)
		case sleep:
			s.a = rng.IntN(len(pauses))
		case purge:
			if rng.IntN(5) > 0 {
				s.kind = receive
			}
		}
		steps[i] = s
	}
	return steps
}

func TestAgainstToyModel(t *testing.T) {
	for variant, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			for seed := range uint64(20) {
				holdToModel(t, variant, randomSteps(rand.New(rand.NewPCG(seed, uint64(variant))), 250))
			}
		})
	}
}

// Each of these lists of steps once gave different results in the queue and in the
// model.
func TestModelRegressions(t *testing.T) {
	for name, steps := range map[string][]step{
		"a duplicate after a delete":                              {{send, 1, 1, 0}, {receive, 1, 30, 0}, {remove, 0, 0, 0}, {sleep, 5, 0, 0}, {send, 1, 2, 0}, {sleep, 6, 0, 0}, {send, 1, 2, 0}},
		"a group that is given back goes to the back of the line": {{send, 1, 1, 0}, {send, 2, 1, 0}, {send, 3, 2, 0}, {receive, 1, 29, 0}, {change, 1, 0, 0}, {receive, 9, 29, 0}},
		"a dead letter and its way back":                          {{send, 1, 1, 0}, {receive, 0, 0, 0}, {sleep, 0, 0, 0}, {receive, 0, 0, 0}, {sleep, 0, 0, 0}, {receive, 0, 0, 0}, {bury, 0, 0, 0}, {redrive, 0, 0, 0}, {sleep, 0, 0, 0}, {receive, 0, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			for variant := range variants {
				holdToModel(t, variant, steps)
			}
		})
	}
}

// The queue is compared with a wrong model, whose window has four minutes. Random steps
// show the difference, and shrink reduces them to at most three: a send, a pause and the
// same send.
func TestModelFindsAndShrinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const wrong = 4 * time.Minute
		fails := func(s []step) bool { return play(0, wrong, s) != nil }
		var steps []step
		for seed := uint64(0); !fails(steps); seed++ {
			require.Less(t, seed, uint64(50))
			steps = randomSteps(rand.New(rand.NewPCG(seed, 1)), 300)
		}
		steps = shrink(steps, fails)
		require.LessOrEqual(t, len(steps), 3, listing(steps))
		require.ErrorContains(t, play(0, wrong, steps), "want a new message")
		require.Contains(t, listing(steps), "{sleep, 5, 0, 0},")
	})
}

// FuzzModel decodes a list of steps from bytes, plays the steps on the queue and on the
// model, and compares the results.
func FuzzModel(f *testing.F) {
	f.Add(uint8(0), []byte{0, 1, 1, 0, 8, 5, 0, 0, 0, 1, 1, 0, 8, 6, 0, 0, 0, 1, 1, 0})
	f.Add(uint8(2), []byte{1, 1, 1, 0, 2, 9, 0, 1, 8, 0, 0, 0, 2, 9, 0, 1, 8, 0, 0, 0, 2, 9, 0, 1, 7, 0, 0, 0, 8, 0, 0, 0, 3, 9, 9, 2, 6, 0, 0, 0})
	f.Fuzz(func(t *testing.T, variant uint8, program []byte) {
		var steps []step
		for len(program) >= 4 && len(steps) < 200 {
			steps = append(steps, step{kind(program[0]) % kinds, int(program[1]), int(program[2]), int(program[3])})
			program = program[4:]
		}
		holdToModel(t, int(variant)%len(variants), steps)
	})
}
