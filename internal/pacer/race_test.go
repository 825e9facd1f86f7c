//go:build race

package pacer_test

// seeds is the number of seeds for each simulation: one, because the race detector makes
// simulations twenty times as slow. A Pacer belongs to one goroutine and has no races to
// find.
const seeds = 1
