package main

import (
	"bytes"
	"encoding/json"
	"time"
	"unicode/utf8"

	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// parseFast reads the lines that logs are made of several times as fast as
// encoding/json. It is sure of what it accepts and leaves everything else, and every
// error text, to parseEvent: FuzzParseLine holds the two to each other.
func parseFast(text []byte) (m sqstest.TimedMessage, ok bool) {
	s := span{text: text}
	if !s.take('{') {
		return m, false
	}
	var seen [5]bool
	for first := true; ; first = false {
		if s.take('}') {
			break
		}
		if !first && !s.take(',') {
			return m, false
		}
		name, ok := s.plain()
		if !ok || !s.take(':') {
			return m, false
		}
		var member int
		switch string(name) {
		case "at":
			member = 0
			value, plain := s.plain()
			if !plain {
				return m, false
			}
			at, err := time.Parse(time.RFC3339, string(value))
			if err != nil || at.IsZero() || bytes.IndexByte(value, ',') >= 0 {
				return m, false
			}
			m.At = at
		case "group":
			member = 1
			value, plain := s.plain()
			if !plain {
				return m, false
			}
			m.GroupID = string(value)
		case "deduplication_id":
			member = 2
			value, plain := s.plain()
			if !plain {
				return m, false
			}
			m.DeduplicationID = string(value)
		case "body":
			member = 3
			raw := s.value()
			if raw == nil || raw[0] != '"' && raw[0] != '{' {
				return m, false
			}
			body, err := bodyOf(raw)
			if err != nil {
				return m, false
			}
			m.Body = body
		case "attributes":
			member = 4
			attributes, ok := stringsOf(s.value())
			if !ok {
				return m, false
			}
			m.Attributes = attributes
		default:
			return m, false
		}
		if seen[member] {
			return m, false
		}
		seen[member] = true
	}
	s.space()
	return m, s.at == len(s.text) && seen[0] && seen[3]
}

// stringsOf reads an object whose members are strings. Apart, so that a line without
// one needs no memory for it.
func stringsOf(raw []byte) (members map[string]string, ok bool) {
	ok = raw != nil && raw[0] == '{' && json.Unmarshal(raw, &members) == nil
	return members, ok
}

// span is a place in a JSON text.
type span struct {
	text []byte
	at   int
}

func (s *span) space() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\t', '\r', '\n':
			s.at++
		default:
			return
		}
	}
}

func (s *span) take(c byte) bool {
	s.space()
	if s.at < len(s.text) && s.text[s.at] == c {
		s.at++
		return true
	}
	return false
}

// plain returns the characters of a string without escapes, or false.
func (s *span) plain() ([]byte, bool) {
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

// value returns the text of a string or an object, nil for anything else. What is
// inside is for others to check.
func (s *span) value() []byte {
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
			depth++
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
