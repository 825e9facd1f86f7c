package sqstest

// Deviations from AWS in this file: none. AWS does not parse bodies. Only [Simulate] reads
// the dedupe_key of a body, to report collisions.

import (
	"encoding/json"
	"strings"
)

// dedupeKeyOf returns the string dedupe_key of a JSON object, or "" for every other body.
// It tries scanDedupeKey first, because encoding/json takes ten times as long.
func dedupeKeyOf(body string) string {
	if !strings.Contains(body, `"dedupe_key"`) {
		return ""
	}
	if key, ok := scanDedupeKey(body); ok {
		return key
	}
	var envelope struct {
		DedupeKey string `json:"dedupe_key"`
	}
	if json.Unmarshal([]byte(body), &envelope) != nil {
		return ""
	}
	return envelope.DedupeKey
}

// scanDedupeKey finds the dedupe_key in a JSON object without spaces between its parts,
// such as canonical JSON. For a body in another form, ok is false. The syntax of the values
// is not checked.
func scanDedupeKey(body string) (key string, ok bool) {
	if !strings.HasPrefix(body, "{") || !strings.HasSuffix(body, "}") {
		return "", false
	}
	depth, name := 0, true // name is true if the next string at depth 1 is a member's name
	for at := 0; at < len(body); at++ {
		switch body[at] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return key, at == len(body)-1
			}
		case ',':
			name = true
		case ':':
			name = false
		case ' ', '\t', '\r', '\n':
			return "", false
		case '"':
			text, end, plain := scanString(body, at)
			if end < 0 {
				return "", false
			}
			at = end
			if depth != 1 || !name {
				continue
			}
			if !plain {
				return "", false
			}
			if text != "dedupe_key" {
				continue
			}
			value, _, plain := "", 0, false
			if rest := end + 1; strings.HasPrefix(body[rest:], `:"`) {
				value, _, plain = scanString(body, rest+1)
			}
			if !plain {
				return "", false
			}
			key = value
		}
	}
	return "", false
}

// scanString returns the string with the opening quote at body[at]. The result `end` is the
// offset of the closing quote, or -1 without a closing quote. The result `plain` is true for
// a string without escapes.
func scanString(body string, at int) (text string, end int, plain bool) {
	plain = true
	for end = at + 1; end < len(body); end++ {
		switch body[end] {
		case '"':
			return body[at+1 : end], end, plain
		case '\\':
			plain = false
			end++
		}
	}
	return "", -1, false
}
