package canonicaljson_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/canonicaljson"
)

// FuzzValue compares Marshal with encoding/json followed by CanonicalizeStrict, on a random
// value of a random type. Marshal may refuse more values, but only for invalid UTF-8 or an
// inexact integer.
func FuzzValue(f *testing.F) {
	for seed := range uint64(300) {
		f.Add(uint16(seed), seed)
	}
	f.Fuzz(func(t *testing.T, typ uint16, value uint64) {
		// Go never frees a type that reflect made, so the test makes at most 4096
		// types.
		g := generator{rand.New(rand.NewPCG(uint64(typ%4096), 8785))}
		v := reflect.New(g.typ(4)).Elem()
		g.r = rand.New(rand.NewPCG(value, 8785))
		g.fill(v, 5)
		checkValue(t, v.Interface())
		checkValue(t, v.Addr().Interface())
	})
}

func checkValue(t *testing.T, v any) {
	t.Helper()
	got, err := canonicaljson.Marshal(v)
	text, errJSON := json.Marshal(v)
	var want []byte
	if errJSON == nil {
		want, errJSON = canonicaljson.CanonicalizeStrict(text)
	}
	switch {
	case err == nil && (errJSON != nil || string(got) != string(want)):
		t.Fatalf("%T becomes\n%s, by way of its text\n%s\nand that\n%s, %v", v, got, text, want, errJSON)
	case err == nil || errJSON != nil:
	case errors.Is(err, canonicaljson.ErrInvalidUTF8):
	case errors.Is(err, canonicaljson.ErrInexactInteger):
		// Marshal refuses every integer from 2^53 on, even if the canonical text would
		// denote the same integer.
		var e *canonicaljson.Error
		errors.As(err, &e)
		var n big.Int
		if _, ok := n.SetString(e.Detail[len("integer "):], 10); !ok || n.CmpAbs(big.NewInt(1<<53)) < 0 {
			t.Fatalf("%T: %v", v, err)
		}
	default:
		t.Fatalf("%T is refused: %v, but its text is %s", v, err, text)
	}
}

// generator makes types and values.
type generator struct{ r *rand.Rand }

var leafTypes = []reflect.Type{
	reflect.TypeFor[bool](), reflect.TypeFor[int](), reflect.TypeFor[int8](), reflect.TypeFor[int64](), reflect.TypeFor[uint16](), reflect.TypeFor[uint64](),
	reflect.TypeFor[float32](), reflect.TypeFor[float64](), reflect.TypeFor[string](), reflect.TypeFor[string](), reflect.TypeFor[any](), reflect.TypeFor[[]byte](),
	reflect.TypeFor[time.Time](), reflect.TypeFor[json.Number](), reflect.TypeFor[json.RawMessage](),
	reflect.TypeFor[valueMethod](), reflect.TypeFor[pointerMethod](), reflect.TypeFor[valueText](), reflect.TypeFor[pointerText](),
	reflect.TypeFor[namedString](), reflect.TypeFor[[]namedByte](), reflect.TypeFor[[]methodByte](), reflect.TypeFor[zeroWhenNegative](), reflect.TypeFor[zeroByPointer](),
	reflect.TypeFor[Inner](), reflect.TypeFor[Chain](),
}

var keyTypes = []reflect.Type{
	reflect.TypeFor[string](), reflect.TypeFor[string](), reflect.TypeFor[int](), reflect.TypeFor[uint8](), reflect.TypeFor[intKey](), reflect.TypeFor[valueText](), reflect.TypeFor[namedString](),
}

var embeddedTypes = []reflect.Type{
	reflect.TypeFor[Inner](), reflect.TypeFor[*Inner](), reflect.TypeFor[Tagged](), reflect.TypeFor[Untagged](), reflect.TypeFor[LeftT](), reflect.TypeFor[RightT](), reflect.TypeFor[Twice](), reflect.TypeFor[Str](),
}

var tags = []string{
	``, ``, `json:"b"`, `json:"same"`, `json:"X"`, `json:",omitempty"`, `json:",omitzero"`, `json:",string"`, `json:"q,string,omitempty"`, `json:"-"`, `json:"-,"`, `json:"<é>"`,
	`json:"name"`, `json:"Depth,omitzero,string"`, `json:"z 1,omitempty,omitzero"`,
}

