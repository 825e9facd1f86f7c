package decimal

import (
	"math"
	"math/bits"
)

// minPower and maxPower are the lowest and the highest exponent in the table powersOfTen.
const (
	minPower = -342 // with a lower exponent, any 19 digits round to zero
	maxPower = 324  // Shortest needs 10^324 for the smallest double, 5e-324
)

// MaxDigits is the largest number of decimal digits that always fit into 64 bits.
const MaxDigits = 19

// Infinity is the bit pattern of positive infinity. As an integer, it is one more than
// the bit pattern of the largest finite double. In rounding, Infinity counts as 2^1024.
const Infinity = 0x7FF << 52

// Nearest returns the bits of the double nearest to w*10^q, ties to even. The argument w
// has at most [MaxDigits] digits. A value beyond the finite doubles becomes [Infinity].
//
// In rare cases Nearest cannot decide between two neighbours. Then the result `exact` is
// false, and the caller must use [Parse].
//
// The method is the algorithm of Eisel and Lemire (Lemire, Number Parsing at a Gigabyte per
// Second, 2021). It multiplies w by the highest 64 bits of 10^q, and by the next 64 bits if
// the first product does not decide the rounding.
func Nearest(w uint64, q int) (b uint64, exact bool) {
	switch {
	case w == 0 || q < minPower:
		// If q < minPower, the value is below 10^19 * 10^-343. This is less than half of the
		// smallest double, 5e-324.
		return 0, true
	case q > maxPower:
		return Infinity, true
	}
	power := &powersOfTen[q-minPower]
	shift := bits.LeadingZeros64(w)
	w <<= uint(shift)
	exact = true
	high, low := bits.Mul64(w, power[0])
	// power[0] lacks the lower bits of 10^q, so the product is too small, by less than w.
	// Use power[1] only if the error can carry past the nine lowest bits of high.
	if high&0x1FF == 0x1FF && low+w < w {
		h, l := bits.Mul64(w, power[1])
		sum, carry := bits.Add64(low, h, 0)
		high += carry
		low = sum
		if high&0x1FF == 0x1FF && sum == math.MaxUint64 && l+w < w {
			exact = false
		}
	}
	top := high >> 63
	mantissa := high >> (top + 9)
	// (217706*q)>>16 is floor(log2(10^q)), and 1023 is the bias of a double's exponent.
	exponent := (217706*q)>>16 + 64 + 1023 - shift - int(1^top)
	if exponent < 1 {
		// The double is subnormal, so it keeps fewer bits of the mantissa. Round up if the
		// highest dropped bit is 1. This is never a tie: ties have more than 19 digits.
		mantissa >>= uint(1 - exponent)
		mantissa += mantissa & 1
		return mantissa >> 1, exact // may be 1<<52: the smallest normal double
	}
	if low == 0 && high&0x1FF == 0 && mantissa&3 == 1 {
		// This may be a tie, or slightly more if power[0] lacks bits of 10^q. The caller
		// must call Parse to decide.
		exact = false
	}
	mantissa += mantissa & 1
	mantissa >>= 1
	if mantissa>>53 != 0 {
		mantissa >>= 1
		exponent++
	}
	if exponent > 2046 {
		return Infinity, exact
	}
	return mantissa&(1<<52-1) | uint64(exponent)<<52, exact
}

// maxKept is the number of significant digits that Parse keeps. A single 1 stands for
// nonzero digits after them. Rounding stays correct, because a decimal half way between
// two doubles has at most 767 digits.
const maxKept = 800

// Parse returns the bits of the double nearest to a decimal number times 10^power, ties to
// even. A value beyond the finite doubles becomes [Infinity].
//
// The argument `text` is the decimal number. It consists of digits and at most one point. The
// sum of its length and the magnitude of the argument `power` must fit into an int.
func Parse(text []byte, power int) uint64 {
	var digits [maxKept + 1]byte
	n, places, more := 0, 0, false
	for i, c := range text {
		switch {
		case c == '.':
			places = len(text) - i - 1
		case n == 0 && c == '0':
		case n < maxKept:
			digits[n] = c
			n++
		default:
			power++
			more = more || c != '0'
		}
	}
	power -= places
	switch {
	case n == 0 || n+power < -330:
		return 0
	case n+power > 310:
		return Infinity
	case more:
		digits[n] = '1'
		n++
		power--
	}
	w := uint64(0)
	for _, c := range digits[:min(n, MaxDigits)] {
		w = w*10 + uint64(c-'0')
	}
	if n <= MaxDigits {
		b, exact := Nearest(w, power)
		if !exact {
			b = round(b, digits[:n], power)
		}
		return b
	}
	b, exact := Nearest(w, power+n-MaxDigits)
	if above, too := Nearest(w+1, power+n-MaxDigits); !exact || !too || above != b {
		b = round(b, digits[:n], power)
	}
	return b
}

// round returns the bits of the double nearest to the digits times 10^power, ties to
// even, by exact arithmetic. The search starts at b, a double near the value.
func round(b uint64, digits []byte, power int) uint64 {
	var value, unit natural // the exact number is value/unit times 2^power
	for len(digits) > 0 {
		w, n := uint64(0), min(len(digits), MaxDigits)
		for _, c := range digits[:n] {
			w = w*10 + uint64(c-'0')
		}
		value.mulAdd(Pow10[n], w)
		digits = digits[n:]
	}
	unit.mulAdd(0, 1)
	if power > 0 {
		value.mulPowerOfFive(power)
	} else {
		unit.mulPowerOfFive(-power)
	}
	// order compares the exact number with a midpoint, and returns the same result as
	// cmp.Compare. The midpoint is between the double with the bits b and the next higher
	// double, with the bits b+1.
	order := func(b uint64) int {
		c, e := b&(1<<52-1), max(int(b>>52), 1)
		if b>>52 != 0 {
			c |= 1 << 52
		}
		left, middle := value, unit
		middle.mulAdd(2*c+1, 0)
		if shift := power - (e - 1076); shift > 0 {
			left.shiftLeft(shift)
		} else {
			middle.shiftLeft(-shift)
		}
		return left.compare(&middle)
	}
	for b < Infinity && order(b) >= 0 {
		b++
	}
	// Now b is the nearest double or a higher one. At a midpoint, choose the even double.
	for b > 0 {
		if o := order(b - 1); o > 0 || o == 0 && b&1 == 0 {
			break
		}
		b--
	}
	return b
}
