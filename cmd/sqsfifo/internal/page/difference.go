package page

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// How much of a text is shown.
const (
	textBefore     = 72  // of what two texts have in common, before the first difference
	textAfter      = 160 // of each from there
	attributesMost = 8
	attributeMost  = 80
)

// Difference is where two texts begin to differ, each shortened. Equal texts have Byte -1
// and their beginning in Common.
type Difference struct {
	Byte   int    `json:"byte"` // offset of the first byte that differs
	Common string `json:"common"`
	Own    string `json:"own,omitempty"`
	Other  string `json:"other,omitempty"`
}

// Differ compares a text with the one that it is shown beside.
func Differ(own, other string) Difference {
	if own == other {
		return Difference{Byte: -1, Common: shorten(own, textBefore+textAfter)}
	}
	at := 0
	for at < len(own) && at < len(other) && own[at] == other[at] {
		at++
	}
	d := Difference{Byte: at}
	// Shown from the beginning of the character in which they differ.
	start := at
	for start > 0 && start < len(own) && !utf8.RuneStart(own[start]) {
		start--
	}
	from := max(start-textBefore, 0)
	for from > 0 && !utf8.RuneStart(own[from]) {
		from--
	}
	d.Common = own[from:start]
	if from > 0 {
		d.Common = "…" + d.Common
	}
	d.Own, d.Other = shorten(own[start:], textAfter), shorten(other[start:], textAfter)
	return d
}

// shorten cuts a text between characters, after about so many bytes.
func shorten(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + "…"
}

// Attributes lists in words in which attributes a message differs from another, by name.
func Attributes(own, other map[string]string) []string {
	names := map[string]bool{}
	for name := range own {
		names[name] = true
	}
	for name := range other {
		names[name] = true
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		a, has := own[name]
		b, had := other[name]
		if has == had && a == b {
			continue
		}
		if len(out) == attributesMost {
			return append(out, "…")
		}
		out = append(out, fmt.Sprintf("%s: %s, not %s", shorten(name, attributeMost), shown(a, has), shown(b, had)))
	}
	return out
}

func shown(value string, is bool) string {
	if !is {
		return "absent"
	}
	return `"` + strings.ReplaceAll(shorten(value, attributeMost), `"`, `\"`) + `"`
}
