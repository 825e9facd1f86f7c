package vet

import (
	"bytes"
	"go/token"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

const senderCode = `package shop

//sqsfifo:ignore SF002
var first, second = New(), New()

type Sender[T any] struct{ f func() }

func (s *Sender[T]) Send() { s.f() }

func (Sender[T]) Name() string { return "" }

func Send() { go func() { New() }() }

func init() {}
`

// reportWith writes the code in senderCode to a file in a temporary folder. It returns a
// report with the findings in this file, and the folder.
func reportWith(t *testing.T, findings ...Finding) (*Report, string) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "shop", "sender.go")
	require.NoError(t, os.Mkdir(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, []byte(senderCode), 0o600))
	for i := range findings {
		findings[i].Start.Filename = file
		if findings[i].Start.Column == 0 {
			findings[i].Start.Column = 2
		}
	}
	return &Report{Findings: findings, files: map[string]bool{file: true}}, dir
}

func at(line int, rule, message string) Finding {
	return Finding{Rule: rule, Severity: lint.Error, Message: message, Start: token.Position{Line: line}}
}

func TestWhereAFindingIs(t *testing.T) {
	var findings []Finding
	for line, want := range map[int]string{3: "", 4: "first", 6: "Sender", 8: "(*Sender).Send", 10: "Sender.Name", 12: "Send", 14: "init"} {
		f := at(line, "SF001", want)
		if line == 4 {
			f.Start.Column = 22
		} else if line == 6 {
			f.Start.Column = 8
		}
		findings = append(findings, f)
	}
	r, dir := reportWith(t, findings...)
	for _, k := range r.known(dir) {
		assert.Equal(t, k.Message, k.Function)
		assert.Equal(t, "shop/sender.go", k.File)
	}
	r.Findings[0].Start.Filename = filepath.Join(dir, "gone.go")
	assert.Empty(t, r.known(dir)[0].Function)
}

func TestBaselineFilters(t *testing.T) {
	known := func(function, rule, message string, count int) Known {
		return Known{"shop/sender.go", function, rule, lint.Error, message, count}
	}
	for name, tc := range map[string]struct {
		baseline Baseline
		left     []string // messages of the findings that Filter keeps
		stale    int
	}{
		"nothing known":                {nil, []string{"a", "a", "b", "c"}, 0},
		"all known":                    {Baseline{known("Send", "SF001", "a", 2), known("Send", "SF001", "b", 1), known("init", "SF002", "c", 1)}, nil, 0},
		"other words":                  {Baseline{known("Send", "SF001", "older words", 3), known("init", "SF002", "c", 1)}, nil, 0},
		"one more than known":          {Baseline{known("Send", "SF001", "a", 2), known("init", "SF002", "c", 1)}, []string{"b"}, 0},
		"the same words first":         {Baseline{known("Send", "SF001", "b", 1)}, []string{"a", "a", "c"}, 0},
		"one less than known":          {Baseline{known("Send", "SF001", "a", 9)}, []string{"c"}, 6},
		"another function":             {Baseline{known("Other", "SF001", "a", 1)}, []string{"a", "a", "b", "c"}, 1},
		"another rule":                 {Baseline{known("Send", "SF003", "a", 1)}, []string{"a", "a", "b", "c"}, 1},
		"a warning that is an error":   {Baseline{{"shop/sender.go", "Send", "SF001", lint.Warning, "a", 1}}, []string{"a", "a", "b", "c"}, 1},
		"a file that is gone":          {Baseline{{"shop/gone.go", "Send", "SF001", lint.Error, "a", 2}}, []string{"a", "a", "b", "c"}, 2},
		"a file that was not checked":  {Baseline{{"unchecked.go", "Send", "SF001", lint.Error, "a", 1}}, []string{"a", "a", "b", "c"}, 0},
		"the same line written twice":  {Baseline{known("Send", "SF001", "a", 1), known("Send", "SF001", "a", 1)}, []string{"b", "c"}, 0},
		"a file of the same base name": {Baseline{{"sender.go", "Send", "SF001", lint.Error, "a", 1}}, []string{"a", "a", "b", "c"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r, dir := reportWith(t, at(12, "SF001", "a"), at(12, "SF001", "a"), at(12, "SF001", "b"), at(14, "SF002", "c"))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "unchecked.go"), []byte("package x"), 0o600))
			n, stale, err := r.Filter(tc.baseline, filepath.Join(dir, "baseline"))
			require.NoError(t, err)
			var left []string
			for _, f := range r.Findings {
				left = append(left, f.Message)
			}
			assert.Equal(t, tc.left, left)
			assert.Equal(t, 4-len(tc.left), n)
			count := 0
			for _, k := range stale {
				count += k.Count
			}
			assert.Equal(t, tc.stale, count, "%v", stale)
		})
	}
}

