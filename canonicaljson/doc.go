// Package canonicaljson writes JSON in its one canonical form, the JSON
// Canonicalization Scheme (JCS) of RFC 8785.
//
// # Problem
//
// An SQS FIFO queue with content-based deduplication knows an event by the
// SHA-256 of its body (F-011). One blank, one member in another place, 1.0 in
// place of 1, and the same event has another hash; worse, bytes that a JSON
// library repairs in silence give two events one hash. A body can only be an
// identity if equal values always have equal bytes, and nothing is repaired.
//
// # Guarantee
//
// The output is a function of the value alone: no white space, members in the
// order of the UTF-16 code units of their names, strings with the fewest
// escapes, numbers as ECMAScript prints them. It does not depend on the Go
// version, the machine, or the order of a map. Output is valid input and its own
// canonical form, so hashing it twice, or reading it elsewhere by RFC 8785,
// gives the same result. The lower-case hexadecimal SHA-256 of the output is the
// id that SQS gives a message with this body.
//
// What cannot be carried faithfully is refused with an [*Error] that has the
// offset, the JSON pointer and the rule: duplicate names, invalid UTF-8 (also in
// Go strings, where [encoding/json] replaces it), lone surrogates, numbers
// beyond the range of a double, a byte order mark, data behind the value. There
// are two kinds of functions:
//
//   - [Append] and [Canonicalize] follow the RFC to the letter and round every
//     number to a double.
//   - [AppendStrict], [CanonicalizeStrict], [IsCanonical], [AppendValue] and
//     [Marshal] also refuse integers that rounding would change, because two
//     events that differ in such an integer would become one. A message body
//     takes these.
//
// The time taken is proportional to the size of the input, whatever its shape
// (sorting adds a logarithm in the members of one object), and no text makes
// the package recurse. No function panics on bad input. All functions may be
// called concurrently.
//
// # Limits
//
//   - Strings are compared by their code points; no Unicode normalisation takes
//     place: "é" composed and decomposed are two strings.
//   - The type of a Go value is not part of its form: int 1, float64 1 and a
//     json.Number 1.0 are one number, []byte("hi") and the string "aGk=" one
//     string. Where it matters, the value has to say so.
//   - Numbers with a fraction or an exponent are doubles: 0.1 and
//     0.1000000000000000055 are one number. Encode decimals that have to stay
//     apart as strings.
//   - At most [MaxDepth] levels and [MaxLength] bytes. A text is held in memory
//     as a whole.
//   - Control characters that SQS does not accept in a body (F-072) never appear
//     raw in the output, U+FFFE and U+FFFF do where the input has them.
package canonicaljson
