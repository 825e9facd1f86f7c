package canonicaljson_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/canonicaljson"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type failing struct{ err error }

func (f failing) MarshalJSON() ([]byte, error) { return nil, f.err }

type failingText struct{ err error }

func (f failingText) MarshalText() ([]byte, error) { return nil, f.err }

type badOutput string

func (b badOutput) MarshalJSON() ([]byte, error) { return []byte(b), nil }

type badText string

func (b badText) MarshalText() ([]byte, error) { return []byte(b), nil }

// Tests embed several of these structs in one struct. At least two have MarshalJSON and two
// have MarshalText, so Go promotes neither method to the outer struct.
type (
	sealedValue   struct{ N int }
	sealedPointer struct{ N int }
	otherMethods  struct{ N int }
	instant       = time.Time
	zeroStruct    struct{ N int }
	plainStruct   struct {
		N int
		T time.Time
		V valueMethod
		P *pointerMethod
		M map[string]valueText
	}
)

func (sealedValue) MarshalText() ([]byte, error)    { return []byte("v"), nil }
func (*sealedPointer) MarshalJSON() ([]byte, error) { return []byte("1"), nil }
func (otherMethods) MarshalText() ([]byte, error)   { return []byte("o"), nil }
func (otherMethods) MarshalJSON() ([]byte, error)   { return []byte("2"), nil }
func (zeroStruct) IsZero() bool                     { return true }

type sameKey int

func (sameKey) MarshalText() ([]byte, error) { return []byte("same"), nil }

// As in encoding/json, omitzero leaves out an embedded field that is zero, even one with
// an unexported type. Reflection cannot call methods of such a field, so omitzero must
// work without IsZero. TestRefusedValues has the exception: a struct with the method
// IsZero.
func TestOmitZeroOfUnexportedName(t *testing.T) {
	for _, v := range []any{
		struct {
			*zeroStruct `json:"z,omitzero"`
		}{},
		struct {
			*zeroByPointer `json:"z,omitzero"`
		}{},
		struct {
			*sealedPointer `json:"p,omitzero"`
			*otherMethods  `json:"o,omitzero"`
			sealedValue    `json:"v,omitzero"`
		}{},
	} {
		want, err := json.Marshal(v)
		require.NoError(t, err)
		got, err := canonicaljson.Marshal(v)
		require.NoError(t, err)
		assert.Equal(t, string(want), string(got))
	}
}

