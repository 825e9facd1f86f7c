package sqldb

import (
	"encoding/hex"
	"slices"
	"strings"
	"testing"
)

// parseArray reads the text form of an array by PostgreSQL's manual (8.15.6): quoted
// elements, in which a backslash makes the next character literal.
func parseArray(t *testing.T, s string) (elements []string) {
	t.Helper()
	inner, ok := strings.CutPrefix(s, "{")
	inner, closed := strings.CutSuffix(inner, "}")
	if !ok || !closed {
		t.Fatalf("%q has no braces", s)
	}
	for len(inner) > 0 {
		if inner[0] != '"' {
			t.Fatalf("an element of %q is not quoted", s)
		}
		var element []byte
		i := 1
		for ; i < len(inner) && inner[i] != '"'; i++ {
			if inner[i] == '\\' {
				i++
			}
			if i == len(inner) {
				t.Fatalf("%q ends within an element", s)
			}
			element = append(element, inner[i])
		}
		elements = append(elements, string(element))
		if inner = inner[i+1:]; inner != "" {
			if inner[0] != ',' {
				t.Fatalf("%q has %q after an element", s, inner[0])
			}
			inner = inner[1:]
		}
	}
	return elements
}

func FuzzArray(f *testing.F) {
	f.Add("a", "b")
	f.Add(`"`, `\`)
	f.Add(`{,}`, "NULL")
	f.Add("", "\\x00")
	f.Fuzz(func(t *testing.T, a, b string) {
		var texts, bytes Array
		texts.Text(a)
		texts.Text(b)
		if got := parseArray(t, texts.String()); !slices.Equal(got, []string{a, b}) {
			t.Errorf("%q and %q came back as %q", a, b, got)
		}
		bytes.Bytes([]byte(a))
		bytes.Bytes([]byte(b))
		if got := parseArray(t, bytes.String()); !slices.Equal(got, []string{`\x` + hex.EncodeToString([]byte(a)), `\x` + hex.EncodeToString([]byte(b))}) {
			t.Errorf("the bytes %q and %q became %q", a, b, got)
		}
	})
}

func TestArrayOfNumbers(t *testing.T) {
	var a, empty Array
	a.Int(-1)
	a.Null()
	a.Int(9223372036854775807)
	if got, want := a.String()+empty.String(), "{-1,NULL,9223372036854775807}{}"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Columns returns one array for each column, with NULL for nil.
func TestColumns(t *testing.T) {
	got := Columns([][]any{{int64(1), "a", []byte{1}}, {nil, "b", []byte(nil)}})
	if want := []any{"{1,NULL}", `{"a","b"}`, `{"\\x01",NULL}`}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
