package page_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/cmd/sqsfifo/internal/page"
)

func written(t *testing.T, d page.Document) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, d.Write(&b))
	return b.String()
}

func between(t *testing.T, text, from, to string) string {
	t.Helper()
	_, after, ok := strings.Cut(text, from)
	require.True(t, ok, from)
	inner, _, ok := strings.Cut(after, to)
	require.True(t, ok, to)
	return inner
}

// The policy allows only the page's style and script.
func TestPolicy(t *testing.T) {
	d := page.Document{Title: "<title> & more", Markup: "<p>a</p>", Style: "p { color: red }", Scripts: []string{"const one = 1;\n", "use(one && '</p>');\n"}, Data: []byte(`{"a":1}`)}
	text := written(t, d)
	policy := between(t, text, `Content-Security-Policy" content="`, `"`)
	policy = strings.NewReplacer("&#39;", "'", "&#43;", "+").Replace(policy)
	assert.Equal(t, d.Policy(), policy)
	hash := func(s string) string {
		sum := sha256.Sum256([]byte(s))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	assert.Contains(t, policy, "default-src 'none'")
	assert.Contains(t, policy, "style-src "+hash(between(t, text, "<style>", "</style>")))
	assert.Contains(t, policy, "script-src "+hash(between(t, text, "<script>", "</script>")))
	assert.NotContains(t, policy, "connect-src")
	assert.NotContains(t, policy, "unsafe")
	assert.Contains(t, text, "<title>&lt;title&gt; &amp; more</title>")
	d.Connects = true
	assert.Contains(t, d.Policy(), "connect-src 'self'")
}

// Whatever the data is, it cannot end the script element that contains it.
func TestData(t *testing.T) {
	for _, hostile := range []string{"</script><script>alert(1)</script>", "<!--<script>", "]]>", "\u2028", "\u202e", "{{.}}", "&lt;"} {
		data, err := json.Marshal([]string{hostile})
		require.NoError(t, err)
		text := written(t, page.Document{Data: data})
		var got []string
		require.NoError(t, json.Unmarshal([]byte(between(t, text, `id="data">`, "</script>")), &got))
		assert.Equal(t, []string{hostile}, got)
		assert.Equal(t, 2, strings.Count(text, "<script"), "%q", hostile)
		assert.Equal(t, 2, strings.Count(text, "</script"), "%q", hostile)
	}
}

func TestDiffer(t *testing.T) {
	long := strings.Repeat("a", 1000)
	for _, tc := range []struct {
		own, other string
		want       page.Difference
	}{
		{"abc", "abd", page.Difference{Byte: 2, Common: "ab", Own: "c", Other: "d"}},
		{"abc", "ab", page.Difference{Byte: 2, Common: "ab", Own: "c"}},
		{"", "b", page.Difference{Byte: 0, Other: "b"}},
		{"abc", "abc", page.Difference{Byte: -1, Common: "abc"}},
		// "ä" and "ö" have the same first byte.
		{"xä", "xö", page.Difference{Byte: 2, Common: "x", Own: "ä", Other: "ö"}},
		{"xä", "x\u00c3", page.Difference{Byte: 2, Common: "x", Own: "ä", Other: "Ã"}},
		{long + "1", long + "2", page.Difference{Byte: 1000, Common: "…" + long[:72], Own: "1", Other: "2"}},
		{"1" + long, "2", page.Difference{Byte: 0, Own: "1" + long[:159] + "…", Other: "2"}},
	} {
		assert.Equal(t, tc.want, page.Differ(tc.own, tc.other), "%.20q %.20q", tc.own, tc.other)
	}
}

func FuzzDiffer(f *testing.F) {
	f.Add("aäb", "aöb")
	f.Add(strings.Repeat("ä", 100)+"1", strings.Repeat("ä", 100)+"2")
	f.Fuzz(func(t *testing.T, own, other string) {
		d := page.Differ(own, other)
		if own == other {
			assert.Equal(t, -1, d.Byte)
			return
		}
		assert.Equal(t, own[:d.Byte], other[:d.Byte])
		if d.Byte < len(own) && d.Byte < len(other) {
			assert.NotEqual(t, own[d.Byte], other[d.Byte])
		}
		assert.NotEqual(t, d.Own, d.Other, "where they differ is shown")
		assert.LessOrEqual(t, len(d.Common)+len(d.Own)+len(d.Other), 500)
	})
}

func TestAttributes(t *testing.T) {
	assert.Empty(t, page.Attributes(map[string]string{"a": "1"}, map[string]string{"a": "1"}))
	assert.Equal(t, []string{`a is "1" instead of "2"`, `b is missing; the other message has ""`, `c is "\""; the other message has no c`},
		page.Attributes(map[string]string{"a": "1", "c": `"`, "d": "d"}, map[string]string{"a": "2", "b": "", "d": "d"}))
	many := map[string]string{}
	for i := range 20 {
		many[fmt.Sprint("name", i)] = strings.Repeat("x", 1000)
	}
	got := page.Attributes(many, nil)
	assert.Len(t, got, 9)
	assert.Equal(t, "…", got[8])
	assert.Less(t, len(got[0]), 150)
}

// In both themes, texts and the dots for messages have a contrast of at least 4.5 to 1 with
// every background (WCAG 2.2), and borders of controls at least 3 to 1.
func TestContrast(t *testing.T) {
	css, err := os.ReadFile("assets/base.css")
	require.NoError(t, err)
	themes := regexp.MustCompile(`(?s):root(\[data-theme="dark"\])? \{(.*?)\}`).FindAllStringSubmatch(string(css), -1)
	require.Len(t, themes, 2)
	for _, theme := range themes {
		colors := map[string]string{}
		for _, c := range regexp.MustCompile(`--([a-z-]+): (#[0-9a-f]{6});`).FindAllStringSubmatch(theme[2], -1) {
			colors[c[1]] = c[2]
		}
		require.Len(t, colors, 16)
		for _, name := range []string{"text", "muted", "lost", "bodies", "again", "refused", "duplicate", "delivered", "focus"} {
			for _, ground := range []string{"ground", "panel", "pick"} {
				assert.GreaterOrEqual(t, contrast(t, colors[name], colors[ground]), 4.5, "%s on %s, theme %q", name, ground, theme[1])
			}
		}
		for _, ground := range []string{"bar"} {
			assert.GreaterOrEqual(t, contrast(t, colors["text"], colors[ground]), 4.5, "text on %s, theme %q", ground, theme[1])
		}
		// The red dot of a lost message contains a cross in the background's colour.
		assert.GreaterOrEqual(t, contrast(t, colors["ground"], colors["lost"]), 4.5)
		// Borders of controls: 3 to 1.
		assert.GreaterOrEqual(t, contrast(t, colors["edge"], colors["ground"]), 3.0, "theme %q", theme[1])
	}
}

func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	luminance := func(color string) float64 {
		n, err := strconv.ParseUint(strings.TrimPrefix(color, "#"), 16, 32)
		require.NoError(t, err, "%q", color)
		channel := func(v uint64) float64 {
			c := float64(v&0xff) / 255
			if c <= 0.03928 {
				return c / 12.92
			}
			return math.Pow((c+0.055)/1.055, 2.4)
		}
		return 0.2126*channel(n>>16) + 0.7152*channel(n>>8) + 0.0722*channel(n)
	}
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}
