package input

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func decoded(t testing.TB, text string) any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	require.NoError(t, d.Decode(&v))
	return v
}

func TestTemplate(t *testing.T) {
	event := decoded(t, `{"id":"a","n":1.5,"on":true,"none":null,"list":[{"x":"y"},2],"a/b":"slash","m~n":"tilde","":"empty name","obj":{}}`)
	for template, want := range map[string]string{
		"text": "text", "/id": "a", "{/id}": "a", "x|{/id}|{/n}": "x|a|1.5", "{/on}": "true", "/list/0/x": "y", "/list/1": "2",
		"/a~1b": "slash", "/m~0n": "tilde", "/": "empty name", "{{{/id}}}": "{a}", "a{{b}}c": "a{b}c", "{/id}{/n}": "a1.5",
	} {
		parsed, err := ParseTemplate(template)
		require.NoError(t, err, template)
		got, err := parsed.text(event)
		require.NoError(t, err, template)
		assert.Equal(t, want, got, template)
	}
	for template, says := range map[string]string{
		"/nothing":   `/nothing is missing: there is no "nothing" in the whole event`,
		"/list/2":    `/list/2 is missing: there is no "2" in /list`,
		"/list/00":   `there is no "00" in /list`,
		"/list/-1":   `there is no "-1" in /list`,
		"/id/x":      `there is no "x" in /id`,
		"/none":      "/none is null",
		"x{/list}":   "/list is an array",
		"{/obj}":     "/obj is an object",
		"{}":         "the whole event is an object",
		"/list/0/xx": `/list/0/xx is missing: there is no "xx" in /list/0`,
	} {
		parsed, err := ParseTemplate(template)
		require.NoError(t, err, template)
		_, err = parsed.text(event)
		assert.ErrorContains(t, err, says, template)
	}
	for template, says := range map[string]string{
		"": "empty", "{/id": `byte 0: "{" without "}"`, "a}": `byte 1: "}" without "{"`, "x{id}": `byte 2: "id" is not a JSON pointer; write {/id}`,
	} {
		_, err := ParseTemplate(template)
		assert.ErrorContains(t, err, says, template)
	}
}

func TestKeyParts(t *testing.T) {
	for template, want := range map[string][]string{
		"/id": {"a|b"}, "x|{/id}": {"x", "a|b"}, "x-{/id}|y|{/n}": {"x-a|b", "y", "1"},
	} {
		parsed, err := ParseTemplate(template)
		require.NoError(t, err)
		parts, err := parsed.parts()
		require.NoError(t, err)
		var got []string
		for _, p := range parts {
			text, err := p.text(decoded(t, `{"id":"a|b","n":1}`))
			require.NoError(t, err)
			got = append(got, text)
		}
		assert.Equal(t, want, got, template)
	}
	for template, says := range map[string]string{
		"{/a}{/b}": "{/a} and {/b} stand in one part", "x|{/a}-{/b}": "put a \"|\" between them", "x||{/a}": "part 2 is empty", "x|": "part 2 is empty",
	} {
		parsed, err := ParseTemplate(template)
		require.NoError(t, err)
		_, err = parsed.parts()
		assert.ErrorContains(t, err, says, template)
	}
}

// Parsing does not panic for any text. An accepted template gives a result or an error.
func FuzzTemplate(f *testing.F) {
	for _, s := range []string{"/id", "{/id}|{/n}", "{{", "}}", "{", "/~", "{/~2}", "a|b"} {
		f.Add(s)
	}
	event := decoded(f, `{"id":"a","n":1,"l":[1]}`)
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := ParseTemplate(text)
		if err != nil {
			return
		}
		_, _ = parsed.text(event)
		parts, err := parsed.parts()
		if err == nil && len(parts) == 0 {
			t.Fatal("no part and no error")
		}
	})
}
