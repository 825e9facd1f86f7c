package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/gowebpki/jcs"
	"github.com/kansas-frontier-matrix/sqsfifo/canonicaljson"
)

// FuzzAgainstPeers compares Canonicalize with jsontext and gowebpki. There is one known
// difference: a number beyond the range of a double is an error here and in gowebpki,
// while jsontext writes the largest double.
func FuzzAgainstPeers(f *testing.F) {
	for _, text := range []string{
		`{"b":1,"a":[1.50,1e3,-0,"\u0041\/\ud83d\ude00"]}`, ` [ {"é":null,"\ufb33":1,"\ud83d\ude00":2} , true ] `, `333333333.33333329`, `1e400`, `{"a":1,"a":2}`,
		`"\ud800"`, "\"\xff\"", `[1,]`, `{"a":{"c":1,"b":{"e":1,"d":2}}}`, `9007199254740993`, `1e21`, `0.0000001`, "\ufeff{}", `{} {}`, `"\u001F\u007f"`,
	} {
		f.Add([]byte(text))
	}
	if event, err := json.Marshal(sampleEvent); err == nil {
		f.Add(event)
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		got, err := canonicaljson.Canonicalize(src)
		theirs := jsontext.Value(bytes.Clone(src))
		errTheirs := theirs.Canonicalize()
		switch {
		case err == nil && errTheirs == nil:
			if !bytes.Equal(got, theirs) {
				t.Fatalf("%q becomes %q, with jsontext %q", src, got, theirs)
			}
		case err != nil && errTheirs == nil:
			if !errors.Is(err, canonicaljson.ErrNumberRange) || !bytes.Contains(theirs, []byte("1.7976931348623157e+308")) {
				t.Fatalf("%q is refused, %v, but jsontext gives %q", src, err, theirs)
			}
		case err == nil:
			t.Fatalf("%q becomes %q, but jsontext refuses it: %v", src, got, errTheirs)
		}
		third, errThird := jcs.Transform(bytes.Clone(src))
		switch {
		case (err == nil) != (errThird == nil):
			t.Fatalf("%q becomes %q, %v, with gowebpki %q, %v", src, got, err, third, errThird)
		case err == nil && !bytes.Equal(got, third):
			t.Fatalf("%q becomes %q, with gowebpki %q", src, got, third)
		}
	})
}
