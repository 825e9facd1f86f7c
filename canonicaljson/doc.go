// Package canonicaljson writes JSON in canonical form: the JSON Canonicalization Scheme
// (JCS) of RFC 8785.
//
// # Problem
//
// An SQS FIFO queue with content-based deduplication identifies a message by the
// SHA-256 of its body. An additional space, another order of the members, or 1.0 instead
// of 1 changes the hash of an event. If a JSON library silently repairs faulty bytes, two
// different events can get the same hash. A body can serve as an identity only if equal
// values always have equal bytes and faulty bytes are refused.
//
// # Guarantee
//
// The output depends on the value alone: no white space, members in the order of the
// UTF-16 code units of their names, strings with the fewest escapes, numbers in
// ECMAScript's format. The Go version, the machine and the order of a map have no
// influence. The canonical form of the output is the output itself, also with another
// implementation of RFC 8785. The lower-case hexadecimal SHA-256 of the output is the
// deduplication ID that SQS computes for a message with this body.
//
// The functions refuse values without a faithful form: duplicate names, invalid UTF-8
// (also in Go strings, where [encoding/json] replaces it), lone surrogates, numbers
// beyond the range of a double, a byte order mark, trailing data. The [*Error] names the
// offset, the JSON pointer and the rule. There are two kinds of functions:
//
//   - [Append] and [Canonicalize] follow the RFC to the letter and round every number
//     to a double.
//   - [AppendStrict], [CanonicalizeStrict], [IsCanonical], [AppendValue] and [Marshal]
//     also refuse integers that rounding would change, because two events with
//     different integers would become one. Use these functions for message bodies.
//
// The time is proportional to the size of the input for every shape and every number,
// except that sorting an object with n members takes up to about n log n comparisons. The
// package reads texts without recursion. No function panics on bad input. All functions
// may be called concurrently.
//
// # Go values
//
// In this documentation encoding/json means the package in Go 1.26. Go 1.27 has another
// implementation, which GOEXPERIMENT=jsonv2 selects in Go 1.26. The new implementation
// reads some malformed struct tags differently and reports other errors. It also leaves
// out an embedded nil pointer to an unexported struct with methods, even if the tag gives
// the field a name. This package writes the same bytes with both implementations.
//
// # Limits
//
//   - Strings are compared by their code points, without Unicode normalisation: "é"
//     composed and "é" decomposed are two strings.
//   - The Go type of a value is not part of its form: int 1, float64 1 and a
//     json.Number 1.0 are the same number, and []byte("hi") is the same string as
//     "aGk=". If the type matters, include it in the value.
//   - Numbers with a fraction or an exponent are doubles: 0.1 and 0.1000000000000000055
//     are the same number. Encode decimals as strings if they must stay different.
//   - At most [MaxDepth] levels and [MaxLength] bytes. A whole text is held in memory.
//   - SQS does not accept all characters in a body. The output escapes the refused
//     control characters. U+FFFE and U+FFFF, also refused by SQS, appear in the output
//     if the input contains them.
package canonicaljson
