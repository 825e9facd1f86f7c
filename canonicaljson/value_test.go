package canonicaljson_test

//lint:file-ignore SA5008 malformed tags are among the cases: encoding/json gives them a meaning too

import (
	"encoding"
	"encoding/json"
	"fmt"
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/canonicaljson"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// valueMethod has the method MarshalJSON with a value receiver, pointerMethod with a
// pointer receiver. valueText and pointerText have MarshalText in the same way.
type (
	valueMethod   struct{ N int }
	pointerMethod struct{ N int }
	valueText     struct{ S string }
	pointerText   struct{ S string }
	namedString   string
	namedByte     byte
	methodByte    byte
	intKey        int
	namedRaw      json.RawMessage
)

func (v valueMethod) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, `{"z": %d, "a": "\u003c"}`, v.N), nil
}

func (p *pointerMethod) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, ` [ %d.0 ]`, p.N), nil }
func (v valueText) MarshalText() ([]byte, error)      { return []byte("text " + v.S), nil }
func (p *pointerText) MarshalText() ([]byte, error)   { return []byte("pointer text " + p.S), nil }
func (b *methodByte) MarshalText() ([]byte, error)    { return []byte{'a' + byte(*b)}, nil }
func (k intKey) MarshalText() ([]byte, error)         { return fmt.Appendf(nil, "key %d", int(k)), nil }

type zeroWhenNegative int

func (z zeroWhenNegative) IsZero() bool { return z < 0 }

type zeroByPointer struct{ N int }

func (z *zeroByPointer) IsZero() bool { return z.N == 42 }

type zeroInterface interface{ IsZero() bool }

type (
	Inner struct {
		Name  string `json:"name"`
		Depth int
	}
	hidden struct {
		FromHidden string
		Depth      string
		secret     int
	}
	Tagged struct {
		X int `json:"same"`
	}
	Untagged struct {
		Same int `json:"-"`
		X    int
	}
	Methodical struct {
		P pointerMethod
		T pointerText
	}
	Twice  struct{ Both int }
	LeftT  struct{ Twice }
	RightT struct{ Twice }
	Str    string
	Chain  struct {
		N    int
		Next *Chain `json:",omitempty"`
	}
)

// agree checks that Marshal and AppendValue return the same text for v as encoding/json
// followed by CanonicalizeStrict.
func agree(t testing.TB, v any) {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	want, err := canonicaljson.CanonicalizeStrict(text)
	require.NoError(t, err, "%s", text)
	got, err := canonicaljson.Marshal(v)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
	appended, err := canonicaljson.AppendValue([]byte("dst"), v)
	require.NoError(t, err)
	require.Equal(t, "dst"+string(want), string(appended))
}

type namedValue struct {
	name  string
	value any
}

