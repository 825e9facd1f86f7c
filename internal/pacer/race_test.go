//go:build race

package pacer_test

// seeds is the number of seeds of each simulation. A pacer has one owner, so the race
// detector has nothing to find and makes the test twenty times as slow.
const seeds = 1