func (g generator) typ(depth int) reflect.Type {
	if depth == 0 {
		return leafTypes[g.r.IntN(len(leafTypes))]
	}
	switch g.r.IntN(9) {
	case 0:
		return reflect.SliceOf(g.typ(depth - 1))
	case 1:
		return reflect.ArrayOf(g.r.IntN(3), g.typ(depth-1))
	case 2:
		return reflect.MapOf(keyTypes[g.r.IntN(len(keyTypes))], g.typ(depth-1))
	case 3:
		return reflect.PointerTo(g.typ(depth - 1))
	case 4:
		return leafTypes[g.r.IntN(len(leafTypes))]
	}
	return g.structType(depth)
}

// structType returns a struct with some embedded types and random tags.
func (g generator) structType(depth int) reflect.Type {
	var fields []reflect.StructField
	seen := map[string]bool{}
	for i := range g.r.IntN(9) {
		f := reflect.StructField{
			Name: string(rune('A'+g.r.IntN(26))) + fmt.Sprint(i),
			Type: g.typ(depth - 1),
			Tag:  reflect.StructTag(tags[g.r.IntN(len(tags))]),
		}
		if g.r.IntN(5) == 0 {
			f.Type = embeddedTypes[g.r.IntN(len(embeddedTypes))]
			f.Name, f.Anonymous = f.Type.Name(), true
			if f.Type.Kind() == reflect.Pointer {
				f.Name = f.Type.Elem().Name()
			}
		}
		if !seen[f.Name] {
			seen[f.Name] = true
			fields = append(fields, f)
		}
	}
	return reflect.StructOf(fields)
}

func (g generator) text() string {
	if g.r.IntN(60) == 0 {
		return "bad \xff"
	}
	return randomName(g.r)
}

func (g generator) float() float64 {
	switch g.r.IntN(4) {
	case 0:
		return float64(g.r.IntN(100)) / 4
	case 1:
		return g.r.NormFloat64() * math.Pow10(g.r.IntN(50)-25)
	case 2:
		return []float64{0, math.Copysign(0, -1), 1e21, 1e-6, 1e-7, 1 << 53, 5e-324}[g.r.IntN(7)]
	}
	if f := math.Float64frombits(g.r.Uint64()); !math.IsNaN(f) && !math.IsInf(f, 0) {
		return f
	}
	return 0
}

func (g generator) integer() int64 {
	if g.r.IntN(40) == 0 {
		return int64(g.r.Uint64())
	}
	return int64(g.r.Uint64()) >> (12 + g.r.IntN(52))
}

func (g generator) fill(v reflect.Value, depth int) {
	if g.r.IntN(6) == 0 {
		return // leave v zero, to test omitempty and omitzero
	}
	switch p := v.Addr().Interface().(type) {
	case *time.Time:
		*p = time.Unix(g.r.Int64N(4e9), g.r.Int64N(1e9)).In(time.FixedZone("", (g.r.IntN(40)-20)*1800))
		return
	case *json.Number:
		*p = json.Number(fmt.Sprint([]any{g.integer(), g.float(), "1e3", "1.500", "-0", "0x1"}[g.r.IntN(6)]))
		return
	case *json.RawMessage:
		*p = json.RawMessage([]string{`{"b":[1.0],"a":"\u003c"}`, ` null `, `"x"`, `1E2`, `{"a":`, `9007199254740993`}[g.r.IntN(6)])
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(g.r.IntN(2) == 0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(g.integer())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(g.integer()))
	case reflect.Float32, reflect.Float64:
		v.SetFloat(g.float())
	case reflect.String:
		v.SetString(g.text())
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				g.fill(v.Field(i), depth-1)
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			g.fill(v.Index(i), depth-1)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), g.r.IntN(4), 5))
		for i := range v.Len() {
			g.fill(v.Index(i), depth-1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range g.r.IntN(5) {
			key, elem := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			g.fill(key, depth-1)
			g.fill(elem, depth-1)
			v.SetMapIndex(key, elem)
		}
	case reflect.Pointer:
		if depth > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			g.fill(v.Elem(), depth-1)
		}
	case reflect.Interface:
		if depth > 0 {
			elem := reflect.New(g.typ(min(depth-1, 2))).Elem()
			g.fill(elem, depth-1)
			v.Set(elem)
		}
	}
}
