package canonicaljson_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/kansas-frontier-matrix/sqsfifo/canonicaljson"
)

// addVectors adds the texts of all vectors shorter than 1,000 bytes to a fuzzer.
func addVectors(f *testing.F) {
	for _, v := range vectors(f, "[nsx]*.jsonl") {
		if text := v.text(f); len(text) < 1000 {
			f.Add(text)
		}
	}
}

// FuzzText checks the guarantees for every text. No function panics, writes to the
// input or shares memory between input and output; the output is its own canonical
// form; all functions agree.
func FuzzText(f *testing.F) {
	addVectors(f)
	f.Fuzz(func(t *testing.T, src []byte) {
		before := bytes.Clone(src)
		loose, errLoose := canonicaljson.Append([]byte("dst"), src)
		strict, errStrict := canonicaljson.CanonicalizeStrict(src)
		if !bytes.Equal(before, src) {
			t.Fatal("the input was written to")
		}
		if errLoose != nil {
			if string(loose) != "dst" || errStrict == nil {
				t.Fatalf("%v, but %q, %v", errLoose, loose, errStrict)
			}
			checkError(t, src, errLoose)
			return
		}
		loose = loose[3:]
		if !json.Valid(src) {
			t.Fatalf("%q was accepted", src)
		}
		if again, err := canonicaljson.CanonicalizeStrict(loose); err != nil || !bytes.Equal(again, loose) {
			t.Fatalf("%q becomes %q, and that %q, %v", src, loose, again, err)
		}
		if !canonicaljson.IsCanonical(loose) {
			t.Fatalf("%q is not canonical", loose)
		}
		if got, want := canonicaljson.IsCanonical(src), bytes.Equal(src, loose); got != want {
			t.Fatalf("IsCanonical(%q) = %v, its form is %q", src, got, loose)
		}
		if errStrict != nil {
			if !errors.Is(errStrict, canonicaljson.ErrInexactInteger) {
				t.Fatal(errStrict)
			}
			checkError(t, src, errStrict)
			return
		}
		if !bytes.Equal(strict, loose) {
			t.Fatalf("%q becomes %q, strictly %q", src, loose, strict)
		}
		for i := range src {
			src[i] = 0xAA
		}
		if !bytes.Equal(strict, loose) {
			t.Fatal("the output shares memory with the input")
		}
	})
}

// checkError checks that an error for the text src is a [canonicaljson.Error] with a broken
// rule, no Go type, an offset inside the text and a message of limited length.
func checkError(t *testing.T, src []byte, err error) {
	t.Helper()
	var e *canonicaljson.Error
	if !errors.As(err, &e) || e.Err == nil || e.Type != nil {
		t.Fatalf("%#v", err)
	}
	if e.Offset < 0 || e.Offset > int64(len(src)) {
		t.Fatalf("offset %d of %d", e.Offset, len(src))
	}
	if n := len(err.Error()); n > 700 {
		t.Fatalf("%d bytes of message", n)
	}
}

// FuzzPermutation reorders the members of every object in a text and writes its strings
// and numbers in another way. Canonicalize returns the same bytes for both texts.
func FuzzPermutation(f *testing.F) {
	for _, v := range vectors(f, "[nsx]*.jsonl") {
		if text := v.text(f); len(text) < 1000 && v.Expect == "ok" {
			f.Add(text, uint64(len(text)))
		}
	}
	f.Fuzz(func(t *testing.T, src []byte, seed uint64) {
		want, err := canonicaljson.Canonicalize(src)
		if err != nil {
			return
		}
		r := rand.New(rand.NewPCG(seed, 0))
		d := json.NewDecoder(bytes.NewReader(src))
		d.UseNumber()
		other := rewrite(t, r, d, nil)
		got, err := canonicaljson.Canonicalize(other)
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%q becomes %q, but %q becomes %q, %v", src, want, other, got, err)
		}
	})
}

