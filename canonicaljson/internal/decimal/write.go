package decimal

import (
	"math/bits"
	"slices"

	"github.com/kansas-frontier-matrix/sqsfifo/canonicaljson/internal/word"
)

// Shortest returns the shortest decimal d*10^k that rounds to the double with the bits b.
// The double must be finite and positive: the sign bit of b is not set.
//
// Among decimals with equally few digits, Shortest returns the nearest to the double. The
// result d does not end in 0.
//
// The method is Schubfach (Giulietti, The Schubfach way to render doubles, 2021). The
// numbers that round to the double form an interval. Let 10^k be the largest power of ten
// that is not greater than the length of the interval. Then at least one multiple of 10^k
// is in the interval, and at most one multiple of 10^(k+1). Shortest checks only the
// multiples directly below and above the double: first of 10^(k+1), then of 10^k.
//
// Shortest multiplies the double and both ends of the interval by 10^-k and keeps 64 bits
// of each product (see mulOdd). These bits are enough to compare the products correctly.
func Shortest(b uint64) (d uint64, k int) {
	c, q := b&(1<<52-1), int(b>>52&0x7FF)
	lowerIsCloser := c == 0 && q > 1
	if q != 0 {
		c |= 1 << 52
	} else {
		q = 1
	}
	q -= 1075

	// In units of 2^q/4, doubles are usually 4 apart. Numbers between lower and upper
	// round to the double.
	middle := 4 * c
	lower, upper := middle-2, middle+2
	k = (q * 1262611) >> 22 // floor(log10(2^q))
	if lowerIsCloser {
		// The next lower double is only 2 units below middle. The interval ends half way.
		lower = middle - 1
		k = (q*1262611 - 524031) >> 22 // floor(log10(3/4 * 2^q))
	}
	shift := uint(q + (-k*1741647)>>19 + 1) // 1 to 4
	power := &powersOfTen[-k-minPower]
	high := power[0]
	low := power[1] + 1
	if low == 0 {
		high++
	}
	lower = mulOdd(high, low, lower<<shift)
	middle = mulOdd(high, low, middle<<shift)
	upper = mulOdd(high, low, upper<<shift)
	// A tie rounds to the even double: exclude the ends if c is odd.
	lower += c & 1
	upper -= c & 1

	s := middle / 4
	if s >= 10 {
		// Try one digit less. The interval is shorter than 10^(k+1), so it contains at
		// most one of t*10^(k+1) and (t+1)*10^(k+1). The products lower and upper are in
		// units of 10^k/4, so 10^(k+1) is 40 units.
		t := s / 10
		below, above := lower <= 40*t, 40*t+40 <= upper
		if below != above {
			if above {
				t++
			}
			return trimZeros(t, k+1)
		}
	}
	below, above := lower <= 4*s, 4*s+4 <= upper
	if below != above {
		if above {
			s++
		}
		return trimZeros(s, k)
	}
	// Both s and s+1 are in the interval. Choose the nearer, in a tie the even.
	if half := 4*s + 2; middle > half || middle == half && s&1 != 0 {
		s++
	}
	return trimZeros(s, k)
}

// mulOdd returns the highest 64 bits of the product of n and a rounded power of ten, the
// 128-bit number with the halves `high` and `low`. If the lower bits of the product with the
// exact power are not all zero, mulOdd sets the lowest bit of the result.
func mulOdd(high, low, n uint64) uint64 {
	x1, _ := bits.Mul64(low, n)
	y1, y0 := bits.Mul64(high, n)
	sum, carry := bits.Add64(y0, x1, 0)
	y1 += carry
	// The power was rounded up, which may add 1 to sum. So if sum is 1, the lower bits of the
	// exact product may all be zero.
	if sum > 1 {
		y1 |= 1
	}
	return y1
}

// trimZeros moves the zeros at the end of d to the exponent.
func trimZeros(d uint64, k int) (uint64, int) {
	if d%10 != 0 {
		return d, k
	}
	if d%1e8 == 0 {
		d /= 1e8
		k += 8
	}
	for d%100 == 0 {
		d /= 100
		k += 2
	}
	if d%10 == 0 {
		d /= 10
		k++
	}
	return d, k
}

