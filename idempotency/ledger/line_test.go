package ledger_test

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/ledger"
)

// Hashes cover every field of entries and seals, and every field survives a round trip
// through a line.
func TestEveryFieldIsHashed(t *testing.T) {
	e := entry(5)
	e.Resend = true
	for i, f := range fields(reflect.ValueOf(&e).Elem(), "Entry") {
		changed := e
		change(fields(reflect.ValueOf(&changed).Elem(), "Entry")[i].value)
		switch place := f.name == "Entry.Position.Transaction" || f.name == "Entry.Position.Seq"; {
		case f.name == "Entry.Hash":
		case place && (changed.Sum() != e.Sum() || changed.Position == e.Position):
			t.Errorf("%s is under the hash of the entry, or was not changed", f.name)
		case !place && changed.Sum() == e.Sum():
			t.Errorf("%s is not under the hash", f.name)
		}
		checkLine(t, f.name, ledger.Line{Entry: &changed})
	}
	s := *build(2)[0].Seal
	for i, f := range fields(reflect.ValueOf(&s).Elem(), "Seal") {
		changed := s
		changed.Entries = slices.Clone(s.Entries)
		change(fields(reflect.ValueOf(&changed).Elem(), "Seal")[i].value)
		if f.name != "Seal.Hash" && changed.Sum() == s.Sum() {
			t.Errorf("%s is not under the hash", f.name)
		}
		checkLine(t, f.name, ledger.Line{Seal: &changed})
	}
}

func checkLine(t *testing.T, name string, l ledger.Line) {
	t.Helper()
	b, err := l.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := ledger.ParseLine(b); err != nil || !reflect.DeepEqual(again, l) {
		t.Errorf("%s: %+v became %+v, %v", name, l, again, err)
	}
}

type field struct {
	name  string
	value reflect.Value
}

func fields(v reflect.Value, name string) (out []field) {
	if _, leaf := v.Interface().(time.Time); leaf || v.Kind() != reflect.Struct {
		return []field{{name, v}}
	}
	for i := range v.NumField() {
		out = append(out, fields(v.Field(i), name+"."+v.Type().Field(i).Name)...)
	}
	return out
}

func change(v reflect.Value) {
	switch x := v.Addr().Interface().(type) {
	case *time.Time:
		*x = x.Add(time.Microsecond)
	case *[]ledger.SealedEntry:
		(*x)[1].Hash[31]++
	default:
		switch v.Kind() {
		case reflect.Int64:
			v.SetInt(v.Int() + 1)
		case reflect.String:
			v.SetString(v.String() + "\xff\x00<é")
		case reflect.Bool:
			v.SetBool(!v.Bool())
		case reflect.Array:
			v.Index(31).SetUint(v.Index(31).Uint() + 1)
		default:
			panic(v.Type())
		}
	}
}

// Hashes are part of the format: every later version must verify existing entries.
func TestHashesDoNotChange(t *testing.T) {
	lines := build(2)
	if got := lines[1].Entry.Hash.String(); got != "54c3323a3dc4a6cb11ff7950cc4e326ae01a9d91190d9ca8e74c414853bc03e9" {
		t.Errorf("the hash of an entry became %s", got)
	}
	if got := lines[0].Seal.Head().String(); got != "1:5bb614099358d4160c697364fb27cedbc95b63e930c3906968cf170b95a04041" {
		t.Errorf("the head became %s", got)
	}
}

