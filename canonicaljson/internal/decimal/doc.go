// Package decimal converts between doubles and decimals as canonical JSON needs
// it: it reads the nearest double and writes the shortest decimal in the layout of
// ECMA-262.
//
// # Guarantee
//
// Reading rounds to the nearest double, ties to even, for a literal of any
// length; writing is Number::toString of ECMA-262. The time for one number is
// bounded by a constant and a few nanoseconds for each of its bytes, subnormal
// numbers and near-ties included.
//
// # Why not strconv
//
// Measured with "make bench-canonical" and strconv in its place (Go 1.26, amd64):
// text that is mostly floats, canada.json, takes 2.6 times as long, and Go values
// with coordinates 1.1 times. An event has few numbers and takes 0.96 to 0.98 times
// as long. What decides is the worst case: strconv reads subnormal literals and
// those close to the middle of two doubles digit by digit. A list of 5e-324 took
// 2,100 times as long for a byte as an event does, and now takes 8 times as long.
package decimal
