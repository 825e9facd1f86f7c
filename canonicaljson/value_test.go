package canonicaljson_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/canonicaljson"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type inner struct {
	Z int     `json:"z"`
	A float32 `json:"a,omitempty"`
}

type Embedded struct {
	B string
	C *int `json:",omitzero"`
}

type everything struct {
	Embedded
	*inner
	S    string          `json:"s<>&"`
	Q    string          `json:"q,string"`
	I    int64           `json:"i,string"`
	F    float64         `json:"f"`
	FQ   float64         `json:"fq,string"`
	T    time.Time       `json:"t"`
	TP   *time.Time      `json:"tp"`
	Raw  json.RawMessage `json:"raw"`
	N    json.Number     `json:"n"`
	NQ   json.Number     `json:"nq,string"`
	By   []byte          `json:"by"`
	Arr  [3]uint8        `json:"arr"`
	M    map[string]any  `json:"m"`
	MI   map[int]string  `json:"mi"`
	Any  any             `json:"any"`
	Skip chan int        `json:"-"`
	List []inner         `json:"list"`
}

func TestAgreesWithEncodingJSON(t *testing.T) {
	now := time.Date(2015, 7, 10, 1, 2, 3, 450, time.UTC)
	seven := 7
	for _, v := range []any{
		nil, 1, "a", 1.5, float32(0.1), math.MaxFloat32, float32(math.MaxFloat32), float32(1e-6), float32(1e21), true, []int(nil), []int{}, map[string]int(nil),
		everything{Raw: json.RawMessage(`{"b":1.0,"a":[ 2 ]}`), F: math.Copysign(0, -1), FQ: math.Copysign(0, -1)},
		&everything{Embedded: Embedded{C: &seven}, inner: &inner{1, 2}, Raw: json.RawMessage(`1`), Q: "<\u2028\"", S: "<&>\u2029", I: math.MaxInt64, T: now, TP: &now,
			N: "1.500", NQ: "1.500", By: []byte{1, 2}, M: map[string]any{"z": 1, "a": []any{1, "x", nil}, "\U0001F600": 1, "\uFB33": 2}, MI: map[int]string{10: "a", 9: "b", -1: "c"}, Any: &inner{}, List: []inner{{1, 2}, {}}},
	} {
		text, err := json.Marshal(v)
		require.NoError(t, err)
		want, err := canonicaljson.Canonicalize(text)
		require.NoError(t, err)
		got, err := canonicaljson.Marshal(v)
		require.NoError(t, err)
		assert.Equal(t, string(want), string(got))
	}
}