func TestLinesThatAreNotExported(t *testing.T) {
	whole := string(file(t, build(1)))
	for name, edit := range map[string]func(string) string{
		"space":           func(s string) string { return strings.Replace(s, `,"seq":1`, `, "seq":1`, 1) },
		"carriage return": func(s string) string { return strings.Replace(s, "\n", "\r\n", 1) },
		"field twice":     func(s string) string { return strings.Replace(s, `"note":"a note"`, `"note":"b","note":"a note"`, 1) },
		"unknown field":   func(s string) string { return strings.Replace(s, `"note":`, `"more":1,"note":`, 1) },
		"field missing":   func(s string) string { return strings.Replace(s, `"resend":false,`, ``, 1) },
		"null":            func(s string) string { return strings.Replace(s, `"resend":false`, `"resend":null`, 1) },
		"count":           func(s string) string { return strings.Replace(s, `"count":1`, `"count":2`, 1) },
		"derived": func(s string) string {
			return strings.Replace(s, `"duplicate_detected":false`, `"duplicate_detected":true`, 1)
		},
		"key_id":     func(s string) string { return strings.Replace(s, `"key_id":"`, `"key_id":"0`, 1) },
		"upper case": func(s string) string { return strings.Replace(s, `"body_hash":"01`, `"BODY_HASH":"01`, 1) },
		"zero hash": func(s string) string {
			return strings.Replace(s, `"previous":""`, `"previous":"`+strings.Repeat("0", 64)+`"`, 1)
		},
		"leaves":            func(s string) string { return strings.Replace(s, `"leaves":"AAAA`, `"leaves":"`, 1) },
		"empty line":        func(s string) string { return "\n" + s },
		"cut":               func(s string) string { return s[:len(s)-10] },
		"base64 of a text":  func(s string) string { return strings.Replace(s, `"note":"a note"`, `"note":{"base64":"YSBub3Rl"}`, 1) },
		"another time zone": func(s string) string { return strings.Replace(s, `123456Z","count"`, `123456+00:00","count"`, 1) },
		"a long line":       func(s string) string { return s + strings.Repeat(" ", 2<<20) },
	} {
		edited := edit(whole)
		if edited == whole {
			t.Errorf("%s: nothing was edited", name)
		}
		var tampered *ledger.TamperError
		if _, err := ledger.Verify(ledger.Read(strings.NewReader(edited))); !errors.As(err, &tampered) || tampered.Kind != ledger.FaultAltered {
			t.Errorf("%s: got %v, want a TamperError", name, err)
		}
	}
}

func TestReadErrors(t *testing.T) {
	broken := errors.New("broken")
	b := file(t, build(2, 2))
	r := &failing{bytes.NewReader(b[:len(b)/2]), broken}
	if _, err := ledger.Verify(ledger.Read(r)); !errors.Is(err, broken) {
		t.Errorf("got %v, want the error of the reader", err)
	}
	b = bytes.Replace(b, []byte("restricted"), []byte("public"), 1)
	var tampered *ledger.TamperError
	r = &failing{bytes.NewReader(b[:len(b)/2]), broken}
	if _, err := ledger.Verify(ledger.Read(r)); !errors.As(err, &tampered) || tampered.Seq != 1 {
		t.Errorf("got %v, want what is wrong before it", err)
	}
}

type failing struct {
	*bytes.Reader
	err error
}

func (f *failing) Read(p []byte) (int, error) {
	if f.Len() == 0 {
		return 0, f.err
	}
	return f.Reader.Read(p)
}

func TestHeads(t *testing.T) {
	h := head(build(2), 1)
	for _, h := range []ledger.Head{{}, h} {
		if again, err := ledger.ParseHead(h.String()); err != nil || again != h {
			t.Errorf("%v became %v, %v", h, again, err)
		}
	}
	zeros := strings.Repeat("0", 64)
	for _, s := range []string{"", "1", "1:", ":" + h.Hash.String(), "01:" + h.Hash.String(), "+1:" + h.Hash.String(), "-1:" + h.Hash.String(), "0:" + h.Hash.String(), "1:" + zeros, "1:" + h.Hash.String() + "0"} {
		if h, err := ledger.ParseHead(s); err == nil {
			t.Errorf("%q became %v", s, h)
		}
	}
}

func TestAnnotations(t *testing.T) {
	ok := ledger.Annotation{Event: ledger.EventMasked, Key: idempotency.Key{Scope: "s", Operation: "o", Value: "v"}, Note: "coordinates to 0.1 degrees"}
	if err := ok.Check(); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*ledger.Annotation){
		"Annotation.Event":  func(r *ledger.Annotation) { r.Event = ledger.EventCompleted },
		"Key.Scope":         func(r *ledger.Annotation) { r.Key.Scope = "" },
		"Annotation.Fence":  func(r *ledger.Annotation) { r.Fence = -1 },
		"Dataset.CARELabel": func(r *ledger.Annotation) { r.Dataset.CARELabel = "\xff" },
		"Annotation.Note":   func(r *ledger.Annotation) { r.Note = "a\x00" },
	} {
		r := ok
		change(&r)
		var invalid *idempotency.InvalidError
		if err := r.Check(); !errors.As(err, &invalid) || invalid.Field != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
