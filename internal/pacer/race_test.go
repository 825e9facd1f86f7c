//go:build race

package pacer_test

// seeds is the number of seeds of each simulation. It is small here, because the race
// detector makes the test twenty times as slow and finds nothing in a pacer, which only
// one goroutine uses.
const seeds = 1
