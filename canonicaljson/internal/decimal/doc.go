// Package decimal converts between doubles and decimals for canonical JSON: it reads
// the nearest double and writes the shortest decimal in the layout of ECMA-262.
//
// # Guarantee
//
// Reading rounds to the nearest double, ties to even, for a literal of any length;
// writing is Number::toString of ECMA-262. The time for one number is at most a
// constant and a few nanoseconds for each byte, also for subnormal numbers and
// near-ties.
//
// # Why not strconv
//
// "make bench-canonical" was run with this package and with strconv in its place (Go
// 1.26, amd64). With strconv, a text of floats (canada.json) takes 2.6 times as long,
// and Go values with coordinates take 1.1 times as long. An event has few numbers and
// takes 0.96 to 0.98 times as long. The worst case is the reason against strconv: it
// reads subnormal literals and near-ties digit by digit. Compared with an event, a list
// of 5e-324 takes 2,100 times as long per byte with strconv, and 8 times as long with
// this package.
package decimal
