package canonicaljson

import (
	"bytes"
	"math"
	"strconv"
)

// AppendNumber appends the canonical form of f to dst: the shortest digits that
// denote f and no other double, laid out as ECMAScript does (RFC 8785 section
// 3.2.2.3). Zeros of both signs are "0".
//
// The only error is [ErrNumberRange], for a NaN or an infinity; dst is then
// returned as it was.
func AppendNumber(dst []byte, f float64) ([]byte, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return dst, &Error{Offset: -1, Detail: "number " + strconv.FormatFloat(f, 'g', -1, 64), Err: ErrNumberRange}
	}
	return appendFloat(dst, f, 64), nil
}

// appendFloat writes a finite f; bits is 32 to write the shortest digits that
// denote f among the values of float32.
func appendFloat(dst []byte, f float64, bits int) []byte {
	if f == 0 {
		return append(dst, '0')
	}
	abs := math.Abs(f)
	small, large := abs < 1e-6, abs >= 1e21
	if bits == 32 {
		small, large = float32(abs) < 1e-6, float32(abs) >= 1e21
	}
	if !small && !large {
		return strconv.AppendFloat(dst, f, 'f', -1, bits)
	}
	dst = strconv.AppendFloat(dst, f, 'e', -1, bits)
	// ECMAScript does not pad the exponent to two digits.
	if n := len(dst); dst[n-2] == '0' && (dst[n-3] == '-' || dst[n-3] == '+') {
		dst[n-2] = dst[n-1]
		dst = dst[:n-1]
	}
	return dst
}

// literal is the shape of a number in a text.
type literal struct {
	whole, places int // digits before and after the point
	exponent      bool
}

// readNumber reads the number at start by the grammar of RFC 8259 section 6. It
// returns the offset of the first byte after it.
func readNumber(src []byte, start int) (int, literal, fault) {
	var l literal
	i := start
	if src[i] == '-' {
		i++
	}
	digits := i
	i = skipDigits(src, i)
	l.whole = i - digits
	if l.whole == 0 {
		return 0, l, fault{i, ErrSyntax, "a digit"}
	}
	if src[digits] == '0' && l.whole > 1 {
		return 0, l, fault{digits + 1, ErrSyntax, "no digit after a leading zero"}
	}
	if i < len(src) && src[i] == '.' {
		from := i + 1
		i = skipDigits(src, from)
		if l.places = i - from; l.places == 0 {
			return 0, l, fault{i, ErrSyntax, "a digit after '.'"}
		}
	}
	if i < len(src) && (src[i] == 'e' || src[i] == 'E') {
		l.exponent = true
		i++
		if i < len(src) && (src[i] == '+' || src[i] == '-') {
			i++
		}
		from := i
		if i = skipDigits(src, i); i == from {
			return 0, l, fault{i, ErrSyntax, "a digit in the exponent"}
		}
	}
	return i, l, fault{}
}

// scanNumber reads the number at start and takes care that the text has its
// canonical form. It returns the offset of the first byte after it.
func (s *scanner) scanNumber(start int) int {
	src := s.src
	end, l, fl := readNumber(src, start)
	if fl.err != nil {
		s.fault = fl
		return -1
	}
	if isShortest(src[start:end], l) {
		return end
	}
	f, err := strconv.ParseFloat(string(src[start:end]), 64)
	if err != nil {
		s.fail(start, ErrNumberRange, "")
		return -1
	}
	s.number = appendFloat(s.number[:0], f, 64)
	if s.strict && l.places == 0 && !l.exponent && !sameInteger(src[start:end], s.number) {
		s.fail(start, ErrInexactInteger, "")
		return -1
	}
	if !bytes.Equal(s.number, src[start:end]) {
		s.replace(start, end, s.number)
	}
	return end
}

// isShortest reports whether the number is known to be canonical by its look. No
// two decimals of at most 15 digits denote one double, so that without exponent
// and superfluous zeros there is no shorter text.
func isShortest(number []byte, l literal) bool {
	if l.exponent || l.whole+l.places > 15 {
		return false
	}
	negative := number[0] == '-'
	if negative {
		number = number[1:]
	}
	switch {
	case l.places == 0:
		return number[0] != '0' || !negative
	case number[len(number)-1] == '0':
		return false
	case number[0] == '0':
		// Below this an exponent is written.
		return string(number[:min(8, len(number))]) > "0.000000"
	}
	return true
}

func skipDigits(src []byte, i int) int {
	for i < len(src) && src[i] >= '0' && src[i] <= '9' {
		i++
	}
	return i
}

// sameInteger reports whether the integer literal and the canonical text denote
// one integer.
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

// isNumber reports whether b is a number of the JSON grammar and nothing else.
func isNumber(b []byte) bool {
	if len(b) == 0 {
		return false
	}
	end, _, f := readNumber(b, 0)
	return f.err == nil && end == len(b)
}