// rewrite reads a value from d and appends it to dst in another spelling: members
// shuffled, with other escapes, other forms of numbers and white space.
func rewrite(t *testing.T, r *rand.Rand, d *json.Decoder, dst []byte) []byte {
	token, err := d.Token()
	if err != nil {
		t.Fatal(err)
	}
	if r.IntN(4) == 0 {
		dst = append(dst, " \t\r\n"[r.IntN(4)])
	}
	switch token := token.(type) {
	case json.Delim:
		closing := map[json.Delim]byte{'{': '}', '[': ']'}[token]
		var parts [][]byte
		for d.More() {
			var part []byte
			if token == '{' {
				name, err := d.Token()
				if err != nil {
					t.Fatal(err)
				}
				part = append(append(part, writtenOtherwise(r, name.(string))...), ':')
			}
			parts = append(parts, rewrite(t, r, d, part))
		}
		if _, err := d.Token(); err != nil {
			t.Fatal(err)
		}
		if token == '{' {
			r.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		}
		dst = append(dst, byte(token))
		dst = append(dst, bytes.Join(parts, []byte(","))...)
		dst = append(dst, closing)
	case string:
		dst = append(dst, writtenOtherwise(r, token)...)
	case json.Number:
		f, err := token.Float64()
		if err != nil {
			t.Fatal(err)
		}
		switch r.IntN(3) {
		case 0:
			dst = append(dst, token...)
		case 1:
			dst = fmt.Appendf(dst, "%.17e", f)
		case 2:
			dst = fmt.Appendf(dst, "%.25E", f)
		}
	case bool:
		dst = fmt.Append(dst, token)
	case nil:
		dst = append(dst, "null"...)
	}
	return dst
}

// FuzzString checks that AppendString refuses exactly the strings with invalid UTF-8.
// For other strings, its result decodes to the same string and equals the result of
// json.Marshal after Canonicalize.
func FuzzString(f *testing.F) {
	for _, s := range []string{"", "plain", "é€😀\uffff", "\x00\x1f\x7f\"\\/", "\xff", "12345678\xc3", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\u2028"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := canonicaljson.AppendString([]byte("x"), s)
		if valid := !errors.Is(err, canonicaljson.ErrInvalidUTF8); valid != (string([]rune(s)) == s) || valid != (err == nil) {
			t.Fatalf("%q: %v", s, err)
		}
		if err != nil {
			if string(got) != "x" {
				t.Fatalf("%q", got)
			}
			return
		}
		got = got[1:]
		var back string
		if err := json.Unmarshal(got, &back); err != nil || back != s {
			t.Fatalf("%q becomes %s, and that %q, %v", s, got, back, err)
		}
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		want, err := canonicaljson.Canonicalize(text)
		if err != nil || !bytes.Equal(got, want) || !canonicaljson.IsCanonical(got) {
			t.Fatalf("%q becomes %s, its text %s, %v", s, got, want, err)
		}
	})
}

// FuzzNumber compares the reading and writing of doubles with exact arithmetic.
func FuzzNumber(f *testing.F) {
	for _, x := range []float64{0, 1, 0.1, 1e21, 1e-7, math.MaxFloat64, 5e-324, 1 << 53, 123456789.125} {
		f.Add(math.Float64bits(x), 17)
	}
	f.Fuzz(func(t *testing.T, b uint64, digits int) {
		x := math.Float64frombits(b)
		got, err := canonicaljson.AppendNumber(nil, x)
		if math.IsNaN(x) || math.IsInf(x, 0) {
			if !errors.Is(err, canonicaljson.ErrNumberRange) {
				t.Fatal(err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if why := newNumberJudge().fault(x, string(got)); why != "" {
			t.Fatalf("%x becomes %s: %s", x, got, why)
		}
		// A double written with at least 17 digits is read back as the same double.
		literal := fmt.Sprintf("%.*e", 16+(digits&0xFF)%40, x)
		back, err := canonicaljson.Canonicalize([]byte(literal))
		if err != nil || !bytes.Equal(back, got) {
			t.Fatalf("%s becomes %s, want %s, %v", literal, back, got, err)
		}
	})
}
