//go:build !race

package pacer_test

// seeds is the number of seeds of each simulation.
const seeds = 5