// After WriteBaseline, Filter removes all findings of the same report, in any order. A
// second WriteBaseline writes the same file.
func TestBaselineIsStable(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0)) // #nosec G404 -- a test
	for range 50 {
		var findings []Finding
		for range random.IntN(30) {
			findings = append(findings, at([]int{3, 4, 8, 12, 14}[random.IntN(5)], []string{"SF001", "SF002"}[random.IntN(2)], []string{"a\tb", "<c> \"d\"\n", ""}[random.IntN(3)]))
		}
		r, dir := reportWith(t, findings...)
		file := filepath.Join(dir, "baseline")
		n, err := r.WriteBaseline(file)
		require.NoError(t, err)
		assert.Equal(t, len(findings), n)
		first, err := os.ReadFile(file)
		require.NoError(t, err)

		random.Shuffle(len(r.Findings), func(i, j int) { r.Findings[i], r.Findings[j] = r.Findings[j], r.Findings[i] })
		_, err = r.WriteBaseline(file)
		require.NoError(t, err)
		second, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Equal(t, string(first), string(second))

		b, err := ReadBaseline(file)
		require.NoError(t, err)
		known, stale, err := r.Filter(b, file)
		require.NoError(t, err)
		assert.Equal(t, n, known)
		assert.Empty(t, stale)
		assert.Empty(t, r.Findings)
	}
}

func TestBaselineThatIsNone(t *testing.T) {
	for text, says := range map[string]string{
		"{}":                   "1: want an object",
		"\n\n{\"file\":\"a\"}": "3: want an object",
		"SF001 a.go":           "1: want an object",
		`{"file":"a","rule":"SF001","severity":"error","message":"","count":0}`:                  "count of 1",
		`{"file":"a","rule":"SF001","severity":"fatal","message":"","count":1}`:                  "severity",
		`{"file":"a","rule":"SF001","severity":"error","message":"","count":1,"line":3}`:         "line",
		`{"file":"a","rule":"SF001","severity":"error","message":"","count":1} {"file":"trail"}`: "1: want an object",
	} {
		_, err := parseBaseline([]byte(text))
		require.ErrorIs(t, err, errNotKnown, text)
		assert.ErrorContains(t, err, says, text)
	}
	r, dir := reportWith(t)
	file := filepath.Join(dir, "baseline")
	require.NoError(t, os.WriteFile(file, []byte("notes of a person"), 0o600))
	_, err := r.WriteBaseline(file)
	require.ErrorIs(t, err, errNotKnown, "a file that is not a baseline is not written over")
}

func FuzzParseBaseline(f *testing.F) {
	f.Add([]byte(`{"file":"a.go","function":"Send","rule":"SF001","severity":"error","message":"m","count":2}` + "\n\n"))
	f.Add([]byte(`{"file":"a.go"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		b, err := parseBaseline(text)
		if err != nil {
			return
		}
		var out bytes.Buffer
		require.NoError(t, b.write(&out))
		again, err := parseBaseline(out.Bytes())
		require.NoError(t, err)
		assert.Equal(t, b, again)
		for line := range strings.Lines(out.String()) {
			assert.True(t, strings.HasSuffix(line, "}\n"), "a finding is one line")
		}
	})
}
