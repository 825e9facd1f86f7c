package messageline

import (
	"strings"
	"unicode/utf8"

	"github.com/kansas-frontier-matrix/sqsfifo/canonicaljson"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/textview"
)

// parseFast reads ordinary lines in half the time of parseSlow. For a line that may be
// invalid or is unusual, it returns false. Parse then calls parseSlow.
func parseFast(text []byte) (l Line, ok bool) {
	s := scan{text: text}
	if !s.take('{') {
		return l, false
	}
	for first := true; !s.take('}'); first = false {
		if !first && !s.take(',') {
			return l, false
		}
		name, ok := s.plain()
		if !ok || !s.take(':') {
			return l, false
		}
		m := memberOf(string(name))
		if m == 0 || l.Has&m != 0 || !s.member(&l, m) {
			return l, false
		}
		l.Has |= m
	}
	s.space()
	return l, s.at == len(s.text) && l.Has&Body != 0
}

// scan is a position in a JSON text.
type scan struct {
	text []byte
	at   int
}

// member reads the value of the JSON member m into l. It returns false for a value that
// only parseSlow can read.
func (s *scan) member(l *Line, m Members) bool {
	switch m {
	case Body:
		return s.body(l)
	case Attributes:
		l.Attributes = map[string]string{}
		return s.object(func(name, value string) bool {
			_, twice := l.Attributes[name]
			l.Attributes[name] = value
			return !twice
		})
	case Sent:
		seen := 0
		return s.object(func(name, value string) bool {
			at, err := timeOf(textview.Bytes(value))
			switch {
			case err != nil:
				return false
			case name == "from" && seen&1 == 0:
				seen, l.SentFrom = seen|1, at
			case name == "to" && seen&2 == 0:
				seen, l.SentTo = seen|2, at
			default:
				return false
			}
			return true
		})
	case Dataset:
		return false
	}
	value, ok := s.plain()
	if m == At && ok {
		var err error
		l.At, err = timeOf(value)
		return err == nil
	}
	return ok && l.setText(m, string(value)) == nil
}

// body reads a message body. For a string with escapes it uses encoding/json, which
// replaces invalid characters by U+FFFD. If the result has a U+FFFD, the string may be
// invalid. Then body returns false, and parseSlow reads the line.
func (s *scan) body(l *Line) bool {
	s.space()
	begin := s.at
	if value, ok := s.plain(); ok {
		l.Body = string(value)
		return true
	}
	s.at = begin
	raw := s.value()
	switch {
	case raw == nil:
		return false
	case raw[0] == '{':
		var err error
		l.Body, err = canonical(raw)
		return err == nil
	}
	text, err := textOf(raw)
	l.Body = text
	return err == nil && !strings.ContainsRune(text, utf8.RuneError)
}

// object reads a JSON object of strings without escapes, such as {"a":"b"}, and calls the
// function `visit` for every member. It returns false for any other text, or if `visit`
// returns false.
func (s *scan) object(visit func(name, value string) bool) bool {
	if !s.take('{') {
		return false
	}
	for first := true; !s.take('}'); first = false {
		if !first && !s.take(',') {
			return false
		}
		name, ok := s.plain()
		if !ok || !s.take(':') {
			return false
		}
		value, ok := s.plain()
		if !ok || !visit(string(name), string(value)) {
			return false
		}
	}
	return true
}

func (s *scan) space() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\t', '\r', '\n':
			s.at++
		default:
			return
		}
	}
}

func (s *scan) take(c byte) bool {
	s.space()
	if s.at < len(s.text) && s.text[s.at] == c {
		s.at++
		return true
	}
	return false
}

// plain reads a string without escapes and returns its characters. It returns false for any
// other text.
func (s *scan) plain() ([]byte, bool) {
	if !s.take('"') {
		return nil, false
	}
	for from := s.at; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; {
		case c == '"':
			s.at++
			value := s.text[from : s.at-1]
			return value, utf8.Valid(value)
		case c == '\\' || c < 0x20:
			return nil, false
		}
	}
	return nil, false
}

// value returns the JSON text of a string or object, or nil for other values. It does not
// validate the text between the quotes or braces.
func (s *scan) value() []byte {
	s.space()
	from, depth := s.at, 0
	for s.at < len(s.text) {
		c := s.text[s.at]
		s.at++
		switch c {
		case '"':
			for s.at < len(s.text) && s.text[s.at] != '"' {
				if s.text[s.at] == '\\' {
					s.at++
				}
				s.at++
			}
			s.at++
			if s.at > len(s.text) {
				return nil
			}
		case '{', '[':
			// The line itself is an object, so it counts as one level.
			if depth++; depth >= canonicaljson.MaxDepth {
				return nil
			}
		case '}', ']':
			depth--
		}
		if depth == 0 {
			if c != '"' && c != '}' {
				return nil
			}
			return s.text[from:s.at]
		}
	}
	return nil
}
