//go:build race

package pacer_test

// seeds is the number of runs of each simulation. With the race detector, a run takes twenty
// times as long, and finds no data race, because only one goroutine uses a Pacer. So one run
// is enough.
const seeds = 1
