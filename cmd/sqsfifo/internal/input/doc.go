// Package input converts lines of JSON to messages.
//
// Problem: a line is a payload whose members identify the event, a complete envelope, or
// a message built earlier. SQS recognises duplicates by the bytes of the body. Equal
// events must therefore give equal bytes, and an invalid line an error with the line
// number.
//
// Guarantee: a line gives the same message on every machine and every day. Input is never
// repaired: invalid JSON, repeated members, integers beyond 2^53, missing identity, and
// violations of package lint are refused, with file, line and position.
//
// Limits: a line has at most 8 MiB and is held in memory. All lines have the same [Kind].
package input
