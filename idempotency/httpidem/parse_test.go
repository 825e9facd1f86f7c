package httpidem

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// quote returns the structured-field string of s. s must be printable ASCII.
func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// parseKey accepts a key bare or in quotes, with or without white space around it, and
// returns the same text for both forms. The text is printable ASCII of at most MaxKey
// bytes. Lists of keys are refused.
func FuzzParseKey(f *testing.F) {
	for _, s := range []string{"k", `"k"`, `"a\"b\\"`, `"a,b"`, "a,b", `"a";b=c`, " k ", `"`, `\`, "", "\"\x7f\"", "é", `"k" `, `:a2V5:`, strings.Repeat("k", 256)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		key, err := parseKey([]string{s})
		if err != nil {
			if key != "" {
				t.Errorf("%q: got %q with an error", s, key)
			}
			return
		}
		if key == "" || len(key) > MaxKey || strings.Trim(key, printable) != "" {
			t.Errorf("%q: got %q", s, key)
		}
		again, err := parseKey([]string{quote(key)})
		if err != nil || again != key {
			t.Errorf("%q: got %q, and from its quoted form %q, %v", s, key, again, err)
		}
		trimmed := strings.Trim(s, " \t")
		if !strings.HasPrefix(trimmed, `"`) && key != trimmed || strings.HasPrefix(trimmed, `"`) && trimmed != quote(key) {
			t.Errorf("%q became %q", s, key)
		}
		if _, err := parseKey([]string{s, s}); err == nil {
			t.Errorf("%q twice is a key", s)
		}
		if list, err := parseKey([]string{s + ", " + s}); err == nil {
			t.Errorf("the list of %q is the key %q", s, list)
		}
	})
}

var printable = func() string {
	var b strings.Builder
	for c := byte(' '); c <= '~'; c++ {
		b.WriteByte(c)
	}
	return b.String()
}()

// An encoded answer that is decoded again is unchanged. For any other bytes, decodeAnswer
// returns an error or an answer that can be sent.
func FuzzAnswer(f *testing.F) {
	a := answer{status: 201, header: http.Header{"Location": {"/a", "\xff"}, "Content-Type": {}}, body: []byte("b\n\x00"), length: 3, retained: true}
	b, err := a.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b, 201, "Location", "/a\xff", true)
	f.Add([]byte(`{"format":1,"status":204,"length":0,"retained":true}`+"\n"), 204, "Etag", "", false)
	f.Add([]byte(`{"format":2}`+"\n"), 999, "", "\r\n", false)
	f.Fuzz(func(t *testing.T, raw []byte, status int, name, value string, retained bool) {
		if got, err := decodeAnswer(raw); err == nil {
			if got.status < 200 || got.status > 999 || got.retained && got.length != int64(len(got.body)) {
				t.Errorf("got %+v", got)
			}
			encoded, err := got.encode()
			if err != nil {
				t.Fatal(err)
			}
			again, err := decodeAnswer(encoded)
			if err != nil || len(encoded) <= len(raw) && fmt.Sprint(again) != fmt.Sprint(got) {
				t.Errorf("got %+v, then %+v, %v", got, again, err)
			}
		}
		if status < 200 || status > 999 {
			return
		}
		want := answer{status: status, header: http.Header{"X": {value, name}, "Y": {}}, length: int64(len(raw)), retained: retained}
		if retained {
			want.body = raw
		}
		encoded, err := want.encode()
		if err != nil || len(encoded) > len(want.body)+maxHead {
			t.Fatalf("%d bytes, %v", len(encoded), err)
		}
		got, err := decodeAnswer(encoded)
		if err != nil {
			t.Fatal(err)
		}
		if len(value)+len(name) > maxHead/2 {
			return // the headers may be too long for encode to retain
		}
		if got.status != want.status || got.length != want.length || got.retained != retained || !bytes.Equal(got.body, want.body) || fmt.Sprint(got.header) != fmt.Sprint(want.header) {
			t.Errorf("got %+v, want %+v", got, want)
		}
		if y, ok := got.header["Y"]; !ok || y == nil {
			t.Error("the empty header is lost")
		}
	})
}

// If the headers are too long to store, encode drops the headers and keeps the status.
func TestLongHeaders(t *testing.T) {
	a := answer{status: 201, header: http.Header{"Link": {strings.Repeat("l", maxHead)}}, body: []byte("b"), length: 1, retained: true}
	b, err := a.encode()
	if err != nil || len(b) > maxHead {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	got, err := decodeAnswer(b)
	if err != nil || got.status != 201 || got.retained || got.length != 1 || len(got.header) != 0 {
		t.Errorf("got %+v, %v, want the status and length", got, err)
	}
}

// decodeAnswer refuses bytes that encode did not write.
func TestForeignAnswer(t *testing.T) {
	for _, raw := range []string{"", "paid", "{}\n", "paid\n", `{"format":2,"status":200,"retained":true}` + "\n", `{"format":1,"status":101,"retained":true}` + "\n", `{"format":1,"status":200,"length":3,"retained":true}` + "\nab"} {
		if got, err := decodeAnswer([]byte(raw)); err == nil {
			t.Errorf("%q: got %+v, want an error", raw, got)
		}
	}
}
