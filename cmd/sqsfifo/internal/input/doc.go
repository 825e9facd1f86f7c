// Package input converts lines of JSON to messages.
//
// Problem: events arrive as payloads with an identity in some members, as complete
// envelopes, or as messages built earlier. Each must become the bytes for SQS's
// deduplication, or an error that names the line.
//
// Guarantee: a line gives the same message on every machine and every day. Input is never
// repaired: invalid JSON, repeated members, integers beyond 2^53, missing identity, and
// violations of package lint are refused, with file, line and position.
//
// Limits: a line has at most 8 MiB and is held in memory. All lines have the same kind.
package input
