package page

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// The page shortens texts and lists to these limits.
const (
	maxBytesBefore    = 72  // before the first difference of two texts
	maxBytesAfter     = 160 // from the first difference on
	maxAttributes     = 8
	maxAttributeBytes = 80 // of a name or value
)

// Difference is the first difference of two texts, with shortened parts of the texts.
//
// Common is the text before the difference. Own and Other are the texts from the difference
// on. For equal texts, Byte is -1 and Common is the beginning of the text.
type Difference struct {
	Byte   int    `json:"byte"` // offset of the first differing byte
	Common string `json:"common"`
	Own    string `json:"own,omitempty"`
	Other  string `json:"other,omitempty"`
}

// Differ compares a text with another text.
func Differ(own, other string) Difference {
	if own == other {
		return Difference{Byte: -1, Common: shorten(own, maxBytesBefore+maxBytesAfter)}
	}
	at := 0
	for at < len(own) && at < len(other) && own[at] == other[at] {
		at++
	}
	d := Difference{Byte: at}
	// If a byte within a character differs, the difference starts at the beginning of the
	// character.
	start := at
	for start > 0 && start < len(own) && !utf8.RuneStart(own[start]) {
		start--
	}
	from := max(start-maxBytesBefore, 0)
	for from > 0 && !utf8.RuneStart(own[from]) {
		from--
	}
	d.Common = own[from:start]
	if from > 0 {
		d.Common = "…" + d.Common
	}
	d.Own, d.Other = shorten(own[start:], maxBytesAfter), shorten(other[start:], maxBytesAfter)
	return d
}

// shorten cuts a text between characters, after at most the given number of bytes, and
// marks the cut by "…".
func shorten(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + "…"
}

// Attributes describes the differing attributes of two messages, sorted by name. If more
// than maxAttributes attributes differ, the last element is "…".
func Attributes(own, other map[string]string) []string {
	both := map[string]string{}
	maps.Copy(both, own)
	maps.Copy(both, other)
	var out []string
	for _, name := range slices.Sorted(maps.Keys(both)) {
		a, has := own[name]
		b, had := other[name]
		if has == had && a == b {
			continue
		}
		if len(out) == maxAttributes {
			return append(out, "…")
		}
		name = shorten(name, maxAttributeBytes)
		switch {
		case !had:
			out = append(out, fmt.Sprintf("%s is %s; the other message has no %s", name, quoted(a), name))
		case !has:
			out = append(out, fmt.Sprintf("%s is missing; the other message has %s", name, quoted(b)))
		default:
			out = append(out, fmt.Sprintf("%s is %s instead of %s", name, quoted(a), quoted(b)))
		}
	}
	return out
}

func quoted(value string) string {
	return `"` + strings.ReplaceAll(shorten(value, maxAttributeBytes), `"`, `\"`) + `"`
}
