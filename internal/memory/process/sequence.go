package process

import (
	"math/bits"
	"time"
)

// sequence is a sequence number of SQS minus 2^64, so that it fits in 64 bits. Zero means
// that there is no number, or that its format is unknown, as from an emulator.
//
// A number has 256,000 units per millisecond since 1970, plus the message's position
// within the millisecond (F-008; observed but not documented).
type sequence uint64

const perMilli = 256_000

// sequenceSpan is the difference between the sequence numbers of two messages if SQS
// accepted the second message memorySpan after the first.
const sequenceSpan = sequence(memorySpan/time.Millisecond) * perMilli

// parseSequence parses a sequence number. The result is zero for an unknown format.
func parseSequence(text string) sequence {
	if len(text) != len("18446744073709551616") {
		return 0
	}
	var halves [2]uint64
	for i := range len(text) {
		digit := text[i] - '0'
		if digit > 9 {
			return 0
		}
		half := &halves[i/10]
		*half = *half*10 + uint64(digit)
	}
	high, low := bits.Mul64(halves[0], 1e10)
	low, carry := bits.Add64(low, halves[1], 0)
	if high+carry != 1 {
		return 0
	}
	return sequence(low)
}

// isNotAfter reports whether the message with the number s was stored no later than the
// message with the number highest in the same group. Within a group, numbers increase
// (F-009 b, F-041).
func (s sequence) isNotAfter(highest sequence) bool {
	// If s is lower by sequenceSpan, the numbers have restarted, as in an emulator.
	return s != 0 && s <= highest && highest-s < sequenceSpan
}

// acceptedAt returns the time at which SQS accepted the message, assuming the observed
// number format.
func (s sequence) acceptedAt() time.Time {
	return time.UnixMilli(int64(s / perMilli)) // #nosec G115 -- less than 2^47
}
