//go:build !race

package pacer_test

// seeds of a simulation.
const seeds = 5
