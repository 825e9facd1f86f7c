// Package word reads and writes eight bytes of text as one word, the first byte
// in the lowest place, and has the arithmetic on such words that reads and writes
// eight decimal digits at once.
//
// The functions that load and store are all that is unsafe in canonicaljson: they
// do not check bounds, which saves a fifth of the time of a short text. Every
// caller has compared i+8, or i+4, with the length before. The build tag "safe"
// selects the same functions with the checks; tests and fuzzers run with it find a
// caller that breaks the rule.
package word

const (
	// Low has the lowest bit of each byte set.
	Low = 0x0101010101010101
	// High has the highest bit of each byte set.
	High = 0x8080808080808080
)

// Others marks, in their highest bits, the bytes of w that are not decimal digits,
// and returns the values of the digits. The lowest mark is exact; those above it
// need not be.
func Others(w uint64) (values, marks uint64) {
	values = w ^ '0'*Low
	return values, (values | (values + 0x76*Low)) & High
}

// Digits returns the text of eight digits, d < 1e8, as a word. All of them are
// found at once: the word is halved into fields of four, two and one digit.
func Digits(d uint64) uint64 {
	d = d/1e4 | d%1e4<<32
	hundreds := d * 10486 >> 20 & 0x7F_0000_007F
	d = hundreds | (d-hundreds*100)<<16
	tens := d * 103 >> 10 & 0xF_000F_000F_000F
	d = tens | (d-tens*10)<<8
	return d | '0'*Low
}

// Number returns the number that eight digits stand for. The word has their
// values, as [Others] returns them.
func Number(values uint64) uint64 {
	w := values*10 + values>>8
	return ((w&0xFF000000FF)*(100+1000000<<32) + (w>>16&0xFF000000FF)*(1+10000<<32)) >> 32
}
