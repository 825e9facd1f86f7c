package canonicaljson_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/kansas-frontier-matrix/sqsfifo/canonicaljson"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// vector is a row of testdata/vectors; its README has the format.
type vector struct {
	Name    string `json:"name"`
	Input   string `json:"input"`
	Hex     string `json:"input_hex"`
	Parts   []part `json:"input_parts"`
	IEEE    string `json:"ieee"`
	Expect  string `json:"expect"`
	Output  *string
	Strict  string
	Offset  *int64
	Pointer *string
}

type part struct {
	text  string
	count int
}

func (p *part) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &[]any{&p.text, &p.count})
}

func (v vector) text(t testing.TB) []byte {
	t.Helper()
	switch {
	case v.Hex != "":
		b, err := hex.DecodeString(v.Hex)
		require.NoError(t, err)
		return b
	case v.Parts != nil:
		var b strings.Builder
		for _, p := range v.Parts {
			b.WriteString(strings.Repeat(p.text, p.count))
		}
		return []byte(b.String())
	}
	return []byte(v.Input)
}

// vectors returns the rows of all files in testdata/vectors whose names match the
// pattern.
func vectors(t testing.TB, pattern string) []vector {
	t.Helper()
	files, err := filepath.Glob("testdata/vectors/" + pattern)
	require.NoError(t, err)
	var rows []vector
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for line := range bytes.Lines(text) {
			var v vector
			require.NoError(t, json.Unmarshal(line, &v), "%s: %s", file, line)
			v.Name = strings.TrimSuffix(filepath.Base(file), ".jsonl") + "/" + v.Name
			rows = append(rows, v)
		}
	}
	return rows
}

var classes = map[string]error{
	"syntax":          canonicaljson.ErrSyntax,
	"trailing-data":   canonicaljson.ErrTrailingData,
	"byte-order-mark": canonicaljson.ErrByteOrderMark,
	"invalid-utf8":    canonicaljson.ErrInvalidUTF8,
	"surrogate":       canonicaljson.ErrSurrogate,
	"duplicate-name":  canonicaljson.ErrDuplicateName,
	"number-range":    canonicaljson.ErrNumberRange,
	"inexact-integer": canonicaljson.ErrInexactInteger,
	"depth":           canonicaljson.ErrDepth,
}

// class returns the name of err in the map `classes`, or "ok" if err is nil.
func class(t testing.TB, err error) string {
	t.Helper()
	if err == nil {
		return "ok"
	}
	var e *canonicaljson.Error
	require.ErrorAs(t, err, &e)
	found := ""
	for name, rule := range classes {
		if errors.Is(err, rule) {
			require.Empty(t, found, "an error of two classes: %v", err)
			found = name
		}
	}
	require.NotEmpty(t, found, "an error of no class: %v", err)
	return found
}

// tally counts vectors by the class of their expected outcome, such as "ok" or
// "syntax".
type tally struct{ passed, all map[string]int }

func newTally() tally { return tally{map[string]int{}, map[string]int{}} }

func (c tally) count(class string, passed bool) {
	c.all[class]++
	if passed {
		c.passed[class]++
	}
}

func (c tally) log(t *testing.T) {
	passed, all := 0, 0
	for _, class := range slices.Sorted(maps.Keys(c.all)) {
		t.Logf("%-16s %3d of %3d", class, c.passed[class], c.all[class])
		passed += c.passed[class]
		all += c.all[class]
	}
	t.Logf("%-16s %3d of %3d", "all", passed, all)
}

func TestTextVectors(t *testing.T) {
	c := newTally()
	for _, v := range vectors(t, "[nsx]*.jsonl") {
		c.count(v.Expect, t.Run(v.Name, func(t *testing.T) {
			input := v.text(t)
			strict := v.Strict
			if strict == "" {
				strict = v.Expect
			}
			for _, form := range []struct {
				name   string
				append func(dst, src []byte) ([]byte, error)
				alone  func(src []byte) ([]byte, error)
				expect string
			}{
				{"by the letter", canonicaljson.Append, canonicaljson.Canonicalize, v.Expect},
				{"strict", canonicaljson.AppendStrict, canonicaljson.CanonicalizeStrict, strict},
			} {
				before := bytes.Clone(input)
				got, err := form.append([]byte("dst:"), input)
				require.Equal(t, form.expect, class(t, err), "%s: %v", form.name, err)
				alone, errAlone := form.alone(input)
				require.Equal(t, before, input, "the input was written to")
				if err != nil {
					assert.Equal(t, "dst:", string(got))
					assert.Nil(t, alone)
					assert.Equal(t, err, errAlone)
					var e *canonicaljson.Error
					require.ErrorAs(t, err, &e)
					if v.Offset != nil {
						assert.Equal(t, *v.Offset, e.Offset, "%v", err)
					}
					if v.Pointer != nil {
						assert.Equal(t, *v.Pointer, e.Pointer, "%v", err)
					}
					continue
				}
				want := string(input)
				if v.Output != nil {
					want = *v.Output
				}
				assert.Equal(t, "dst:"+want, string(got))
				assert.Equal(t, want, string(alone))
				assert.Equal(t, len(alone), cap(alone), "Canonicalize returns the exact size")
			}
			canonical := v.Expect == "ok" && strict == "ok" && (v.Output == nil || *v.Output == string(input))
			assert.Equal(t, canonical, canonicaljson.IsCanonical(input))
			if v.Expect == "ok" && v.Output != nil {
				assert.True(t, canonicaljson.IsCanonical([]byte(*v.Output)), "output is its own canonical form")
			}
		}))
	}
	c.log(t)
}

func TestDoubleVectors(t *testing.T) {
	c := newTally()
	for _, v := range vectors(t, "doubles.jsonl") {
		c.count(v.Expect, t.Run(v.Name+v.IEEE, func(t *testing.T) {
			b, err := strconv.ParseUint(v.IEEE, 16, 64)
			require.NoError(t, err)
			f := math.Float64frombits(b)
			got, err := canonicaljson.AppendNumber([]byte("x"), f)
			require.Equal(t, v.Expect, class(t, err))
			_, err = canonicaljson.Marshal(f)
			require.Equal(t, v.Expect, class(t, err))
			if v.Expect != "ok" {
				assert.Equal(t, "x", string(got))
				return
			}
			assert.Equal(t, "x"+*v.Output, string(got))
			if f != 0 {
				got, err = canonicaljson.CanonicalizeStrict([]byte(strconv.FormatFloat(f, 'e', 30, 64)))
				require.NoError(t, err)
				assert.Equal(t, *v.Output, string(got))
			}
		}))
	}
	c.log(t)
}
