package lint

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/kansas-frontier-matrix/sqsfifo/canonicaljson"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/textview"
)

// body is the parsed form of a message body, shared by all rules. readBody checks the text
// once and reads the top-level members once.
type body struct {
	text string

	// wellFormed reports that the text follows the JSON grammar. A name may still occur
	// twice.
	wellFormed bool

	// members are the members of the top-level object, or nil.
	members []member
	object  bool

	// canonical is true if the text equals its canonical form.
	canonical bool
}

// member is a member of the top-level object. Offsets count from the start of
// the body.
type member struct {
	name       string
	nameAt     int
	start, end int // offsets of the value in the body
}

// readBody parses the body and returns findings about its form.
func readBody(text string) (body, []Finding) {
	b := body{text: text, wellFormed: true}
	fs := b.checkForm()
	if b.wellFormed {
		b.members, b.object = members(text)
	}
	return b, fs
}

func (b *body) checkForm() []Finding {
	src := textview.Bytes(b.text)
	// A canonical text satisfies all rules about a body's form. Most bodies are
	// canonical, and this check is cheaper than CanonicalizeStrict.
	if b.canonical = canonicaljson.IsCanonical(src); b.canonical {
		return nil
	}
	canonical, err := canonicaljson.CanonicalizeStrict(src)
	if err == nil {
		return []Finding{firstDifference(b.text, canonical)}
	}
	b.wellFormed = json.Valid(src)

	if b.text == "" {
		return []Finding{inBody(invalidJSON, "", 0, "the body is empty, which SQS refuses too (F-071)")}
	}
	rule, consequence := invalidJSON, ""
	switch {
	case errors.Is(err, canonicaljson.ErrDuplicateName):
		rule = duplicateName
	case errors.Is(err, canonicaljson.ErrInexactInteger):
		rule, consequence = inexactInteger, "; rounded as it is, another event could get the same bytes"
	}
	f := inBody(rule, "", -1, err.Error()+consequence)
	if located, ok := errors.AsType[*canonicaljson.Error](err); ok {
		f.Pointer, f.Offset = located.Pointer, int(located.Offset)
		f.Message = located.Err.Error() + consequence
		if located.Detail != "" {
			f.Message = located.Detail + ": " + f.Message
		}
	}
	return []Finding{f}
}

// firstDifference returns the finding for the first byte at which a body differs from its
// canonical form.
func firstDifference(text string, canonical []byte) Finding {
	at := 0
	for at < len(text) && at < len(canonical) && text[at] == canonical[at] {
		at++
	}
	const context = 16
	want := "ends"
	if at < len(canonical) {
		want = "has " + quote(shorten(string(canonical[at:]), context))
	}
	return inBody(notCanonical, "", at, fmt.Sprintf(
		"from byte %d on the body has %s where its canonical form %s: the same event from another writer would have another hash",
		at, quote(shorten(text[at:], context)), want))
}

// checkCharacters reports characters refused by SQS. It ignores invalid UTF-8, because rule
// SF030 (invalid JSON) reports it.
func checkCharacters(b body) []Finding {
	// Canonical JSON escapes control characters. U+FFFE and U+FFFF begin with the byte
	// 0xEF in UTF-8.
	if b.canonical && strings.IndexByte(b.text, 0xEF) < 0 {
		return nil
	}
	if at, c := firstRefused(b.text); at >= 0 {
		return []Finding{inBody(refusedCharacter, "", at, fmt.Sprintf("SQS refuses a body with the character %U", c))}
	}
	return nil
}

// firstRefused finds the first character that SQS refuses, such as a control character. The
// offset is -1 if there is none. SQS also refuses surrogates, but a Go string cannot
// contain them.
func firstRefused(text string) (int, rune) {
	for at, c := range text {
		switch {
		case c < 0x20 && c != '\t' && c != '\n' && c != '\r', c == 0xFFFE, c == 0xFFFF:
			return at, c
		}
	}
	return -1, 0
}

// The following functions do not check the grammar: their callers pass only valid JSON.
// No function is recursive, so values may be nested to any depth.

// members returns the members of the object in a text. It returns false if the text is not
// an object.
func members(text string) ([]member, bool) {
	i := skipBlank(text, 0)
	if i >= len(text) || text[i] != '{' {
		return nil, false
	}
	ms := make([]member, 0, len(envelope))
	for i = skipBlank(text, i+1); i < len(text) && text[i] == '"'; i = skipBlank(text, i+1) {
		m := member{nameAt: i}
		i = stringEnd(text, i)
		m.name = unquote(text[m.nameAt:i])
		m.start = skipBlank(text, skipBlank(text, i)+1) // after the name and the colon
		m.end = valueEnd(text, m.start)
		ms = append(ms, m)
		i = skipBlank(text, m.end) // at the comma after the member, or at the closing brace
	}
	return ms, true
}

// visitLeaves calls the function `yield` with each leaf of a JSON text: each string, number
// and boolean value, at any depth. Names and null are not leaves.
func visitLeaves(text string, yield func(leaf string)) {
	for i := 0; i < len(text); {
		switch text[i] {
		case '"':
			end := stringEnd(text, i)
			if next := skipBlank(text, end); next >= len(text) || text[next] != ':' {
				yield(unquote(text[i:end]))
			}
			i = end
		case ' ', '\t', '\n', '\r', '{', '}', '[', ']', ',', ':':
			i++
		default:
			end := literalEnd(text, i)
			if text[i:end] != "null" {
				yield(text[i:end])
			}
			i = end
		}
	}
}

func skipBlank(text string, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\t' || text[i] == '\n' || text[i] == '\r') {
		i++
	}
	return i
}

// stringEnd returns the offset after the closing quote of the string that
// begins at i.
func stringEnd(text string, i int) int {
	n := strings.IndexByte(text[i+1:], '"')
	if n >= 0 && strings.IndexByte(text[i+1:i+1+n], '\\') < 0 {
		return i + n + 2
	}
	for i++; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

// literalEnd returns the offset after the number or word at i, always greater than i.
func literalEnd(text string, i int) int {
	for i++; i < len(text); i++ {
		switch text[i] {
		case ' ', '\t', '\n', '\r', ',', ':', ']', '}', '"':
			return i
		}
	}
	return i
}

// valueEnd returns the offset after the value that begins at i.
func valueEnd(text string, i int) int {
	for depth := 0; i < len(text); {
		switch text[i] {
		case '"':
			i = stringEnd(text, i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		case ' ', '\t', '\n', '\r', ',', ':':
			i++
		default:
			i = literalEnd(text, i)
		}
		if depth <= 0 {
			return i
		}
	}
	return len(text)
}

// unquote returns the value of a JSON string.
func unquote(token string) string {
	if len(token) >= 2 && !strings.Contains(token, `\`) {
		return token[1 : len(token)-1]
	}
	var s string
	if json.Unmarshal([]byte(token), &s) != nil {
		return ""
	}
	return s
}
