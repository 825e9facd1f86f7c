package dedup

import (
	"math/bits"
	"time"
)

// sequence is a sequence number of the form that SQS gives, less 2^64: a time in
// units of 256,000 a millisecond since 1970, and the position among the messages of
// that millisecond (F-008, seen and not documented). It is zero for no number and
// for one of another form, such as an emulator's.
type sequence uint64

const perMilli = 256_000

// sequenceSpan is memorySpan in units of a sequence number.
const sequenceSpan = sequence(memorySpan/time.Millisecond) * perMilli

// parseSequence returns the sequence number of a text, zero for one of another form.
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

// isNotAfter reports whether s is surely the number of a message that SQS stored no
// later than the one with the number mark: numbers increase within a group (F-009 b,
// F-041). Numbers that are an interval apart prove nothing: SQS would have forgotten
// the message, so the numbers have started again, as those of an emulator do.
func (s sequence) isNotAfter(mark sequence) bool {
	return s != 0 && s <= mark && mark-s < sequenceSpan
}

// acceptedAt returns when SQS accepted the message, if numbers hold what they seem to.
func (s sequence) acceptedAt() time.Time {
	return time.UnixMilli(int64(s / perMilli)) // #nosec G115 -- less than 2^47
}

// acceptedBefore reports whether the number says that SQS accepted its message before
// first, more than what clocks may differ, and within an interval that lasts at now
// (F-009 c). The number must not be zero.
func (s sequence) acceptedBefore(first, now time.Time) bool {
	accepted := s.acceptedAt()
	return accepted.Before(first.Add(-Slack)) && accepted.After(now.Add(-memorySpan))
}
