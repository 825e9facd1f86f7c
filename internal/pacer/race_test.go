//go:build race

package pacer_test

// seeds of a simulation. A pacer has one owner, so that there is nothing in it for the
// race detector, which makes it twenty times as slow.
const seeds = 1