// Pow10 has the powers of ten that fit into 64 bits.
var Pow10 = [...]uint64{
	1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19,
}

// Len returns the number of decimal digits of d, which must be positive.
func Len(d uint64) int {
	n := bits.Len64(d) * 1233 >> 12 // 1233/4096 is log10(2), rounded
	if d >= Pow10[n] {
		n++
	}
	return n
}

// Append appends d*10^k to dst in the layout of ECMA-262, with a minus sign if negative is
// true. The argument d has at most 17 digits and does not end in 0.
func Append(dst []byte, negative bool, d uint64, k int) []byte {
	// 40 bytes are enough for a number and the bytes that follow: word.Store64 always writes
	// eight bytes, so it may write past the end of the number.
	n := len(dst)
	dst = slices.Grow(dst, 40)[:n+40]
	if negative {
		dst[n] = '-'
		n++
	}
	count := Len(d)
	magnitude := count + k
	switch {
	case magnitude <= -6 || magnitude > 21:
		// d.ddde+dd
		putDigits(dst, n+1, d, count)
		dst[n] = dst[n+1]
		dst[n+1] = '.'
		n++
		if count > 1 {
			n += count
		}
		return appendExponent(dst[:n], magnitude-1)
	case magnitude <= 0:
		// 0.000ddd
		word.Store64(dst, n, zeroPoint)
		n += 2 - magnitude
		putDigits(dst, n, d, count)
		return dst[:n+count]
	case k >= 0:
		// ddd000
		putDigits(dst, n, d, count)
		for i := count; i < magnitude; i++ {
			dst[n+i] = '0'
		}
		return dst[:n+magnitude]
	}
	// ddd.ddd
	putPoint(dst, n, d, count, magnitude)
	return dst[:n+count+1]
}

// zeroPoint has the eight bytes of "0.000000" in one integer, the first byte lowest.
const zeroPoint = '0'*word.Low - ('0'-'.')<<8

func appendExponent(dst []byte, e int) []byte {
	dst = append(dst, 'e')
	if e < 0 {
		dst = append(dst, '-')
		e = -e
	} else {
		dst = append(dst, '+')
	}
	if e >= 100 {
		dst = append(dst, '0'+byte(e/100))
	}
	if e >= 10 {
		dst = append(dst, '0'+byte(e/10%10))
	}
	return append(dst, '0'+byte(e%10))
}

// putDigits writes the digits of d, the first to dst[n]. The argument `count` is the number
// of digits, at most 17. putDigits may also overwrite the bytes after the digits, up to
// dst[n+16].
func putDigits(dst []byte, n int, d uint64, count int) {
	if count > 16 {
		dst[n] = '0' + byte(d/1e16)
		d %= 1e16
		n++
	} else {
		d *= Pow10[16-count]
	}
	word.Store64(dst, n, word.Digits(d/1e8))
	word.Store64(dst, n+8, word.Digits(d%1e8))
}

// putPoint is like putDigits but inserts a decimal point. The argument `whole` is the number
// of digits before the point, with 0 < whole < count. putPoint may also overwrite the bytes
// after the digits, up to dst[n+17].
func putPoint(dst []byte, n int, d uint64, count, whole int) {
	if count > 16 {
		dst[n] = '0' + byte(d/1e16)
		d %= 1e16
		n++
		whole--
	} else {
		d *= Pow10[16-count]
	}
	w := word.Digits(d / 1e8)
	word.Store64(dst, n+9, word.Digits(d%1e8)) // n+9, not n+8: make room for the point
	if whole >= 8 {
		// The first eight digits are all before the point.
		word.Store64(dst, n, w)
		n += 8
		whole -= 8
		w = word.Digits(d % 1e8)
	}
	// Store w one byte further right, to make room for the point. Then overwrite the
	// start.
	word.Store64(dst, n+1, w)
	// Compute the bytes from w: loading them from dst would wait for the stores.
	before := uint64(1)<<(8*uint(whole)) - 1
	word.Store64(dst, n, w&before|'.'<<(8*uint(whole))|w&^before<<8)
}
