// Package word reads and writes eight bytes of text as one integer (a word), with the
// first byte as its lowest byte. It reads and writes eight decimal digits at once by
// arithmetic on such words.
//
// On amd64 and arm64, the load and store functions do not check bounds. This saves a fifth
// of the time to canonicalise a short text. Each caller must check the length first. With
// the build tag "safe", the functions check bounds, so that tests find a caller without this
// check. No other code in canonicaljson is unsafe.
package word

const (
	// Low has the lowest bit of each byte set.
	Low = 0x0101010101010101
	// High has the highest bit of each byte set.
	High = 0x8080808080808080
)

// Others finds the first byte of w that is not a decimal digit. If all bytes are digits, the
// result `marks` is zero. Otherwise its lowest set bit is the highest bit of the found byte,
// so bits.TrailingZeros64(marks)/8 is the index of this byte. The higher bits of `marks` may
// be wrong, because of carries between bytes.
//
// The result `values` is w with each digit replaced by its value, 0 to 9.
func Others(w uint64) (values, marks uint64) {
	values = w ^ '0'*Low
	return values, (values | (values + 0x76*Low)) & High
}

// Digits returns the decimal text of d, eight ASCII digits with leading zeros, in one
// integer with the first digit as its lowest byte. The argument d is less than 1e8.
//
// Digits splits d into two numbers of four digits, then into four numbers of two digits,
// then into eight digits. Each step splits all numbers at once.
func Digits(d uint64) uint64 {
	d = d/1e4 | d%1e4<<32
	hundreds := d * 10486 >> 20 & 0x7F_0000_007F
	d = hundreds | (d-hundreds*100)<<16
	tens := d * 103 >> 10 & 0xF_000F_000F_000F
	d = tens | (d-tens*10)<<8
	return d | '0'*Low
}

// Number returns the decimal number of eight digits. Each byte of the argument is the value
// of one digit, 0 to 9, with the first digit in the lowest byte. The result `values` of the
// function [Others] has this form.
func Number(values uint64) uint64 {
	w := values*10 + values>>8
	return ((w&0xFF000000FF)*(100+1000000<<32) + (w>>16&0xFF000000FF)*(1+10000<<32)) >> 32
}
