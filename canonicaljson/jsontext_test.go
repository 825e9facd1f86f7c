//go:build go1.27 && goexperiment.jsonv2

package canonicaljson_test

import (
	"bytes"
	"encoding/json"
	"encoding/json/jsontext"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/kansas-frontier-matrix/sqsfifo/canonicaljson"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// jsontextDiffers is the only difference between Canonicalize and the method Canonicalize of
// jsontext.Value in Go 1.27: jsontext writes a number beyond the range of a double as the
// largest double, so all such numbers get the same bytes. Its option CanonicalizeRawFloats
// documents this. Canonicalize refuses the number.
const jsontextDiffers = "number beyond a double"

// agreeWithJSONText compares both functions on a text. It returns jsontextDiffers if they
// differ in this way, else "". Any other difference fails the test.
func agreeWithJSONText(t *testing.T, src []byte) string {
	t.Helper()
	got, err := canonicaljson.Canonicalize(src)
	value := jsontext.Value(bytes.Clone(src))
	errText := value.Canonicalize()
	if errors.Is(err, canonicaljson.ErrNumberRange) {
		return jsontextDiffers
	}
	if (err == nil) != (errText == nil) || err == nil && !bytes.Equal(got, value) {
		t.Errorf("%.200q becomes %.200q, %v; with jsontext %.200q, %v", src, got, err, value, errText)
	}
	return ""
}

func TestAgreesWithJSONText(t *testing.T) {
	t.Run("difference", func(t *testing.T) {
		for src, text := range map[string]string{
			"1e400": "1.7976931348623157e+308", "[-1E999]": "[-1.7976931348623157e+308]", "1" + string(bytes.Repeat([]byte("0"), 309)): "1.7976931348623157e+308",
		} {
			assert.Equal(t, jsontextDiffers, agreeWithJSONText(t, []byte(src)))
			value := jsontext.Value(src)
			require.NoError(t, value.Canonicalize())
			assert.Equal(t, text, string(value), "jsontext no longer differs as it documents")
		}
	})
	t.Run("vectors", func(t *testing.T) {
		for _, v := range vectors(t, "[nsx]*.jsonl") {
			agreeWithJSONText(t, v.text(t))
		}
	})
	t.Run("files", func(t *testing.T) {
		files, err := filepath.Glob("../../shared/data/json/*.json")
		require.NoError(t, err)
		if len(files) == 0 {
			t.Skip("no folder ../shared/data/json beside this repository")
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			assert.Empty(t, agreeWithJSONText(t, text), file)
		}
	})
	// Texts of random values in another spelling, as they are and with a random fault.
	t.Run("random", func(t *testing.T) {
		compared := 0
		for seed := range uint64(2_000) {
			g := generator{rand.New(rand.NewPCG(seed%100, 127))}
			v := reflect.New(g.typ(3)).Elem()
			g.r = rand.New(rand.NewPCG(seed, 127))
			g.fill(v, 4)
			text, err := json.Marshal(v.Interface())
			if err != nil {
				continue
			}
			d := json.NewDecoder(bytes.NewReader(text))
			d.UseNumber()
			text = rewrite(t, g.r, d, nil)
			assert.Empty(t, agreeWithJSONText(t, text))
			text[g.r.IntN(len(text))] = []byte("\"\\{}[]:,0.-e\x00\xff\xed")[g.r.IntN(15)]
			agreeWithJSONText(t, text)
			compared++
		}
		assert.Greater(t, compared, 1_000)
	})
}
