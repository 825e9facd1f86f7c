// Package input converts lines of JSON to messages. For example, a line is the payload of
// an event (see [Kind]).
//
// Problem: SQS recognises a duplicate only if the bytes of the body are equal. Lines that
// differ only in spaces or escapes must therefore give equal bodies.
//
// Guarantee: a line gives the same message on every machine and every day. Input is never
// repaired. Invalid JSON, repeated members, integers beyond 2^53, missing identity, and
// violations of package lint are errors with file, line and position.
//
// Limits: a line has at most 8 MiB and is held in memory. All lines have the same [Kind].
package input
