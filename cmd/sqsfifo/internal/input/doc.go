// Package input turns lines of JSON into messages.
//
// Problem: events come as payloads whose identity stands somewhere in them, as ready
// envelopes, or as messages that a program built earlier. Each has to become the bytes
// that SQS deduplicates by, or an error that names the line.
//
// Guarantee: a line gives the same message on every machine and every day. Nothing is
// repaired: what is not JSON, has a member twice or an integer beyond 2^53, lacks what
// identifies the event, or breaks a rule of package lint is refused, with the file, the
// line and the place in it.
//
// Limits: a line of at most [MaxLine] bytes is held in memory. All lines are of one kind.
package input
