package canonicaljson

import (
	"bytes"
	"math"
	"math/bits"
	"strconv"

	"github.com/kansas-frontier-matrix/sqsfifo/canonicaljson/internal/decimal"
	"github.com/kansas-frontier-matrix/sqsfifo/canonicaljson/internal/word"
)

// AppendNumber appends the canonical form of f to dst (RFC 8785 section 3.2.2.3): the
// shortest digits that denote no other double, in ECMAScript's layout. Both zeros are "0".
//
// The only error is [ErrNumberRange], for a NaN or an infinity; dst is then returned
// unchanged.
func AppendNumber(dst []byte, f float64) ([]byte, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return dst, &Error{Offset: -1, Detail: "number " + strconv.FormatFloat(f, 'g', -1, 64), Err: ErrNumberRange}
	}
	return appendFloat(dst, f, 64), nil
}

// appendFloat writes a finite f. Size 32 means a float32, with the shortest digits that
// distinguish it from all other float32 values.
func appendFloat(dst []byte, f float64, size int) []byte {
	switch {
	case f == 0:
		return append(dst, '0')
	case size == 32:
		return appendFloat32(dst, f)
	}
	if n := int64(f); n > -1<<53 && n < 1<<53 && float64(n) == f {
		return strconv.AppendInt(dst, n, 10)
	}
	d, k := decimal.Shortest(math.Float64bits(f) &^ (1 << 63))
	return decimal.Append(dst, f < 0, d, k)
}

// appendFloat32 writes a nonzero float32 with the fewest digits that distinguish it from
// other float32 values, at most nine. The text is also canonical if it is read as a
// float64.
func appendFloat32(dst []byte, f float64) []byte {
	// Compare as float32: float64(float32(1e-6)) is less than 1e-6, but its text is
	// 0.000001.
	if abs := float32(math.Abs(f)); abs >= 1e-6 && abs < 1e21 {
		return strconv.AppendFloat(dst, f, 'f', -1, 32)
	}
	dst = strconv.AppendFloat(dst, f, 'e', -1, 32)
	// ECMAScript does not pad the exponent to two digits.
	if n := len(dst); dst[n-2] == '0' && (dst[n-3] == '-' || dst[n-3] == '+') {
		dst[n-2] = dst[n-1]
		dst = dst[:n-1]
	}
	return dst
}

// literal describes a number in a text: shape and digits.
type literal struct {
	first         int    // offset of the first digit
	end           int    // offset after the literal
	whole, places int    // digits before and after the point
	digits        uint64 // all digits as one integer, modulo 2^64
	exponent      bool   // the literal has an exponent
	power         int    // the exponent; ±maxPower if its magnitude is 1e9 or more
}

// An exponent with a magnitude of 1e9 or more is read as ±maxPower: the digits, at most
// MaxLength (about 5e8), cannot compensate for it. maxPower+MaxLength fits into 32 bits.
const maxPower = 1_600_000_000

// read reads the number at src[start] by the grammar of RFC 8259 section 6. It returns -1,
// or the offset of a fault and a description of the expected bytes.
func (l *literal) read(src []byte, start int) (int, string) {
	i := start
	if src[i] == '-' {
		i++
	}
	l.first = i
	i, w := readDigits(src, i, 0)
	l.whole = i - l.first
	if l.whole == 0 {
		return i, "a digit"
	}
	if src[l.first] == '0' && l.whole > 1 {
		return l.first + 1, "no digit after a leading zero"
	}
	l.places = 0
	if i < len(src) && src[i] == '.' {
		i++
		from := i
		i, w = readDigits(src, i, w)
		if l.places = i - from; l.places == 0 {
			return i, "a digit after '.'"
		}
	}
	l.digits = w
	l.exponent, l.power = false, 0
	if i < len(src) && (src[i] == 'e' || src[i] == 'E') {
		l.exponent = true
		i++
		negative := i < len(src) && src[i] == '-'
		if negative || i < len(src) && src[i] == '+' {
			i++
		}
		from := i
		for i < len(src) && src[i]-'0' <= 9 {
			if l.power < 100_000_000 {
				l.power = l.power*10 + int(src[i]-'0')
			} else {
				l.power = maxPower
			}
			i++
		}
		if i == from {
			return i, "a digit in the exponent"
		}
		if negative {
			l.power = -l.power
		}
	}
	l.end = i
	return -1, ""
}

// readDigits reads the decimal digits that begin at src[i]. It returns the offset after the
// digits, and the number w followed by the digits, modulo 2^64: 12 and "345" give 12345.
func readDigits(src []byte, i int, w uint64) (int, uint64) {
	for i+8 <= len(src) {
		values, others := word.Others(word.Load64(src, i))
		if others == 0 {
			w = w*1e8 + word.Number(values)
			i += 8
			continue
		}
		// Less than eight digits: shift leading zeros into the word.
		n := bits.TrailingZeros64(others) >> 3
		return i + n, w*decimal.Pow10[n] + word.Number(values<<(64-8*uint(n)))
	}
	for i < len(src) && src[i]-'0' <= 9 {
		w = w*10 + uint64(src[i]-'0')
		i++
	}
	return i, w
}

