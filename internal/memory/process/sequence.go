package process

import (
	"math/bits"
	"time"
)

// sequence is SQS's sequence number minus 2^64, because SQS's numbers have 65 bits. Zero
// means no number, or an unknown format. Divided by perMilli, a sequence is the time at
// which SQS accepted the message, in milliseconds since 1970 (F-008; observed but not
// documented).
type sequence uint64

const perMilli = 256_000

// sequenceSpan is the difference of the sequence numbers of two messages if the time
// between the messages is memorySpan.
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

// isNotAfter reports whether two sequence numbers, s and the parameter `other`, are equal,
// or SQS stored the message with the number s first. Both numbers must be from one message
// group, because numbers increase only within a group (F-009 b, F-041).
func (s sequence) isNotAfter(other sequence) bool {
	// A larger difference proves nothing: the numbers of an emulator may have started
	// again.
	return s != 0 && s <= other && other-s < sequenceSpan
}

// acceptedAt returns the time at which SQS accepted the message, assuming the observed
// number format.
func (s sequence) acceptedAt() time.Time {
	return time.UnixMilli(int64(s / perMilli)) // #nosec G115 -- less than 2^47
}
