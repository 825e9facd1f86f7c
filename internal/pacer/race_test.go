//go:build race

package pacer_test

// seeds is the number of seeds for each simulation. The race detector makes the simulations
// twenty times as slow, so there is only one seed. More would not help, because a Pacer is
// used by one goroutine and has no races to find.
const seeds = 1