// encodable returns values that canonicaljson and encoding/json accept, with every feature
// of encoding/json.
func encodable() []namedValue {
	seven, text := 7, "seven"
	instant := time.Date(2015, 7, 10, 1, 2, 3, 450, time.FixedZone("", -6*3600))
	return []namedValue{
		{"nil", nil},
		{"scalars", []any{true, false, 1, -1, int8(-128), uint8(255), int64(1<<53 - 1), -int64(1<<53 - 1), uint64(1<<53 - 1), uintptr(3), 1.5, float32(0.1), "s"}},
		{"negative zero", []any{math.Copysign(0, -1), float32(math.Copysign(0, -1))}},
		{"float thresholds", []float64{1e-6, 9.999999999999997e-7, 1e21, 999999999999999900000, 5e-324, math.MaxFloat64, 1e300, 0.1 + 0.2, 123456789012345680}},
		{"float32 thresholds", []float32{1e-6, 9.999999e-7, 1e21, 9.9999995e20, math.MaxFloat32, math.SmallestNonzeroFloat32, 16777216, 3.4e38}},
		{"strings", []string{"", "<>&", "\u2028\u2029", "\x00\b\f\n\r\t\x1f\x7f", `"\/`, "é€😀", "\ufffd"}},
		{"nil containers", []any{[]int(nil), map[string]int(nil), (*int)(nil), []byte(nil), json.RawMessage(nil), any(nil)}},
		{"empty containers", []any{[]int{}, map[string]int{}, []byte{}, [0]int{}, struct{}{}}},
		{"bytes", []any{[]byte("hi"), []namedByte("hi"), []methodByte{1, 2}, [2]byte{1, 2}, []byte{0xff, 0xfe, 0xfd}}},
		{"pointers", []any{&seven, &text, ptr(ptr(ptr(7)))}},
		{"maps", []any{
			map[string]any{"z": 1, "a": []any{1, "x", nil}, "😀": 1, "\uFB33": 2, "<": 3, "\"": 4, "\n": 5, "": 6},
			map[namedString]int{"b": 1, "a": 2},
			map[int]string{10: "a", 9: "b", -1: "c"},
			map[uint8]bool{200: true, 3: false},
			map[intKey]int{2: 1, 10: 2},
			map[valueText]int{{"b"}: 1, {"a"}: 2},
			map[netip.Addr]int{netip.MustParseAddr("10.0.0.1"): 1},
			map[*pointerText]int{nil: 1},
			map[string]map[string][]map[string]int{"b": {"d": {{"f": 1, "e": 2}}, "c": nil}, "a": nil},
		}},
		{"methods", []any{valueMethod{1}, &valueMethod{2}, pointerMethod{3}, &pointerMethod{4}, valueText{"<a>"}, &valueText{"b"}, pointerText{"c"}, &pointerText{"d"}, (*valueMethod)(nil), (*pointerMethod)(nil), (*valueText)(nil)}},
		{"methods by addressability", []any{
			[]pointerMethod{{1}},
			[1]pointerMethod{{1}},
			&[1]pointerMethod{{1}},
			map[string]pointerMethod{"a": {1}},
			struct{ P pointerMethod }{},
			&struct{ P pointerMethod }{}, &struct{ P []pointerText }{[]pointerText{{"x"}}},
			struct{ P pointerText }{},
			&struct{ P pointerText }{},
			struct{ *Methodical }{&Methodical{}},
			struct{ Methodical }{},
			&struct{ Methodical }{},
			map[string]*Methodical{"a": {}},
			map[string]Methodical{"a": {}},
		}},
		{"method in an interface", struct {
			M json.Marshaler
			N json.Marshaler
			T encoding.TextMarshaler
			U encoding.TextMarshaler
		}{M: valueMethod{1}, T: valueText{"t"}}},
		{"methods by encoding/json", []any{
			lossyMethod{Text: "<a>\u2028", Float: 1e21},
			&lossyMethod{Text: "a\xff", Empty: map[string]int{}, Omit: []int{1}, Float: 1e-7},
			map[string]any{"m": lossyMethod{Nil: []int{}, Float: math.Copysign(0, -1)}},
		}},
		{"times", []any{instant, &instant, time.Time{}, instant.UTC(), struct{ time.Time }{instant}}},
		{"durations", time.Second},
		{"raw messages", []any{json.RawMessage(`{"b":1.0,"a":[ 2 ]}`), ptr(json.RawMessage(" 1 ")), struct{ R *json.RawMessage }{}, struct{ R json.RawMessage }{}, namedRaw(`{"a":1}`), struct {
			json.RawMessage `json:",omitempty"`
			N               int
		}{N: 1}}},
		{"numbers", []json.Number{"", "0", "-0", "1.50", "1e2", "123456789012345680"}},
		{"tags", struct {
			A int    `json:"z"`
			B int    `json:"-"`
			C int    `json:"-,"`
			D int    `json:",omitempty"`
			E string `json:"a<b>&c"`
			G int    `json:"ünïcode"`
			H int    `json:" spaced name "`
			I int    `json:"b c,omitempty"`
			j int
		}{1, 2, 3, 0, "<", 7, 8, 0, 10}},
		{"malformed tag", struct {
			F int `json:"bad\"name"`
		}{6}},
		{"option string", struct {
			A int64       `json:",string"`
			B float64     `json:",string"`
			C bool        `json:",string"`
			D string      `json:",string"`
			E *int        `json:",string"`
			F *int        `json:",string"`
			G json.Number `json:",string"`
			H []int       `json:",string"`
			I uint64      `json:",string"`
			J float32     `json:",string"`
			K any         `json:",string"`
			L **int       `json:",string"`
			M valueMethod `json:",string"`
			N json.Number `json:",string"`
			O namedString `json:",string"`
			P float64     `json:",string"`
		}{math.MaxInt64, math.Copysign(0, -1), true, "<\"\u2028é", &seven, nil, "1.500", []int{1}, math.MaxUint64, 0.1, 5, ptr(&seven), valueMethod{1}, "", "&", 1e21}},
		{"omitempty", struct {
			A []int          `json:",omitempty"`
			B map[string]int `json:",omitempty"`
			C *int           `json:",omitempty"`
			D any            `json:",omitempty"`
			E struct{}       `json:",omitempty"`
			F [0]int         `json:",omitempty"`
			G [1]int         `json:",omitempty"`
			H bool           `json:",omitempty"`
			I float64        `json:",omitempty"`
			J time.Time      `json:",omitempty"`
			K []int          `json:",omitempty"`
			L string         `json:",omitempty"`
		}{I: math.Copysign(0, -1), K: []int{}}},
		{"omitzero", struct {
			A time.Time        `json:",omitzero"`
			B struct{ X int }  `json:",omitzero"`
			C zeroWhenNegative `json:",omitzero"`
			D zeroWhenNegative `json:",omitzero"`
			E zeroByPointer    `json:",omitzero"`
			F zeroByPointer    `json:",omitzero"`
			G *zeroByPointer   `json:",omitzero"`
			H zeroInterface    `json:",omitzero"`
			I zeroInterface    `json:",omitzero"`
			J []int            `json:",omitzero"`
			K [1]int           `json:",omitzero"`
			L *time.Time       `json:",omitzero"`
			M float64          `json:",omitzero"`
			N chan int         `json:",omitzero"`
			O zeroInterface    `json:",omitzero"`
			P []int            `json:",omitzero,omitempty"`
		}{C: -1, D: 0, E: zeroByPointer{42}, F: zeroByPointer{0}, I: (*zeroByPointer)(nil), J: []int{}, L: &time.Time{}, O: &zeroByPointer{42}, P: []int{}}},
		{"embedding", struct {
			Inner
			*hidden
			Str
			*Tagged
			Depth float64
		}{Inner{"n", 1}, nil, "s", &Tagged{3}, 2.5}},
		{"embedding of an unexported struct", struct {
			hidden
			Inner `json:"inner"`
		}{hidden{"h", "d", 3}, Inner{"n", 1}}},
		{"conflict, tag wins", struct {
			Tagged
			Untagged
			Same string `json:"X"`
		}{Tagged{1}, Untagged{2, 3}, "x"}},
		{"conflict, nobody wins", struct {
			Inner
			hidden
		}{Inner{"n", 1}, hidden{"h", "d", 3}}},
		{"conflict, one type twice", struct {
			LeftT
			RightT
			Own int
		}{LeftT{Twice{1}}, RightT{Twice{2}}, 3}},
		{"embedded interface", struct {
			fmt.Stringer
			A int
		}{nil, 1}},
		{"tagged embedding of an unexported struct", struct {
			plainStruct `json:"v,omitzero"`
			*hidden     `json:"h"`
		}{plainStruct: plainStruct{N: 1, T: instant, V: valueMethod{1}, P: &pointerMethod{2}, M: map[string]valueText{"k": {"v"}}}, hidden: &hidden{Depth: "d"}}},
		{"tagged embedding of nil pointers with methods", struct {
			*sealedPointer `json:"p"`
			*otherMethods  `json:"o"`
			*sealedValue   `json:"w"`
		}{}},
		{"recursive type", Chain{1, &Chain{2, &Chain{N: 3}}}},
		{"recursive map", map[string]any{"a": map[string]any{"a": []any{map[string]any{}}}}},
	}
}

func TestAgreesWithEncodingJSON(t *testing.T) {
	for _, row := range encodable() {
		t.Run(row.name, func(t *testing.T) {
			if jsonV2 && (row.name == "malformed tag" || strings.HasSuffix(row.name, "nil pointers with methods")) {
				t.Skip("the encoding/json of Go 1.27 differs, as the package documentation says")
			}
			agree(t, row.value)
		})
	}
}

func ptr[T any](v T) *T { return &v }

func TestDepthLimitOfValues(t *testing.T) {
	deep := any(nil)
	for range canonicaljson.MaxDepth {
		deep = []any{deep}
	}
	got, err := canonicaljson.Marshal(deep)
	require.NoError(t, err)
	assert.Equal(t, strings.Repeat("[", 10_000)+"null"+strings.Repeat("]", 10_000), string(got))

	inside := []json.RawMessage{json.RawMessage(strings.Repeat("[", 9_999) + strings.Repeat("]", 9_999))}
	_, err = canonicaljson.Marshal(inside)
	require.NoError(t, err)
}
