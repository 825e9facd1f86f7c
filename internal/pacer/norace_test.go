//go:build !race

package pacer_test

// seeds is the number of runs of each simulation. Each run has a different seed.
const seeds = 5
