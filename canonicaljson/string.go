package canonicaljson

import (
	"math/bits"
	"slices"
	"unicode/utf8"

	"github.com/kansas-frontier-matrix/sqsfifo/canonicaljson/internal/word"
)

// AppendString appends the canonical form of the string s to dst, in quotes. It escapes
// only the quote, the backslash and the control characters below U+0020 (RFC 8785 section
// 3.2.2.2). It does not normalise Unicode.
//
// The only error is [ErrInvalidUTF8]; dst is then returned unchanged.
func AppendString(dst []byte, s string) ([]byte, error) {
	out, at := appendString(dst, s)
	if at >= 0 {
		return dst, &Error{Offset: -1, Detail: invalidAt(s, at), Err: ErrInvalidUTF8}
	}
	return out, nil
}

// appendString appends s to dst as a canonical JSON string. It also returns the offset of
// the first invalid UTF-8 byte of s, or -1.
func appendString(dst []byte, s string) ([]byte, int) {
	n := len(dst)
	dst = slices.Grow(dst, len(s)+2)[:n+len(s)+2]
	dst[n] = '"'
	// Copy eight bytes at once. The last eight may overlap the previous ones.
	if body := dst[n+1 : len(dst)-1]; len(s) >= 8 {
		last := len(s) - 8
		for i := 0; ; i = min(i+8, last) {
			w := word.LoadString64(s, i)
			if markSpecials(w) != 0 {
				return appendSpecial(dst[:n+1+i], s, i)
			}
			word.Store64(body, i, w)
			if i == last {
				break
			}
		}
	} else {
		for i := range len(s) {
			c := s[i]
			if c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
				return appendSpecial(dst[:n+1+i], s, i)
			}
			body[i] = c
		}
	}
	dst[len(dst)-1] = '"'
	return dst, -1
}

// appendSpecial completes the work of appendString from s[i] on. It handles the bytes
// that need an escape or a check, and returns the results of appendString.
func appendSpecial(dst []byte, s string, i int) ([]byte, int) {
	for i < len(s) {
		if i+8 <= len(s) {
			n, w := len(dst), word.LoadString64(s, i)
			dst = slices.Grow(dst, 24)
			if markSpecials(w) == 0 {
				word.Store64(dst[:n+8], n, w)
				dst = dst[:n+8]
				i += 8
				continue
			}
			copied, end := copyQuoted(dst[:n+24], n, w)
			dst = dst[:end]
			if i += copied; copied == 8 {
				continue
			}
		}
		switch c := s[i]; {
		case c >= utf8.RuneSelf:
			run := i
			for i < len(s) && s[i] >= utf8.RuneSelf {
				size := sequenceLen(s[i:])
				if size == 0 {
					return dst, i
				}
				i += size
			}
			if i == run+2 { // one letter of a European language
				dst = append(dst, c, s[run+1])
			} else {
				dst = append(dst, s[run:i]...)
			}
		case c < ' ' || c == '"' || c == '\\':
			dst = appendEscaped(dst, c)
			i++
		default:
			dst = append(dst, c)
			i++
		}
	}
	return append(dst, '"'), -1
}

// copyQuoted copies the eight bytes of w to dst[n:], which has room for 24 bytes, and puts a
// backslash before each quote and each backslash. It stops at a byte that needs another
// escape or a check. It returns the number of copied bytes, and the index after the text.
func copyQuoted(dst []byte, n int, w uint64) (copied, end int) {
	for {
		// Store all bytes of w that are left. Later bytes overwrite those after a special one.
		word.Store64(dst, n, w)
		plain := bits.TrailingZeros64(markSpecials(w)) >> 3 // 8 if no byte is marked
		if plain == 8 {
			return 8, n + 8 - copied
		}
		c := byte(w >> (8 * plain))
		if n, copied = n+plain, copied+plain; c != '"' && c != '\\' {
			return copied, n
		}
		dst[n], dst[n+1] = '\\', c
		n, copied = n+2, copied+1
		w = w>>(8*plain+8) | ' '*word.Low<<(56-8*plain) // a space is not special
	}
}

// invalidUTF8 returns the offset of the first invalid UTF-8 byte of s, or -1.
func invalidUTF8(s string) int {
	for i, r := range s {
		if r == utf8.RuneError && sequenceLen(s[i:]) == 0 {
			return i
		}
	}
	return -1
}

// appendHTMLSafe appends the JSON text of the valid UTF-8 string s in the form of
// json.Marshal: canonical, with escapes for <, >, &, U+2028 and U+2029.
func appendHTMLSafe(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for _, r := range s {
		switch {
		case r == '<' || r == '>' || r == '&' || r == '\u2028' || r == '\u2029':
			dst = append(dst, '\\', 'u', hex[r>>12], hex[r>>8&15], hex[r>>4&15], hex[r&15])
		case r < ' ' || r == '"' || r == '\\':
			dst = appendEscaped(dst, byte(r))
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return append(dst, '"')
}

// appendEscaped appends the escape of a quote, backslash or control character.
func appendEscaped(dst []byte, c byte) []byte {
	const hex = "0123456789abcdef"
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, '\\', 'b')
	case '\t':
		return append(dst, '\\', 't')
	case '\n':
		return append(dst, '\\', 'n')
	case '\f':
		return append(dst, '\\', 'f')
	case '\r':
		return append(dst, '\\', 'r')
	}
	return append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
}