func TestRefusedValues(t *testing.T) {
	cause := errors.New("out of order")
	var bare any
	bare = &bare
	type P *P
	var p P
	p = &p
	var chain P
	for range 4*canonicaljson.MaxDepth + 1 {
		link := chain
		chain = &link
	}
	deep := any(nil)
	for range canonicaljson.MaxDepth + 1 {
		deep = []any{deep}
	}

	for _, row := range []struct {
		name    string
		value   any
		rule    error
		pointer string
		says    string // part of the error's text
	}{
		{"NaN", []float64{0, math.NaN()}, canonicaljson.ErrNumberRange, "/1", "NaN"},
		{"infinity", math.Inf(-1), canonicaljson.ErrNumberRange, "", "-Inf"},
		{"float32 infinity", float32(math.Inf(1)), canonicaljson.ErrNumberRange, "", "float32"},
		{"2^53", struct{ N int64 }{1 << 53}, canonicaljson.ErrInexactInteger, "/N", "9007199254740992"},
		{"-2^53", map[string]int64{"n/~": -1 << 53}, canonicaljson.ErrInexactInteger, "/n~1~0", "as a string"},
		{"unsigned 2^53", []any{1, uint64(1 << 53)}, canonicaljson.ErrInexactInteger, "/1", "uint64"},
		{"json.Number that changes", json.Number("9007199254740993"), canonicaljson.ErrInexactInteger, "", ""},
		{"json.Number too large", json.Number("1e400"), canonicaljson.ErrNumberRange, "", ""},
		{"json.Number that is not a number", []json.Number{"1x"}, canonicaljson.ErrSyntax, "/0", "1x"},
		{"json.Number with blanks", json.Number(" 1"), canonicaljson.ErrSyntax, "", ""},
		{"quoted json.Number that is not a number", struct {
			N json.Number `json:",string"`
		}{`1","x":"`}, canonicaljson.ErrSyntax, "/N", ""},
		{"quoted json.Number that overflows and more", struct {
			N json.Number `json:",string"`
		}{`1e400"`}, canonicaljson.ErrSyntax, "/N", ""},
		{"invalid string", []string{"caf\xe9"}, canonicaljson.ErrInvalidUTF8, "/0", "byte 3"},
		{"half a surrogate pair in a string", "\xed\xa0\x80", canonicaljson.ErrInvalidUTF8, "", ""},
		{"invalid key", map[string]int{"\xff": 1}, canonicaljson.ErrInvalidUTF8, "", "map key"},
		{"invalid text", badText("\xff"), canonicaljson.ErrInvalidUTF8, "", ""},
		{"invalid quoted string", struct {
			S string `json:",string"`
		}{"\xff"}, canonicaljson.ErrInvalidUTF8, "/S", ""},
		{"channel", struct{ C chan int }{}, canonicaljson.ErrUnsupportedType, "/C", "chan int"},
		{"function", []any{func() {}}, canonicaljson.ErrUnsupportedType, "/0", ""},
		{"complex", 1i, canonicaljson.ErrUnsupportedType, "", "complex128"},
		{"map with struct keys", map[struct{}]int{}, canonicaljson.ErrUnsupportedType, "", ""},
		{"map with a nil key", map[interface{ MarshalText() ([]byte, error) }]int{nil: 1}, canonicaljson.ErrUnsupportedType, "", "nil map key"},
		{"equal keys", map[sameKey]int{1: 1, 2: 2}, canonicaljson.ErrDuplicateName, "/same", "same"},
		{"circle through an interface", bare, canonicaljson.ErrDepth, "", "contains itself"},
		{"pointer to itself", p, canonicaljson.ErrDepth, "", "contains itself"},
		{"chain of pointers", chain, canonicaljson.ErrDepth, "", "limit"},
		{"one level too many", deep, canonicaljson.ErrDepth, strings.Repeat("/0", canonicaljson.MaxDepth), ""},
		{"method fails", []any{failing{cause}}, cause, "/0", "MarshalJSON"},
		{"text method fails", []any{failingText{cause}}, cause, "/0", "MarshalText"},
		{"key method fails", map[failingText]int{{cause}: 1}, cause, "", "map key"},
		{"method returns no JSON", struct{ B badOutput }{`{"a":[1,}`}, canonicaljson.ErrSyntax, "/B/a/1", "byte 8"},
		{"method returns nothing", badOutput(""), canonicaljson.ErrSyntax, "", ""},
		{"method returns two values", badOutput("1 2"), canonicaljson.ErrTrailingData, "", "result of MarshalJSON, byte 2: trailing data"},
		{"method returns duplicates", badOutput(`{"a":1,"a":2}`), canonicaljson.ErrDuplicateName, "/a", ""},
		{"method returns an integer that changes", badOutput(`[9007199254740993]`), canonicaljson.ErrInexactInteger, "/0", ""},
		{"raw message is no JSON", json.RawMessage(`{`), canonicaljson.ErrSyntax, "", "raw message"},
		{"raw message too deep", []json.RawMessage{json.RawMessage(strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000))}, canonicaljson.ErrDepth, "/0" + strings.Repeat("/0", 9_999), ""},
		{"tagged embedded struct with a method", struct {
			*sealedValue   `json:"v"`
			*sealedPointer `json:"p"`
			otherMethods   `json:"o"`
		}{}, canonicaljson.ErrUnsupportedType, "/o", "export the name"},
		{"tagged embedded struct with a method of the pointer", &struct {
			sealedPointer `json:"v"`
			*otherMethods `json:"o"`
			*sealedValue  `json:"w"`
		}{}, canonicaljson.ErrUnsupportedType, "/v", "export the name"},
		{"tagged embedded pointer to a struct with a method", struct {
			*sealedPointer `json:"v"`
			*otherMethods  `json:"o"`
			*sealedValue   `json:"w"`
		}{sealedPointer: &sealedPointer{}}, canonicaljson.ErrUnsupportedType, "/v", "export the name"},
		{"tagged embedded time by another name", struct {
			instant      `json:"i"`
			otherMethods `json:"z"`
		}{}, canonicaljson.ErrUnsupportedType, "/i", "export the name"},
		{"tagged embedded struct with IsZero", struct {
			zeroStruct `json:"z,omitzero"`
		}{}, canonicaljson.ErrUnsupportedType, "/z", "export the name"},
		{"tagged embedded struct with IsZero on the pointer", struct {
			zeroByPointer `json:"z,omitzero"`
		}{}, canonicaljson.ErrUnsupportedType, "/z", "export the name"},
		{"year 10000", time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), nil, "", "year"},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, err := canonicaljson.AppendValue([]byte("dst"), row.value)
			var e *canonicaljson.Error
			require.ErrorAs(t, err, &e)
			assert.Equal(t, "dst", string(got))
			if row.rule != nil {
				assert.ErrorIs(t, err, row.rule)
			}
			assert.True(t, row.pointer == e.Pointer, "pointer %.60q", e.Pointer)
			assert.Equal(t, int64(-1), e.Offset)
			assert.NotNil(t, e.Type)
			assert.Contains(t, err.Error(), row.says)
			assert.NotContains(t, err.Error(), ": :")
			assert.Less(t, len(err.Error()), 600)

			none, err := canonicaljson.Marshal(row.value)
			assert.Nil(t, none)
			assert.EqualError(t, err, e.Error())
		})
	}
}
