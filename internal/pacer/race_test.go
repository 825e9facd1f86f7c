//go:build race

package pacer_test

// seeds is the number of seeds of each simulation. It is small with the race detector,
// which makes the test twenty times as slow. The race detector finds nothing in a pacer,
// because only one goroutine uses it.
const seeds = 1
