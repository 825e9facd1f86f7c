// Package decimal converts between doubles and decimals for canonical JSON: it reads
// the nearest double and writes the shortest decimal in the layout of ECMA-262.
//
// # Guarantee
//
// Reading rounds to the nearest double, ties to even, for a literal of any length;
// writing is Number::toString of ECMA-262. The time for one number is at most a
// constant and a few nanoseconds for each byte. This is also true for subnormal numbers
// and for near-ties, the decimals close to the middle between two doubles.
//
// # Why not strconv
//
// strconv reads subnormal literals and near-ties digit by digit, so a hostile text could
// take very long. With strconv, a list of 5e-324 takes 2,100 times as long per byte as an
// ordinary event. With this package, the list takes 8 times as long per byte.
//
// For other input, strconv takes this time in comparison with this package:
//
//   - 2.6 times as long for a text of floats (canada.json);
//   - 1.1 times as long for Go values with coordinates;
//   - 0.96 to 0.98 times as long for an event, which has few numbers.
//
// "make bench-canonical" measured these figures with Go 1.26 on amd64.
package decimal