// sequenceLen returns the length of the UTF-8 sequence of two to four bytes at the
// start of s, or 0 if s does not start with such a sequence (RFC 3629 section 4).
func sequenceLen[T []byte | string](s T) int {
	if len(s) < 2 || s[1]&0xC0 != 0x80 {
		return 0
	}
	switch c := s[0]; {
	case c < 0xC2:
		return 0
	case c < 0xE0:
		return 2
	case c < 0xF0:
		if len(s) < 3 || s[2]&0xC0 != 0x80 ||
			c == 0xE0 && s[1] < 0xA0 || // overlong
			c == 0xED && s[1] > 0x9F { // surrogates
			return 0
		}
		return 3
	case c < 0xF5:
		if len(s) < 4 || s[2]&0xC0 != 0x80 || s[3]&0xC0 != 0x80 ||
			c == 0xF0 && s[1] < 0x90 || // overlong
			c == 0xF4 && s[1] > 0x8F { // beyond U+10FFFF
			return 0
		}
		return 4
	}
	return 0
}

// scanString reads the rest of a string from i on, inside the quotes, and counts escapes.
// It returns the offset of the closing quote, or -1 after a fault.
func (s *scanner) scanString(i int) int {
	src := s.src
	for {
		if i = skipPlain(src, i); i >= len(src) {
			s.fail(i, ErrSyntax, "'\"' at the end of a string")
			return -1
		}
		switch c := src[i]; {
		case c == '"':
			return i
		case c == '\\':
			s.escapes++
			if i = s.scanEscape(i); i < 0 {
				return -1
			}
		case c < ' ':
			s.fail(i, ErrSyntax, "control characters escaped")
			return -1
		default:
			if i = skipSequences(src, i); i < len(src) && src[i] >= utf8.RuneSelf {
				s.fail(i, ErrInvalidUTF8, "")
				return -1
			}
		}
	}
}

// skipSequences skips the UTF-8 sequences of two or more bytes at src[i:]. It returns the
// offset of the first byte after them: an ASCII character, an invalid byte or the end.
func skipSequences(src []byte, i int) int {
	for i+4 <= len(src) {
		w := word.Load32(src, i)
		if w&0xC0C0F0 == 0x8080E0 {
			// E0 and a byte below A0 are overlong. ED and a byte above 9F are half a
			// surrogate pair.
			if v := w & 0x200F; v == 0 || v == 0x200D {
				return i
			}
			i += 3
			continue
		}
		if w&0x80 == 0 {
			return i
		}
		size := sequenceLen(src[i:])
		if size == 0 {
			return i
		}
		i += size
	}
	for i < len(src) && src[i] >= utf8.RuneSelf {
		size := sequenceLen(src[i:])
		if size == 0 {
			return i
		}
		i += size
	}
	return i
}

// scanEscape makes the escape at i canonical. A surrogate pair is one escape. scanEscape
// returns the offset after the escape, or -1 after a fault.
func (s *scanner) scanEscape(i int) int {
	if i+1 < len(s.src) {
		switch s.src[i+1] {
		case '"', '\\', 'b', 'f', 'n', 'r', 't':
			return i + 2
		case '/':
			s.copyPending(i, i+1)
			return i + 2
		}
	}
	r, size := decodeEscape(s.src[i:])
	switch {
	case size == 0:
		s.fail(i, ErrSyntax, `an escape: \" \\ \/ \b \f \n \r \t or \u and four hexadecimal digits`)
		return -1
	case size < 0:
		s.fail(i, ErrSurrogate, "")
		return -1
	}
	var buf [utf8.UTFMax + 2]byte
	want := buf[:0]
	if r < ' ' || r == '"' || r == '\\' {
		want = appendEscaped(want, byte(r))
	} else {
		want = utf8.AppendRune(want, r)
	}
	if string(want) != string(s.src[i:i+size]) {
		s.replace(i, i+size, want)
	}
	return i + size
}

// replace writes the argument `text` to the normalised text, in place of s.src[at:next].
func (s *scanner) replace(at, next int, text []byte) {
	s.copyPending(at, next)
	s.out = append(s.out, text...)
	s.shift = len(s.out) - next
}

// decodeEscape returns the character and length of the escape at the start of b. The
// length is 0 for an invalid escape and -1 for half a surrogate pair.
func decodeEscape(b []byte) (rune, int) {
	if len(b) < 2 {
		return 0, 0
	}
	switch b[1] {
	case '"', '\\', '/':
		return rune(b[1]), 2
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
		r := hex4(b)
		switch {
		case r < 0:
			return 0, 0
		case r < 0xD800 || r > 0xDFFF:
			return r, 6
		case r > 0xDBFF || len(b) < 8 || b[6] != '\\' || b[7] != 'u':
			return utf8.RuneError, -1
		}
		low := hex4(b[6:])
		if low < 0xDC00 || low > 0xDFFF {
			return utf8.RuneError, -1
		}
		return (r-0xD800)<<10 + (low - 0xDC00) + 0x10000, 12
	}
	return 0, 0
}

// hex4 returns the value of the four digits of the escape \uXXXX at the start of
// b, or -1.
func hex4(b []byte) rune {
	if len(b) < 6 {
		return -1
	}
	var r rune
	for _, c := range b[2:6] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}

// unescape appends the content of a string to dst, with its escapes decoded. The content
// is given without the quotes. Invalid escapes are copied.
func unescape(dst, inside []byte) []byte {
	for i := 0; i < len(inside); {
		if inside[i] == '\\' {
			if r, size := decodeEscape(inside[i:]); size > 0 {
				dst = utf8.AppendRune(dst, r)
				i += size
				continue
			}
		}
		dst = append(dst, inside[i])
		i++
	}
	return dst
}