// shortInteger returns the offset after the number at src[start], if it is a canonical integer
// of at most 15 digits, other than 0. It returns 0 for other numbers, and if fewer than 16
// bytes of text are left from the first digit on.
func shortInteger(src []byte, start int) int {
	i := start
	if src[i] == '-' {
		i++
	}
	if i+16 > len(src) || src[i]-'1' > 8 {
		return 0
	}
	end := i + 8
	_, others := word.Others(word.Load64(src, i))
	if others != 0 {
		end = i
	} else if _, others = word.Others(word.Load64(src, i+8)); others == 0 {
		return 0
	}
	end += bits.TrailingZeros64(others) >> 3
	if c := src[end]; c == '.' || c|0x20 == 'e' {
		return 0
	}
	return end
}

// scanNumber reads the number at s.src[start] and makes it canonical. It returns the offset
// after the number, or -1 after a fault.
func (s *scanner) scanNumber(start int) int {
	src := s.src
	if end := shortInteger(src, start); end > 0 {
		return end
	}
	var l literal
	if at, want := l.read(src, start); at >= 0 {
		s.fail(at, ErrSyntax, want)
		return -1
	}
	if l.exponent || l.whole+l.places > 15 {
		return s.scanLongNumber(start, &l)
	}
	// These digits are canonical: no other decimal with at most 15 digits rounds to the
	// same double. Only zeros at the end of the fraction must go.
	if l.digits == 0 {
		if l.end-start > 1 {
			s.replace(start, l.end, []byte("0"))
		}
		return l.end
	}
	if l.places == 0 {
		return l.end
	}
	if src[l.first] == '0' && l.digits < decimal.Pow10[max(l.places-6, 0)] {
		return s.scanLongNumber(start, &l) // below 1e-6: written with an exponent
	}
	end := l.end
	for src[end-1] == '0' {
		end--
	}
	if src[end-1] == '.' {
		end--
	}
	if end < l.end {
		s.copyPending(end, l.end)
	}
	return l.end
}

// scanLongNumber continues scanNumber for numbers whose canonical text requires
// conversion to a float64, such as numbers with an exponent or more than 15 digits.
func (s *scanner) scanLongNumber(start int, l *literal) int {
	src := s.src
	integer := l.places == 0 && !l.exponent
	if integer && l.whole == 16 && l.digits <= 1<<53 {
		return l.end
	}
	var b uint64
	exact := false
	if l.whole+l.places <= decimal.MaxDigits {
		b, exact = decimal.Nearest(l.digits, l.power-l.places)
	}
	if !exact {
		size := l.whole
		if l.places > 0 {
			size += 1 + l.places
		}
		b = decimal.Parse(src[l.first:l.first+size], l.power)
	}
	if b >= decimal.Infinity {
		s.fail(start, ErrNumberRange, "")
		return -1
	}
	if b == 0 {
		s.replace(start, l.end, []byte("0"))
		return l.end
	}
	d, k := decimal.Shortest(b)
	if !integer && !l.exponent {
		if d == l.digits && k == -l.places && decimal.Len(d)+k > -6 {
			return l.end
		}
		s.copyPending(start, l.end)
		s.out = decimal.Append(s.out, src[start] == '-', d, k)
		s.shift = len(s.out) - l.end
		return l.end
	}
	// The literal is an integer or has an exponent, so its canonical text may differ.
	s.number = decimal.Append(s.number[:0], src[start] == '-', d, k)
	if s.strict && integer && !sameInteger(src[start:l.end], s.number) {
		s.fail(start, ErrInexactInteger, "")
		return -1
	}
	if !bytes.Equal(s.number, src[start:l.end]) {
		s.replace(start, l.end, s.number)
	}
	return l.end
}

// sameInteger reports whether the integer literal and the canonical text denote one
// integer.
func sameInteger(literal, text []byte) bool {
	literal = bytes.TrimPrefix(literal, []byte("-"))
	text = bytes.TrimPrefix(text, []byte("-"))
	size := len(text)
	var digits []byte
	if at := bytes.IndexByte(text, 'e'); at >= 0 {
		exponent, err := strconv.Atoi(string(text[at+1:]))
		if err != nil {
			return false
		}
		size = exponent + 1
		text = text[:at]
	}
	for _, c := range text {
		if c != '.' {
			digits = append(digits, c)
		}
	}
	return len(literal) == size && bytes.Equal(bytes.TrimRight(literal, "0"), bytes.TrimRight(digits, "0"))
}

// isNumber reports whether the non-empty b is exactly one number of the JSON grammar.
func isNumber(b []byte) bool {
	var l literal
	at, _ := l.read(b, 0)
	return at < 0 && l.end == len(b)
}
