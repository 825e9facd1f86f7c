// Package canonicaljson writes JSON in canonical form: the JSON Canonicalization
// Scheme (JCS) of RFC 8785.
//
// # Problem
//
// An SQS FIFO queue with content-based deduplication identifies a message by the
// SHA-256 of its body. With one more space, a member in another place, or 1.0
// instead of 1, the same event has another hash; worse, bytes that a JSON library
// repairs silently give two events the same hash. A body can only serve as an
// identity if equal values always have equal bytes and nothing is repaired.
//
// # Guarantee
//
// The output is a function of the value alone: no white space, members in the
// order of the UTF-16 code units of their names, strings with the fewest
// escapes, numbers as ECMAScript prints them. It does not depend on the Go
// version, the machine, or the order of a map. Output is valid input and its own
// canonical form, so hashing it twice, or reading it elsewhere by RFC 8785,
// gives the same result. The lower-case hexadecimal SHA-256 of the output is the
// deduplication ID that SQS gives a message with this body.
//
// What cannot be written faithfully is refused with an [*Error] that has the
// offset, the JSON pointer and the rule: duplicate names, invalid UTF-8 (also in
// Go strings, where [encoding/json] replaces it), lone surrogates, numbers
// beyond the range of a double, a byte order mark, trailing data. There are two
// kinds of functions:
//
//   - [Append] and [Canonicalize] follow the RFC to the letter and round every
//     number to a double.
//   - [AppendStrict], [CanonicalizeStrict], [IsCanonical], [AppendValue] and
//     [Marshal] also refuse integers that rounding would change, because two
//     events that differ in such an integer would become one. Use these for
//     message bodies.
//
// The time taken is proportional to the size of the input, whatever its shape and
// numbers (sorting adds a logarithm in the members of one object), and no text
// makes the package recurse. No function panics on bad input. All functions may
// be called concurrently.
//
// # Go values
//
// Where this documentation says encoding/json it means the package of Go 1.26 as
// it is built by default. GOEXPERIMENT=jsonv2 replaces it with an implementation
// that reads some malformed struct tags differently, leaves out nil pointers to
// unexported structs with methods that are embedded with a name, and reports other
// errors; this package does not change with it, so the same value has the same bytes in both
// builds.
//
// # Limits
//
//   - Strings are compared by their code points; no Unicode normalisation takes
//     place: "é" composed and decomposed are two strings.
//   - The type of a Go value is not part of its form: int 1, float64 1 and a
//     json.Number 1.0 are the same number, []byte("hi") and the string "aGk=" the
//     same string. Where it matters, the value has to say so.
//   - Numbers with a fraction or an exponent are doubles: 0.1 and
//     0.1000000000000000055 are the same number. Encode decimals that have to stay
//     apart as strings.
//   - At most [MaxDepth] levels and [MaxLength] bytes. A text is held in memory
//     as a whole.
//   - SQS does not accept all characters in a body. Those control characters that
//     it refuses never appear raw in the output; U+FFFE and U+FFFF, which it also
//     refuses, do where the input has them.
package canonicaljson
