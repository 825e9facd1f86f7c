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
// MEASURED
package decimal
